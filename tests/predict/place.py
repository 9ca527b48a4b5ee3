"""A folder in which ``predict`` can be started: parameters, a tiny model, examples."""

from __future__ import annotations

from pathlib import Path

from tests.examples import write_examples
from tests.models import TEXTS

PARAMS = """
predict:
  template: "{document}"
  device: cpu
  chunk_rows: 4
  max_batch_rows: 2
  generation: {max_new_tokens: 24}
"""


def make_place(folder: Path, model: Path, rows: int = 40) -> Path:
    """Fill ``folder`` with ``params.yaml``, ``model`` and ``examples.parquet``."""
    (folder / "params.yaml").write_text(PARAMS)
    (folder / "model").symlink_to(model)
    texts = [f"{row} {TEXTS[row % 2]}" for row in range(rows)]
    write_examples(folder / "examples.parquet", texts)
    return folder
