"""The text around the columns of a row: ``predict.template``."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from pipeline.errors import ConfigError, did_you_mean, listed, one_line


class Template:
    """A format string over the input columns: ``{name}``, with ``{{`` and ``}}`` for braces.

    Args:
        text: the format string; None is the one input column itself.
        columns: the input columns.

    Attributes:
        fields: the input columns that it names, in order.
        only_fields: there is no other text, so that a row of empty fields gives an empty prompt.

    Raises:
        ConfigError: not a format string, a name that is no input column, no name at all, or
            None with several input columns.
    """

    def __init__(self, text: str | None, columns: Sequence[str]) -> None:
        if text is None:
            if len(columns) != 1:
                raise ConfigError(
                    f"predict.template: there are several input columns ({listed(columns)}); "
                    "say how to put them together, such as '{" + "} {".join(columns) + "}'"
                )
            self._parts: list[tuple[str, str | None]] = [("", columns[0])]
        else:
            self._parts = _parse(text, columns)
        self.fields = tuple(dict.fromkeys(name for _, name in self._parts if name is not None))
        self.only_fields = not any(literal for literal, _ in self._parts)

    def render(self, values: Mapping[str, str]) -> str:
        """The prompt text for one row."""
        return "".join(
            literal + (values[name] if name is not None else "") for literal, name in self._parts
        )


def _parse(text: str, columns: Sequence[str]) -> list[tuple[str, str | None]]:
    parts: list[tuple[str, str | None]] = []
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ConfigError(
            f"predict.template: {error}; a brace that is meant as text is written twice"
        ) from None
    for literal, name, spec, conversion in parsed:
        if name is not None and (spec or conversion):
            raise ConfigError(
                f"predict.template: {{{one_line(name)}}} takes no format or conversion after its "
                "name"
            )
        if name is not None and name not in columns:
            raise ConfigError(
                f"predict.template: '{{{one_line(name)}}}' is not an input column"
                f"{did_you_mean(name, columns)}; input columns are named in prepare.input"
            )
        parts.append((literal, name))
    if all(name is None for _, name in parts):
        raise ConfigError(
            "predict.template names no input column, so every prompt would be the same; "
            f"use {{{columns[0]}}}"
        )
    return parts
