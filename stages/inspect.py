"""``twophase inspect``: what a prediction set holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from pipeline.inspect.view import view, view_row
from stages.options import SetPath, expected_errors

_WIDTH = 100
_SHOWN_CHUNKS = 10


@click.command("inspect")
@click.argument("predictions", type=SetPath(), default="data/predictions")
@click.option("--row", type=click.IntRange(0), help="Show this row in full.")
@click.option("--rows", type=click.IntRange(0), default=3, show_default=True, help="First rows.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, all in full.")
@expected_errors
def command(predictions: Path | str, row: int | None, rows: int, as_json: bool) -> None:
    """Show what a prediction set holds: run card, chunks, sizes, and its first rows as text."""
    shown = view(predictions, rows) if row is None else view_row(predictions, row)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(shown, enc_hook=str), indent=2))
    elif row is None:
        click.echo("\n".join(_lines(shown)))
    else:
        click.echo("\n".join(f"{_full(name)}: {_full(value)}" for name, value in shown.items()))


def _lines(shown: Mapping[str, Any]) -> Iterator[str]:
    card = shown["card"]
    state = "sealed" if shown["sealed"] else "not sealed"
    yield f"{shown['folder']}: {_size(shown['size_bytes'])}, {state}"
    yield f"run {card['fingerprint']}, schema version {card['schema_version']}"
    yield f"{card['rows']} rows of {card['prediction']}, {card['chunk_rows']} per chunk"
    yield ""
    for name, value in _flat(card["inputs"]):
        yield _cut(f"  {name}: {_full(value)}")
    for name in ("decode", "versions"):
        pairs = ", ".join(f"{key} {value}" for key, value in card[name].items())
        yield _cut(f"  {name}: {pairs}")
    if card["keep"]:
        yield f"  kept columns: {', '.join(map(_full, card['keep']))}"
    yield ""
    yield f"{len(shown['chunks'])} of {card['chunks']} chunks"
    chunks = [_chunk_line(chunk) for chunk in shown["chunks"]]
    yield from _some(chunks + [f"{name}  missing" for name in shown["missing"]])
    if shown["unreadable"] is not None:
        yield ""
        yield shown["unreadable"]
    for row in shown["first_rows"]:
        yield ""
        yield _cut(f"row {row['row']}, id {_full(row['id'])}, {_full(row['finish_reason'])}")
        yield _cut(f"  prediction: {_full(row.get('prediction'))}")
        yield from (_cut(f"  reference:  {_full(text)}") for text in row["references"] or ())


def _chunk_line(chunk: Mapping[str, Any]) -> str:
    last = chunk["first_row"] + chunk["rows"] - 1
    return f"{chunk['name']}  rows {chunk['first_row']}–{last}  {_size(chunk['size_bytes'])}"


def _some(lines: list[str]) -> Iterator[str]:
    """The first ones and the last ones of many."""
    if len(lines) > 2 * _SHOWN_CHUNKS + 1:
        left_out = len(lines) - 2 * _SHOWN_CHUNKS
        lines = [*lines[:_SHOWN_CHUNKS], f"… {left_out} more …", *lines[-_SHOWN_CHUNKS:]]
    yield from (f"  {line}" for line in lines)


def _flat(inputs: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in inputs.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _full(value: Any) -> str:
    if isinstance(value, str) and value.isprintable() and value.strip():
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _size(size_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size_bytes < 1024 or unit == "GiB":
            break
        size_bytes /= 1024
    return f"{size_bytes:.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"


if __name__ == "__main__":
    command()
