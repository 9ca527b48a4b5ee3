"""Shared fixtures. No test may reach the network (a slow test that proves an install may)."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["DVC_NO_ANALYTICS"] = "true"
# Tiny models gain nothing from threads, and lose a lot when the cores are busy.
os.environ["OMP_NUM_THREADS"] = "1"

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.s3_server import Bucket, s3_bucket


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny causal model without a pad token."""
    from tests.models import save_gpt2

    return save_gpt2(tmp_path_factory.mktemp("gpt2"), pad=False)


@pytest.fixture(scope="session")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny encoder–decoder model."""
    from tests.models import save_t5

    return save_t5(tmp_path_factory.mktemp("t5"))


@pytest.fixture(scope="session")
def evaluate_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the copies that ``evaluate`` makes of scripts out of the home directory.

    One folder for all tests: it is a package, which Python imports once.
    """
    evaluate = pytest.importorskip("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        folder = str(tmp_path_factory.mktemp("evaluate"))
        patch.setattr(evaluate.config, "HF_MODULES_CACHE", folder)
        # Before the person's own, which transformers may have put there.
        patch.syspath_prepend(folder)
        yield


@pytest.fixture(scope="session")
def bucket() -> Iterator[Bucket]:
    """An S3 server on loopback; see ``s3``."""
    pytest.importorskip("s3fs")
    with s3_bucket() as bucket:
        yield bucket


@pytest.fixture
def s3(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """URL of a prefix that no other test uses, with the environment set that leads to it."""
    import s3fs

    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3fs.S3FileSystem.clear_instance_cache()
    return f"s3://{bucket.name}/my runs/ünï {request.node.name}"
