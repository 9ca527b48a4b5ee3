"""Audio columns are carried as they are: predict reads them, prepare does not decode them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.predict.audio import AudioColumn
from pipeline.predict.examples import Examples
from pipeline.prepare.config import PrepareConfig
from pipeline.prepare.prepare import prepare
from tests.predict.test_audio import RATE, TONE, wav

FILES = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
ARRAYS = pa.struct([("array", pa.list_(pa.float64())), ("sampling_rate", pa.int64())])


def heard(dataset: Path, place: Path, **keys: Any) -> list[np.ndarray[Any, Any]]:
    config = PrepareConfig(
        dataset=str(dataset), input="audio", references="text", id=None, limit=None, **keys
    )
    prepare(config, place / "examples.parquet", place / "source")
    examples = Examples(place / "examples.parquet")
    return AudioColumn(examples, RATE).read(examples.read(0, examples.rows), RATE)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([wav(TONE), wav(-TONE)], pa.binary()),
        ([{"bytes": wav(TONE), "path": "a.wav"}, {"bytes": wav(-TONE), "path": None}], FILES),
        ([TONE.tolist(), (-TONE).tolist()], pa.list_(pa.float32())),
        (
            [
                {"array": TONE.tolist(), "sampling_rate": RATE},
                {"array": (-TONE).tolist(), "sampling_rate": RATE},
            ],
            ARRAYS,
        ),
    ],
    ids=["bytes", "file", "samples", "array"],
)
def test_parquet(values: list[Any], type_: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"audio": pa.array(values, type_), "text": ["a", "b"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    first, second = heard(tmp_path / "rows.parquet", tmp_path)
    np.testing.assert_array_equal(first, TONE)
    np.testing.assert_array_equal(second, -TONE)


def test_a_saved_data_set_with_audio_is_not_decoded(tmp_path: Path) -> None:
    """``datasets`` needs torchcodec to decode; its stored bytes need soundfile only."""
    from datasets import Audio, Dataset, Features, Value

    table = pa.table(
        {"audio": pa.array([{"bytes": wav(TONE), "path": None}] * 2, FILES), "text": ["a", "b"]}
    )
    features = Features({"audio": Audio(sampling_rate=RATE, decode=False), "text": Value("string")})
    Dataset(table.cast(features.arrow_schema)).cast(features).save_to_disk(tmp_path / "saved")
    for one in heard(tmp_path / "saved", tmp_path, split=None):
        np.testing.assert_array_equal(one, TONE)
    decoding = Features({"audio": Audio(sampling_rate=RATE), "text": Value("string")})
    Dataset(table.cast(decoding.arrow_schema)).cast(decoding).save_to_disk(tmp_path / "decoding")
    for one in heard(tmp_path / "decoding", tmp_path, split=None):
        np.testing.assert_array_equal(one, TONE)


def test_json_lines_name_files(tmp_path: Path) -> None:
    import json

    (tmp_path / "tone.wav").write_bytes(wav(TONE))
    line = json.dumps({"audio": str(tmp_path / "tone.wav"), "text": "a"})
    (tmp_path / "rows.jsonl").write_text(line + "\n")
    (one,) = heard(tmp_path / "rows.jsonl", tmp_path)
    np.testing.assert_array_equal(one, TONE)
