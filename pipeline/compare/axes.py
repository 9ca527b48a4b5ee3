"""The cells of a grid: which folder of scores belongs to which model, checkpoint and data set.

A pattern such as ``scores/{dataset}/{model}/{checkpoint}`` names an axis in each pair of braces.
The values of the axes are a person's list, since only that says what is missing; without one they
are what is found on the disk.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from pipeline.config import parse_yaml
from pipeline.errors import ConfigError, ScoresError, did_you_mean, shown
from pipeline.report.results import SUMMARY

_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Axes:
    """A grid.

    Attributes:
        pattern: of the folders of scores.
        values: axis -> its values, both in the order of the table.
    """

    pattern: str
    values: dict[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the axes."""
        return tuple(self.values)

    def folder(self, cell: Mapping[str, str]) -> Path:
        """The scores of ``cell``, which has a value for each axis."""
        return Path(_FIELD.sub(lambda field: cell[field[1]], self.pattern))

    def along(self, names: Sequence[str]) -> Iterator[dict[str, str]]:
        """Each combination of the values of some axes; the last one changes fastest."""
        for values in product(*(self.values[name] for name in names)):
            yield dict(zip(names, values, strict=True))


def read_axes(pattern: str, file: Path) -> Axes:
    """The values that a YAML file lists: ``model: [small, large]`` and so on.

    The order of the axes is that of the file, which may hold other keys.

    Raises:
        ConfigError: no such file, or an axis of the pattern without a list of values in it.
    """
    names = _names(pattern)
    try:
        content = parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--axes {file}: cannot be read ({error})") from None
    if not isinstance(content, dict):
        raise ConfigError(f"--axes {file}: expected a list of values for each axis")
    for name in names:
        if name not in content:
            hint = did_you_mean(name, map(str, content))
            raise ConfigError(f"--axes {file}: no key '{name}' for {{{name}}} of {pattern}{hint}")
    return Axes(
        pattern, {name: _list(file, name, content[name]) for name in content if name in names}
    )


def find_axes(pattern: str) -> Axes:
    """The values of the axes that are found on the disk, numbers in their order.

    Raises:
        ConfigError: the pattern names no axis.
        ScoresError: there are no scores.
    """
    names = _names(pattern)
    pattern = str(Path(pattern))  # without ./ and the like, as the paths that are found
    text, wildcard = "", ""
    for place, part in enumerate(_FIELD.split(pattern)):
        text += f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part)
        wildcard += "*" if place % 2 else glob.escape(part)
    found = [
        re.fullmatch(text, str(Path(path).parent)) for path in glob.glob(f"{wildcard}/{SUMMARY}")
    ]
    cells = [match.groupdict() for match in found if match is not None]
    if not cells:
        raise ScoresError(
            f"there are no scores in {pattern}: no folder of that form has a {SUMMARY}"
        )
    return Axes(
        pattern,
        {name: tuple(sorted({cell[name] for cell in cells}, key=_natural)) for name in names},
    )


def _names(pattern: str) -> list[str]:
    names = _FIELD.findall(pattern)
    if not names:
        raise ConfigError(
            f"{pattern} names no axis: write it in braces, such as scores/{{model}}/{{checkpoint}}"
        )
    for name in names:
        if not name.isidentifier():
            raise ConfigError(
                f"{pattern}: {{{name}}} is no name of an axis; use letters and digits"
            )
        if names.count(name) > 1:
            raise ConfigError(f"{pattern} names the axis {{{name}}} twice")
    return names


def _list(file: Path, name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not values:
        raise ConfigError(f"--axes {file}: {name} must be a list of values, got {shown(values)}")
    texts = [str(value) for value in values]
    for value, text in zip(values, texts, strict=True):
        if isinstance(value, list | dict | bool) or value is None:
            raise ConfigError(
                f"--axes {file}: {name} holds {shown(value)}; quote a value that is to be a text"
            )
        if texts.count(text) > 1:
            raise ConfigError(f"--axes {file}: {name} holds {shown(text)} twice")
    return tuple(texts)


def _natural(text: str) -> list[tuple[int, str]]:
    """``step-200`` before ``step-1000``."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", text)]
