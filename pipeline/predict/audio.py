"""Audio columns: what is in them, read, mixed to one channel and resampled.

A column may hold, row by row,

* the path of an audio file, absolute or from the folder in which predict runs;
* the bytes of an audio file;
* a struct of ``bytes`` and ``path``, one of which may be null, as ``datasets`` stores
  ``Audio(decode=False)``;
* samples as a list of numbers, whose rate ``predict.sampling_rate`` says;
* a struct of ``array`` and ``sampling_rate``.

May not import torch: the fingerprint covers the files that paths name.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pipeline.errors import ConfigError, DataError
from pipeline.predict.examples import Examples
from pipeline.store.chunk import file_sha256

Form = Literal["path", "bytes", "file", "samples", "array"]


class AudioColumn:
    """The input column of ``examples``, as audio.

    Attributes:
        name: of the column.
        form: how it holds the audio.

    Raises:
        ConfigError: several input columns, no audio in the column, or no rate for its samples.
    """

    def __init__(self, examples: Examples, sampling_rate: int | None) -> None:
        if len(examples.inputs) != 1:
            raise ConfigError(
                f"speech is read from one input column, prepare.input names "
                f"{len(examples.inputs)} ({', '.join(examples.inputs)}); name the one with audio"
            )
        (self.name,) = examples.inputs
        type_ = examples.schema.field(self.name).type
        form = form_of(type_)
        if form is None:
            raise ConfigError(
                f"the input column '{self.name}' holds {type_}, which is no audio: paths, bytes, "
                "lists of samples, or structs of bytes and path or of array and sampling_rate are"
            )
        if form == "samples" and sampling_rate is None:
            raise ConfigError(
                f"predict.sampling_rate: the input column '{self.name}' holds bare samples; say at "
                "how many Hz they were taken"
            )
        self.form: Form = form
        self._rate = sampling_rate

    def read(self, examples: pa.Table, rate: int) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
        """One channel of float32 samples at ``rate`` Hz per row.

        Raises:
            DataError: a row without audio, or one that cannot be read; names the row.
        """
        rows = examples.column("row").to_pylist()
        values = examples.column(self.name)
        heard = []
        for row, value in zip(rows, values, strict=True):
            samples, own_rate = self._decoded(row, value)
            if not np.isfinite(samples).all():
                raise DataError(
                    f"row {row}: column '{self.name}' holds samples that are null, NaN or "
                    "infinite; mend them, or leave the row out of the data set"
                )
            if samples.ndim == 2:
                samples = samples.mean(axis=1)
            if own_rate != rate:
                import soxr

                samples = soxr.resample(samples, own_rate, rate)
            heard.append(np.ascontiguousarray(samples, dtype=np.float32))
        return heard

    def _decoded(self, row: int, value: Any) -> tuple[np.ndarray[Any, Any], int]:
        """Samples, (time,) or (time, channels) float32, and their rate."""
        if self.form == "samples":
            assert self._rate is not None
            return _numbers(row, self.name, value.values), self._rate
        if self.form == "array":
            own_rate = value["sampling_rate"].as_py()
            if not own_rate:
                raise DataError(f"row {row}: column '{self.name}' has no sampling_rate")
            return _numbers(row, self.name, value["array"].values), int(own_rate)
        path, content = self._file(row, value.as_py())
        import soundfile

        source = io.BytesIO(content) if content is not None else str(path)
        try:
            samples, own_rate = soundfile.read(source, dtype="float32", always_2d=True)
        except (soundfile.SoundFileError, OSError) as error:
            raise DataError(
                f"row {row}: {path or 'the audio'} in column '{self.name}' cannot be read "
                f"({error}); libsndfile reads WAV, FLAC, OGG and MP3"
            ) from None
        return samples, int(own_rate)

    def _file(self, row: int, value: Any) -> tuple[Path | None, bytes | None]:
        """The path and the bytes, one of which is there."""
        path, content = value, None
        if self.form == "bytes":
            path, content = None, value
        elif self.form == "file":
            path, content = value.get("path"), value.get("bytes")
        if content is not None:
            return (Path(path) if path else None), content
        if not path or not Path(path).is_file():
            raise DataError(
                f"row {row}: column '{self.name}' names the audio file {path!r}, which is not "
                f"there (from {Path.cwd()}); correct the path, or store the bytes"
            )
        return Path(path), None

    def paths(self, examples: Examples) -> Iterator[Path]:
        """The files that the column names, in row order."""
        if self.form not in ("path", "file"):
            return
        for start in range(0, examples.rows, 1000):
            table = examples.read(start, min(start + 1000, examples.rows))
            rows = table.column("row").to_pylist()
            for row, value in zip(rows, table.column(self.name).to_pylist(), strict=True):
                path, content = self._file(row, value)
                if content is None and path is not None:
                    yield path


def form_of(type_: pa.DataType) -> Form | None:
    """How a column of this type holds audio; None where it does not."""
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "path"
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return "bytes"
    if _is_numbers(type_):
        return "samples"
    if pa.types.is_struct(type_):
        names = {field.name for field in type_}
        if {"array", "sampling_rate"} <= names and _is_numbers(type_.field("array").type):
            return "array"
        if "bytes" in names or "path" in names:
            return "file"
    return None


def audio_content(path: Path) -> str | None:
    """One hash over the audio files that the examples at ``path`` name; None where it names none.

    Samples and bytes lie in the examples themselves.
    """
    examples = Examples(path)
    column = AudioColumn(examples, sampling_rate=1)  # the rate does not matter here
    hashes = [file_sha256(file) for file in column.paths(examples)]
    return hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else None


def _is_numbers(type_: pa.DataType) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_list(type_) for is_list in lists):
        return False
    return bool(pa.types.is_floating(type_.value_type) or pa.types.is_integer(type_.value_type))


def _numbers(row: int, name: str, values: Any) -> np.ndarray[Any, Any]:
    if values is None:
        raise DataError(f"row {row}: column '{name}' has no samples")
    samples = values.to_numpy(zero_copy_only=False).astype(np.float32)
    if pa.types.is_integer(values.type):  # PCM of the type's width
        samples /= 2.0 ** (values.type.bit_width - 1)
    return np.asarray(samples)
