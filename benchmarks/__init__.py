"""Measurements that hold the project to its bounds; run by hand, on a machine that is idle.

python -m benchmarks.score           speed and memory of phase two against its bounds
python -m benchmarks.score_profile   where the time of phase two goes
"""
