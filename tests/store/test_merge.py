"""Merging parts: what differs, what is damaged and what is missing is named, nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from pipeline.errors import (
    DamagedChunkError,
    FingerprintError,
    LockedStoreError,
    MissingChunksError,
    PredictionSetError,
)
from pipeline.store.card import RunCard
from pipeline.store.chunk import chunk_name
from pipeline.store.merge import merge
from pipeline.store.note import telemetry_name
from pipeline.store.prediction_set import SUMS, PredictionSet
from pipeline.store.work import WorkStore
from stages.merge import command
from tests.store.test_store import chunk_of, make_card, published


def part(folder: Path, chunks: Sequence[int], card: RunCard | None = None) -> Path:
    """A store with some of the chunks of a run."""
    card = card or make_card()
    store = WorkStore(folder / "predictions", card.fingerprint)
    with store.locked():
        store.begin(card)
        store.write_tokenizer("{}")
        for chunk in chunks:
            store.write(chunk, chunk_of(card, chunk), {"elapsed_s": 1.0, "rows": 3})
    return store.folder


def test_stores_are_merged_and_sealed(tmp_path: Path) -> None:
    parts = [part(tmp_path / "a", [0, 2]), part(tmp_path / "b", [1])]
    card = merge(parts, tmp_path / "out")
    assert card == make_card()
    merged = PredictionSet(tmp_path / "out")
    assert merged.sealed
    merged.require_complete()
    published(tmp_path / "whole")
    for path in (tmp_path / "whole/predictions").rglob("*.*"):
        other = tmp_path / "out" / path.relative_to(tmp_path / "whole/predictions")
        assert other.read_bytes() == path.read_bytes()
    assert (tmp_path / "out" / SUMS).read_bytes() == (
        tmp_path / "whole/predictions" / SUMS
    ).read_bytes()
    merge(parts, tmp_path / "out")  # again is the same


def test_a_chunk_may_be_in_several_parts_and_sets_are_parts_too(tmp_path: Path) -> None:
    published(tmp_path / "whole")
    merge([tmp_path / "whole/predictions", part(tmp_path / "a", [1])], tmp_path / "out")
    assert PredictionSet(tmp_path / "out").missing() == []


def test_a_part_may_lie_where_the_result_is_built(tmp_path: Path) -> None:
    ours = part(tmp_path, [0, 2])
    theirs = part(tmp_path / "b", [1])
    merge([ours, theirs], tmp_path / "predictions")
    assert PredictionSet(tmp_path / "predictions").missing() == []
    assert not list(ours.glob(".chunk*"))


def test_chunks_copied_without_what_was_recorded_are_read_from_end_to_end(tmp_path: Path) -> None:
    first = part(tmp_path / "a", [0, 1, 2])
    for path in first.glob("telemetry-*"):
        path.unlink()
    merge([first], tmp_path / "out")
    content = bytearray((first / chunk_name(1)).read_bytes())
    content[40] ^= 255  # in the pages
    (first / chunk_name(1)).unlink()
    (first / chunk_name(1)).write_bytes(content)
    with pytest.raises(DamagedChunkError, match="chunk-00001.parquet is damaged"):
        merge([first], tmp_path / "again")


def nothing_was_written(place: Path) -> bool:
    return not (place / "out").exists() and not (place / ".partial").exists()


def test_missing_chunks_are_named(tmp_path: Path) -> None:
    parts = [part(tmp_path / "a", [0]), part(tmp_path / "b", [0])]
    message = (
        r"^2 of 3 chunks are in no part \(chunk-00001.parquet, chunk-00002.parquet\); name all"
    )
    with pytest.raises(MissingChunksError, match=message):
        merge(parts, tmp_path / "out")
    assert nothing_was_written(tmp_path)


def test_other_settings_are_named(tmp_path: Path) -> None:
    parts = [part(tmp_path / "a", [0, 1]), part(tmp_path / "b", [2], make_card(model="other"))]
    with pytest.raises(FingerprintError, match=r"is of another run than .*\(differing: model\)"):
        merge(parts, tmp_path / "out")
    assert nothing_was_written(tmp_path)


def test_other_versions_are_named_and_may_be_allowed(tmp_path: Path) -> None:
    newer = msgspec.structs.replace(make_card(), versions={"torch": "2"})
    parts = [part(tmp_path / "a", [0, 1]), part(tmp_path / "b", [2], newer)]
    with pytest.raises(FingerprintError, match=r"other versions than .*\(torch 1 → 2\)"):
        merge(parts, tmp_path / "out")
    assert nothing_was_written(tmp_path)
    assert merge(parts, tmp_path / "out", allow_mixed=True).versions == {"torch": "1"}


@pytest.mark.parametrize(
    ("change", "name"), [({"prediction": "text"}, "prediction"), ({"keep": ("topic",)}, "keep")]
)
def test_other_columns_are_named(change: dict[str, Any], name: str, tmp_path: Path) -> None:
    other = msgspec.structs.replace(make_card(), **change)
    parts = [part(tmp_path / "a", [0, 1, 2]), part(tmp_path / "b", [], other)]
    with pytest.raises(PredictionSetError, match=rf"otherwise than .*\(differing: {name}\)"):
        merge(parts, tmp_path / "out")


def test_other_tokenizers_and_none(tmp_path: Path) -> None:
    parts = [part(tmp_path / "a", [0, 1]), part(tmp_path / "b", [2])]
    (parts[1] / "tokenizer/tokenizer.json").write_text("{ }")
    with pytest.raises(PredictionSetError, match=r"b.*tokenizer.json differs from .*a/"):
        merge(parts, tmp_path / "out")
    for folder in parts:
        shutil.rmtree(folder / "tokenizer")
    with pytest.raises(PredictionSetError, match="no part has tokenizer/tokenizer.json"):
        merge(parts, tmp_path / "out")
    assert nothing_was_written(tmp_path)


def test_two_that_differ_are_named(tmp_path: Path) -> None:
    parts = [part(tmp_path / "a", [0, 1, 2]), part(tmp_path / "b", [2])]
    card = make_card()
    store = WorkStore(tmp_path / "b/predictions", card.fingerprint)
    table = chunk_of(card, 2)
    store.write(2, table.set_column(5, "prompt_tokens", [[9]]).cast(table.schema), {})
    with pytest.raises(PredictionSetError, match="a/.*chunk-00002.* and .*b/.*differ, though both"):
        merge(parts, tmp_path / "out")


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    folder = part(tmp_path / "a", [0, 1, 2])
    with (folder / chunk_name(1)).open("r+b") as handle:
        handle.seek(40)
        handle.write(b"XX")
    with pytest.raises(DamagedChunkError, match="chunk-00001.parquet is damaged: its sha256"):
        merge([folder], tmp_path / "out")
    assert nothing_was_written(tmp_path)


def test_a_chunk_of_another_run_is_named(tmp_path: Path) -> None:
    folder = part(tmp_path / "a", [0, 1, 2])
    other = part(tmp_path / "b", [0], make_card(model="other"))
    for name in (chunk_name(0), telemetry_name(0)):
        shutil.copy(other / name, folder / name)
    with pytest.raises(FingerprintError, match="chunk-00000.parquet belongs to run"):
        merge([folder], tmp_path / "out")


def test_the_target_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    published(tmp_path, model="other")
    folder = part(tmp_path / "a", [0, 1, 2])
    with pytest.raises(FingerprintError, match="holds predictions of other settings"):
        merge([folder], tmp_path / "predictions")
    merge([folder], tmp_path / "predictions", overwrite=True)
    assert PredictionSet(tmp_path / "predictions").card == make_card()


def test_a_store_that_is_written_is_not_merged_into(tmp_path: Path) -> None:
    folder = part(tmp_path, [0, 1, 2])
    store = WorkStore(tmp_path / "predictions", folder.name)
    with store.locked(), pytest.raises(LockedStoreError):
        merge([folder], tmp_path / "predictions")


def test_the_command(tmp_path: Path) -> None:
    parts = [str(part(tmp_path / "a", [0, 2])), str(part(tmp_path / "b", [1]))]
    out, csv = str(tmp_path / "out"), str(tmp_path / "telemetry.csv")
    result = CliRunner().invoke(command, [*parts, "--out", out, "--telemetry", csv])
    assert result.exit_code == 0, result.output
    fingerprint = make_card().fingerprint
    assert result.output == f"{out}: 7 rows in 3 chunks of 2 parts, run {fingerprint}\n"
    assert Path(csv).read_text().count("\n") == 4
    failed = CliRunner().invoke(command, [parts[0], "--out", str(tmp_path / "o")])
    assert failed.exit_code == 1
    assert "Error: 1 of 3 chunks are in no part (chunk-00001.parquet)" in failed.output
    failed = CliRunner().invoke(command, [str(tmp_path / "a"), "--out", str(tmp_path / "o")])
    assert failed.exit_code == 1
    assert f"{tmp_path / 'a'} holds stores; name the one to merge, as {parts[0]}" in failed.output
    assert CliRunner().invoke(command, ["--out", out]).exit_code == 2
