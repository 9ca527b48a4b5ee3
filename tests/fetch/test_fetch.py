from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import ConfigError, ModelError
from pipeline.fetch.config import FetchConfig
from pipeline.fetch.fetch import fetch
from pipeline.fetch.files import TOKENIZERS


def test_a_folder_is_linked_file_by_file(gpt2: Path, tmp_path: Path) -> None:
    target = tmp_path / "data" / "model"
    fetched = fetch(FetchConfig(model=str(gpt2)), target)
    assert target.is_dir()
    assert not target.is_symlink()
    assert {path.name for path in target.iterdir()} == {path.name for path in gpt2.iterdir()}
    assert all(path.is_symlink() for path in target.iterdir())
    assert fetched.name == str(gpt2)
    assert fetched.parameters is not None
    assert fetched.size_bytes > 0


def test_the_linked_model_loads(gpt2: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    target = tmp_path / "model"
    fetch(FetchConfig(model=str(gpt2)), target)
    assert AutoModelForCausalLM.from_pretrained(target).num_parameters() > 0
    assert len(AutoTokenizer.from_pretrained(target)) > 0


def test_retraining_under_the_same_name_is_seen(gpt2: Path, tmp_path: Path) -> None:
    model = tmp_path / "mine"
    model.mkdir()
    for path in gpt2.iterdir():
        (model / path.name).write_bytes(path.read_bytes())
    fetch(FetchConfig(model=str(model)), tmp_path / "data")
    replacement = tmp_path / "new"
    replacement.write_bytes(b"retrained")
    os.replace(replacement, model / "model.safetensors")
    assert (tmp_path / "data" / "model.safetensors").read_bytes() == b"retrained"


def test_an_adapter_of_mine_is_linked_beside_it(gpt2: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "lora"
    adapter.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors", "README.md"):
        (adapter / name).write_text(name)
    target = tmp_path / "data" / "model"
    fetched = fetch(FetchConfig(model=str(gpt2)), target, adapter=str(adapter))
    links = {path.name: path for path in (target / "adapter").iterdir()}
    assert set(links) == {"adapter_config.json", "adapter_model.safetensors"}
    assert all(path.is_symlink() for path in links.values())
    (adapter / "adapter_model.safetensors").write_text("trained again")
    assert links["adapter_model.safetensors"].read_text() == "trained again"
    assert fetched == fetch(FetchConfig(model=str(gpt2)), target, adapter="owner/on-the-hub")
    assert not (target / "adapter").exists()


def test_another_model_replaces_it_and_leaves_the_first(
    gpt2: Path, t5: Path, tmp_path: Path
) -> None:
    before = sorted(path.name for path in gpt2.iterdir())
    target = tmp_path / "model"
    fetch(FetchConfig(model=str(gpt2)), target)
    fetch(FetchConfig(model=str(t5)), target)
    assert json.loads((target / "config.json").read_text())["model_type"] == "t5"
    assert sorted(path.name for path in gpt2.iterdir()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_link_of_an_older_kind_is_replaced_not_followed(gpt2: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious").touch()
    target = tmp_path / "model"
    target.symlink_to(theirs)
    fetch(FetchConfig(model=str(gpt2)), target)
    assert not target.is_symlink()
    assert (theirs / "precious").exists()


def test_the_folder_keeps_its_mode(gpt2: Path, tmp_path: Path) -> None:
    mode = stat.S_IMODE(gpt2.stat().st_mode)
    fetch(FetchConfig(model=str(gpt2)), tmp_path / "model")
    assert stat.S_IMODE(gpt2.stat().st_mode) == mode


def test_without_symbolic_links_it_is_copied_and_said(
    gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise OSError("symbolic link privilege not held")

    monkeypatch.setattr(os, "symlink", refuse)
    said: list[str] = []
    fetch(FetchConfig(model=str(gpt2)), tmp_path / "model", announce=said.append)
    copy = tmp_path / "model" / "model.safetensors"
    assert not copy.is_symlink()
    assert copy.read_bytes() == (gpt2 / "model.safetensors").read_bytes()
    assert len(said) == 1
    assert "was copied: fetch again when it has changed" in said[0]


def test_an_incomplete_folder_leaves_the_old_model(gpt2: Path, t5: Path, tmp_path: Path) -> None:
    target = tmp_path / "data" / "model"
    fetch(FetchConfig(model=str(gpt2)), target)
    incomplete = tmp_path / "incomplete"
    incomplete.mkdir()
    for path in t5.iterdir():
        if path.name not in TOKENIZERS:
            (incomplete / path.name).write_bytes(path.read_bytes())
    with pytest.raises(ModelError, match="incomplete holds no tokenizer"):
        fetch(FetchConfig(model=str(incomplete)), target)
    assert json.loads((target / "config.json").read_text())["model_type"] == "gpt2"
    assert [path.name for path in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize(
    "name", ["./nowhere", "/nowhere/at/all", "~/nowhere", "no\\where", "a/b/c"]
)
def test_a_path_that_is_not_there_never_asks_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ModelError, match="^fetch.model: there is no folder .*owner/name"):
        fetch(FetchConfig(model=name), tmp_path / "model")


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").touch()
    with pytest.raises(ModelError, match="model.gguf is a file; name the folder"):
        fetch(FetchConfig(model=str(tmp_path / "model.gguf")), tmp_path / "model")


def test_the_target_cannot_be_its_own_source(gpt2: Path, tmp_path: Path) -> None:
    target = tmp_path / "model"
    fetch(FetchConfig(model=str(gpt2)), target)
    with pytest.raises(ConfigError, match="is the folder that fetch writes"):
        fetch(FetchConfig(model=str(target)), target)
    assert (target / "config.json").exists()


def test_a_revision_is_for_the_hub(gpt2: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a path and has no revisions: set it to null"):
        fetch(FetchConfig(model=str(gpt2), revision="main"), tmp_path / "model")
    with pytest.raises(ConfigError, match="the default model has no revisions"):
        fetch(FetchConfig(revision="main"), tmp_path / "model")


def test_an_empty_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fetch.model is empty; write null"):
        fetch(FetchConfig(model=" "), tmp_path / "model")


def test_a_killed_fetch_leaves_nothing_under_the_final_name(gpt2: Path, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from pipeline.fetch import folder\n"
        "from pipeline.fetch.config import FetchConfig\n"
        "from pipeline.fetch.fetch import fetch\n"
        "link, made = folder.link_file, []\n"
        "def kill(source, target):\n"
        "    if made: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    made.append(link(source, target))\n"
        "    return True\n"
        "folder.link_file = kill\n"
        "fetch(FetchConfig(model=sys.argv[1]), Path(sys.argv[2]))\n"
    )
    target = tmp_path / "model"
    done = subprocess.run([sys.executable, "-c", script, str(gpt2), str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 1  # the temporary folder, under a name of its own
    fetch(FetchConfig(model=str(gpt2)), target)
    assert (target / "config.json").exists()
