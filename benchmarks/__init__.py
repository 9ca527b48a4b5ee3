"""Ratios against bounds, for speed and memory. Not tests: they measure the machine they run on."""
