"""A copy of the project in another folder, with DVC and git, set to a tiny model and data set."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]

PARAMS = """\
fetch: {{model: {model}, revision: null}}
prepare:
  {{dataset: rows.jsonl, name: null, split: null, input: text, references: summary, id: id,
    keep: [], limit: null, seed: null, streaming: false}}
predict:
  engine: auto
  adapter: null
  template: null
  chat: false
  rows: null
  max_prompt_tokens: null
  max_label_tokens: null
  tokenizer: {{}}
  sampling_rate: null
  dtype: float32
  quantization: null
  model_kwargs: {{}}
  trust_remote_code: false
  device: cpu
  device_map: null
  max_memory: null
  chunk_rows: 4
  max_batch_rows: 2
  max_batch_tokens: 8192
  on_oom: error
  generation: {{max_new_tokens: 8, num_beams: 1}}
  seed: 0
  logprob: false
score:
  {{metrics: [rouge, bleu], normalize: [],
    decode: {{skip_special_tokens: null, clean_up_tokenization_spaces: null}}, by: [],
    confidence: 0.95, replicates: 50, seed: 0, n_jobs: 1, backend: loky, scheduler: null}}
"""


def copy_project(target: Path, model: Path, rows: int = 24) -> Path:
    """The tracked and new files of the working tree, committed, with params of its own."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).exists() and not name.startswith(("tests/", "docs/")):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    (target / "params.yaml").write_text(PARAMS.format(model=json.dumps(str(model))))
    lines = [
        {"id": f"r{row}", "text": f"text {row} of the fox", "summary": f"summary {row} the fox"}
        for row in range(rows)
    ]
    (target / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in (
        ["git", "init", "-q"],
        ["git", "config", "user.email", "test@example.org"],
        ["git", "config", "user.name", "test"],
        ["git", "add", "-A"],
        ["git", "commit", "-qm", "start"],
    ):
        subprocess.run(command, cwd=target, check=True)
    return target


def environment() -> dict[str, str]:
    """This interpreter's commands first on PATH, as ``make`` does."""
    env = dict(os.environ)
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env.pop("PYTHONPATH", None)
    return env


def start(folder: Path, command: Iterable[str]) -> subprocess.Popen[str]:
    """A process in a group of its own, so that a test can kill it with all that it started."""
    return subprocess.Popen(
        list(command), cwd=folder, env=environment(), text=True, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def run(folder: Path, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in ``folder`` and return it with its output."""
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done
