"""``data/telemetry.csv``: time and memory per chunk, as they were recorded beside the chunks.

They never enter the prediction set: the same tokens must be the same bytes.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from pipeline import atomic
from pipeline.store.work import WorkStore

COLUMNS = (
    "chunk",
    "rows",
    "batches",
    "prompt_tokens",
    "new_tokens",
    "oom_events",
    "elapsed_s",
    "examples_per_s",
    "tokens_per_s",
    "rss_before_bytes",
    "rss_after_bytes",
    "rss_peak_bytes",
    "allocated_before_bytes",
    "allocated_after_bytes",
    "allocated_peak_bytes",
    "reserved_before_bytes",
    "reserved_after_bytes",
)


def write_telemetry(store: WorkStore, path: Path) -> None:
    """Collect the chunks' telemetry into the CSV at ``path``, a line per chunk.

    A field is empty where the device does not count, or where the chunk was taken over from a
    set that came without its telemetry.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for chunk in range(store.card.chunks):
        writer.writerow({"chunk": chunk, **store.telemetry(chunk)})
    atomic.write_text(path, text.getvalue())
