"""Every error a person can cause, as one tree.

    TwophaseError
    ├── ConfigError            a key, a value or an option
    ├── DataError              the data set or examples.parquet
    ├── ModelError             a model folder, a tokenizer, a chat template
    ├── OutOfMemoryError       rows that the device cannot hold
    ├── RankError              another rank of the same run failed
    ├── PredictionSetError     a prediction set as a whole
    │   ├── DamagedChunkError      a chunk that is truncated, altered or of another schema
    │   ├── MissingChunksError     chunks that are not there (yet)
    │   ├── FingerprintError       two runs that must not mix
    │   ├── LockedStoreError       another process is writing
    │   └── ObjectStoreError       a URL that cannot be reached, read or written
    ├── ScoresError            scores/ or metrics.json that the report cannot use
    ├── ClusterError           a scheduler or workers that cannot score
    └── MissingExtraError      a stage whose install extra is not installed

Each message says what went wrong, where, what was found, and what to do. The commands in
``stages`` print it as one line and exit with 1; anything that is not a ``TwophaseError`` is a bug
and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# What a message shows of a value, in characters, and of a list of names.
LONGEST_SHOWN = 60
MOST_LISTED = 20
_MOST_KNOWN = 12


class TwophaseError(Exception):
    """Base of all expected errors."""


class ConfigError(TwophaseError):
    """A parameter or option that cannot be used."""


class DataError(TwophaseError):
    """A data set, or examples.parquet, that cannot be used."""


class ModelError(TwophaseError):
    """A model or tokenizer that cannot be loaded or does not fit the settings."""


class OutOfMemoryError(TwophaseError):
    """Rows that do not fit the device's memory, not even alone."""


class RankError(TwophaseError):
    """Another process of the same run failed, or cannot be reached."""


class PredictionSetError(TwophaseError):
    """A prediction set that cannot be used."""


class DamagedChunkError(PredictionSetError):
    """A chunk whose bytes, schema or metadata are not what was written."""


class MissingChunksError(PredictionSetError):
    """Chunks that the run card promises and the folder does not hold."""


class FingerprintError(PredictionSetError):
    """Two sets of settings that would end up in one prediction set."""


class LockedStoreError(PredictionSetError):
    """Another process holds the store."""


class ObjectStoreError(PredictionSetError):
    """A URL that cannot be reached, read or written."""


class ScoresError(TwophaseError):
    """Scores that cannot be reported."""


class ClusterError(TwophaseError):
    """A scheduler that cannot be reached, or workers that cannot score."""


class MissingExtraError(TwophaseError):
    """A stage whose packages are not installed."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``' (did you mean a or b?)'`` for close matches of ``name``, else the list of known names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f" (did you mean {' or '.join(map(one_line, close))}?)"
    return f" (known: {listed(names, _MOST_KNOWN)})"


def shown(value: object) -> str:
    """``value`` for a message: quoted as Python would, on one line, cut after 60 characters."""
    if isinstance(value, str):
        quoted = repr(value[: LONGEST_SHOWN + 1])
        cut = len(value) > LONGEST_SHOWN or len(quoted) > LONGEST_SHOWN + 2
        return quoted[: LONGEST_SHOWN - 1] + "…" + quoted[0] if cut else quoted
    return one_line(repr(value))


def one_line(text: str) -> str:
    """``text`` for a message, without quotes: on one line, cut like ``shown``."""
    start = text[: LONGEST_SHOWN + 1]
    escaped = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in start
    )
    return escaped if len(escaped) <= LONGEST_SHOWN else escaped[: LONGEST_SHOWN - 1] + "…"


def first_line(error: BaseException) -> str:
    """The first line of an error's message that says something, with the next after a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].endswith(":"):
        return " ".join(lines[:2])
    return lines[0] if lines else type(error).__name__


def listed(names: Iterable[str], most: int = MOST_LISTED) -> str:
    """Names for a message, separated by commas: each on one line, the first ``most`` of them."""
    names = list(names)
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(map(one_line, names[:most])) + more
