"""Shared fixtures. No test may reach the network (a slow test that proves an install may)."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["DVC_NO_ANALYTICS"] = "true"
