"""Audio columns, in every form that they come in."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import soxr

from pipeline.errors import ConfigError, DataError
from pipeline.predict.audio import AudioColumn, audio_content, form_of
from pipeline.predict.examples import Examples
from pipeline.schema import examples_schema

RATE = 16_000
SECONDS = np.arange(RATE // 10) / RATE
TONE = (0.5 * np.sin(2 * np.pi * 440 * SECONDS)).astype(np.float32)


def write_audio(path: Path, values: list[Any], type_: pa.DataType | None = None) -> Examples:
    """Examples whose one input column ``audio`` holds ``values``."""
    columns = {
        "row": pa.array(range(len(values)), pa.int64()),
        "id": pa.array([str(row) for row in range(len(values))]),
        "references": pa.array([["a"]] * len(values), pa.list_(pa.string())),
        "audio": pa.array(values, type_),
    }
    schema = examples_schema([pa.field("audio", columns["audio"].type)], ["audio"], [])
    pq.write_table(pa.table(columns, schema=schema), path)
    return Examples(path)


def read(examples: Examples, rate: int = RATE, own: int | None = None) -> list[np.ndarray]:
    return AudioColumn(examples, own).read(examples.read(0, examples.rows), rate)


def wav(samples: np.ndarray, rate: int = RATE, format: str = "WAV") -> bytes:
    content = io.BytesIO()
    soundfile.write(
        content, samples, rate, format=format, subtype="FLOAT" if format == "WAV" else None
    )
    return content.getvalue()


def test_every_form_is_the_same_audio(tmp_path: Path) -> None:
    file = tmp_path / "tone.wav"
    file.write_bytes(wav(TONE))
    files = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    arrays = pa.struct([("array", pa.list_(pa.float32())), ("sampling_rate", pa.int64())])
    forms = [
        ([str(file)], pa.string(), None),
        ([wav(TONE)], pa.binary(), None),
        ([{"bytes": wav(TONE), "path": "gone.wav"}], files, None),
        ([{"bytes": None, "path": str(file)}], files, None),
        ([TONE.tolist()], pa.list_(pa.float32()), RATE),
        ([TONE.tolist()], pa.large_list(pa.float64()), RATE),
        ([{"array": TONE.tolist(), "sampling_rate": RATE}], arrays, None),
    ]
    for values, type_, rate in forms:
        (heard,) = read(write_audio(tmp_path / "e.parquet", values, type_), own=rate)
        assert heard.dtype == np.float32
        np.testing.assert_array_equal(heard, TONE)


def test_integers_are_pcm(tmp_path: Path) -> None:
    examples = write_audio(tmp_path / "e.parquet", [[0, 16384, -32768]], pa.list_(pa.int16()))
    (heard,) = read(examples, own=RATE)
    assert heard.tolist() == [0.0, 0.5, -1.0]


def test_another_rate_is_resampled(tmp_path: Path) -> None:
    stereo = np.stack([TONE, -TONE / 2], axis=1)
    examples = write_audio(tmp_path / "e.parquet", [wav(stereo, 44_100), wav(stereo, RATE)])
    changed, kept = read(examples)
    np.testing.assert_allclose(changed, soxr.resample(stereo.mean(axis=1), 44_100, RATE), atol=1e-6)
    np.testing.assert_allclose(kept, stereo.mean(axis=1), atol=1e-7)
    assert abs(len(changed) - len(TONE) * RATE / 44_100) < 2


def test_compressed_files_are_read(tmp_path: Path) -> None:
    (heard,) = read(write_audio(tmp_path / "e.parquet", [wav(TONE, format="FLAC")]))
    np.testing.assert_allclose(heard, TONE, atol=1e-4)


@pytest.mark.parametrize(
    ("type_", "form"),
    [
        (pa.int64(), None),
        (pa.list_(pa.string()), None),
        (pa.struct([("array", pa.string()), ("sampling_rate", pa.int64())]), None),
        (pa.struct([("path", pa.string())]), "file"),
        (pa.list_(pa.float32(), 4), "samples"),
        (pa.large_string(), "path"),
        (pa.large_binary(), "bytes"),
    ],
    ids=str,
)
def test_types(type_: pa.DataType, form: str | None) -> None:
    assert form_of(type_) == form


def test_mistakes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    with pytest.raises(ConfigError, match=r"'audio' holds int64, which is no audio"):
        AudioColumn(write_audio(path, [5]), None)
    with pytest.raises(ConfigError, match="predict.sampling_rate: .* bare samples"):
        AudioColumn(write_audio(path, [[0.5]]), None)
    file = tmp_path / "tone.wav"
    file.write_bytes(wav(TONE))
    with pytest.raises(DataError, match=r"row 1: column 'audio' names the audio file 'gone.wav'"):
        read(write_audio(path, [str(file), "gone.wav"]))
    with pytest.raises(DataError, match=r"row 0: the audio in column 'audio' cannot be read"):
        read(write_audio(path, [b"not audio"]))
    for wrong in (float("nan"), float("inf"), None):
        with pytest.raises(DataError, match=r"row 1: .* samples that are null, NaN or infinite"):
            read(write_audio(path, [[0.5], [0.5, wrong]], pa.list_(pa.float32())), own=RATE)


def test_the_fingerprint_covers_files_that_are_named(tmp_path: Path) -> None:
    file = tmp_path / "tone.wav"
    file.write_bytes(wav(TONE))
    path = tmp_path / "e.parquet"
    write_audio(path, [str(file)])
    before = audio_content(path)
    assert before is not None
    assert audio_content(path) == before
    file.write_bytes(wav(-TONE))
    assert audio_content(path) != before
    moved = shutil.move(file, tmp_path / "moved.wav")
    with pytest.raises(DataError, match="is not there"):
        audio_content(path)
    write_audio(path, [Path(moved).read_bytes()])
    assert audio_content(path) is None  # in the examples themselves


def test_several_input_columns_are_refused(tmp_path: Path) -> None:
    examples = write_audio(tmp_path / "e.parquet", [wav(TONE)])
    examples.inputs = ("audio", "text")
    with pytest.raises(ConfigError, match=r"prepare.input names 2 \(audio, text\)"):
        AudioColumn(examples, None)
