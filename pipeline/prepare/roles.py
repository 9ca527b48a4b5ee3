"""Which column of the data set means what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import ConfigError, DataError, did_you_mean, listed, shown
from pipeline.prepare.config import PrepareConfig
from pipeline.schema import EXAMPLE_COLUMNS, RESERVED_COLUMNS


class Wanted(Protocol):
    """The columns that somebody reads from a data set: prepare by ``Roles``, ingest by its own.

    Attributes:
        texts: columns that become texts, read as Python values.
        carried: columns that stay as they are.
        needed: every column that is read, once.
        remedy: what to do about a column that is not there, for messages.
    """

    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def carried(self) -> tuple[str, ...]: ...
    @property
    def needed(self) -> tuple[str, ...]: ...
    @property
    def remedy(self) -> str: ...


@dataclass(frozen=True)
class Roles:
    """The columns that are read, by what they are for.

    Attributes:
        id: column with the id; None numbers the rows.
        references: columns with the references.
        inputs: columns that prompts are made of.
        keep: columns carried through to the scores.
    """

    id: str | None
    references: tuple[str, ...]
    inputs: tuple[str, ...]
    keep: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns whose values become the id and the references."""
        identifier = () if self.id is None else (self.id,)
        return tuple(dict.fromkeys((*identifier, *self.references)))

    @property
    def carried(self) -> tuple[str, ...]:
        """Columns written as they are: inputs, then kept ones, without those already there."""
        return tuple(
            name for name in dict.fromkeys((*self.inputs, *self.keep)) if name not in self._present
        )

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        return tuple(dict.fromkeys((*self.texts, *self.carried)))

    @property
    def remedy(self) -> str:
        return "set prepare.input, references, id or keep to columns of the data set"

    @property
    def _present(self) -> set[str]:
        """Columns that examples.parquet holds anyway, under the name they have."""
        present = set()
        if self.id == "id":
            present.add("id")
        if self.references == ("references",):
            present.add("references")
        return present

    def check_names(self) -> None:
        """Check that no carried column hides one of ours.

        Raises:
            ConfigError: an input called ``row``, a kept column called ``prediction``, ….
        """
        for key, names, taken in (
            ("prepare.input", self.inputs, EXAMPLE_COLUMNS),
            ("prepare.keep", self.keep, RESERVED_COLUMNS),
        ):
            for name in names:
                if name in taken and name not in self._present:
                    raise ConfigError(
                        f"{key}: {shown(name)} is the name of a column that this program writes; "
                        "rename the column in the data set"
                    )


def roles_of(config: PrepareConfig) -> Roles:
    """The roles that the ``prepare`` section gives.

    Raises:
        ConfigError: no input or reference column, one named twice, or a reserved name.
    """
    roles = Roles(
        id=config.id,
        references=_names("prepare.references", config.references),
        inputs=_names("prepare.input", config.input),
        keep=_names("prepare.keep", config.keep, may_be_empty=True),
    )
    roles.check_names()
    return roles


def _names(key: str, value: str | Sequence[str], *, may_be_empty: bool = False) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not names and not may_be_empty:
        raise ConfigError(f"{key} names no column")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{key} names the column {shown(name)} twice")
    return names


def check_columns(
    where: str, wanted: Wanted, there: Sequence[str], reason: str | None = None
) -> None:
    """Check that every wanted column is there, and once.

    Args:
        where: how messages name the data set.
        wanted: columns that are read.
        there: columns of the data set.
        reason: why a column may be missing, with the remedy; None is not known.

    Raises:
        DataError: names the column, the close matches and the columns there are.
    """
    for name in wanted.needed:
        if name not in there:
            if reason is not None:
                raise DataError(f"{where} has no column {shown(name)}: {reason}")
            close = did_you_mean(name, there)
            known = "" if close.startswith(" (known") else f"; its columns: {listed(there)}"
            raise DataError(f"{where} has no column {shown(name)}{close}{known}; {wanted.remedy}")
        if list(there).count(name) > 1:
            raise DataError(f"{where} has two columns {shown(name)}; rename one of them")
