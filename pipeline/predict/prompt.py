"""From the columns of a row to the token ids of its prompt.

A prompt that is too long has a *field* cut, never the template: the question at the end of the
template and the markers of a chat template always reach the model.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import ConfigError, DataError, did_you_mean, listed, one_line, shown


@dataclass(frozen=True, slots=True)
class Prompt:
    """One row's prompt.

    Attributes:
        ids: token ids, without padding.
        truncated: a field was cut to make it fit.
        row: number of the row in the data set; a sampled row's random numbers depend on it.
    """

    ids: list[int]
    truncated: bool
    row: int = 0

    @property
    def length(self) -> int:
        """Tokens that the row takes up in a batch, new ones aside."""
        return len(self.ids)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.ids)


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


class PromptBuilder:
    """Makes prompts of at most ``max_tokens`` tokens.

    Args:
        template: how a row becomes text.
        encode: texts -> token ids, chat template and special tokens included.
        max_tokens: longest prompt; None is no limit.
    """

    def __init__(
        self,
        template: Template,
        encode: Callable[[list[str]], list[list[int]]],
        max_tokens: int | None,
    ) -> None:
        self._template = template
        self._encode = encode
        self._max_tokens = max_tokens

    def build(
        self, rows: Sequence[Mapping[str, str]], room: Sequence[int] | None = None
    ) -> list[Prompt]:
        """Prompts of ``rows``, in order.

        Args:
            rows: input column -> text.
            room: most tokens per row, where that is less than ``max_tokens``.

        Raises:
            ConfigError: the template alone is too long.
        """
        encoded = self._encode([self._template.render(values) for values in rows])
        prompts = []
        for place, (values, ids) in enumerate(zip(rows, encoded, strict=True)):
            limit = self._max_tokens
            if room is not None:
                limit = room[place] if limit is None else min(limit, room[place])
            if limit is not None and len(ids) > limit:
                prompts.append(self._fit(values, ids, limit))
            else:
                prompts.append(Prompt(ids, truncated=False))
        return prompts

    def _fit(self, values: Mapping[str, str], ids: list[int], limit: int) -> Prompt:
        """Cut the longest field, then the next, until the prompt fits."""
        kept = dict(values)
        for name in sorted(self._template.fields, key=lambda field: -len(values[field])):
            text = kept[name]
            low, high = 0, len(text)  # the longest prefix that fits has low..high-1 characters
            fitting: list[int] | None = None
            while low < high:
                middle = (low + high) // 2
                kept[name] = text[:middle]
                ids = self._encode([self._template.render(kept)])[0]
                if len(ids) > limit:
                    high = middle
                else:
                    fitting, low = ids, middle + 1
            if fitting is not None:
                return Prompt(fitting, truncated=True)
            kept[name] = ""
        raise ConfigError(
            f"predict.template: with all fields empty the prompt still has {len(ids)} tokens, more "
            f"than the {limit} that fit; shorten the template, lower "
            "predict.generation.max_new_tokens, or raise predict.max_prompt_tokens"
        )


def check_fields(template: Template, schema: pa.Schema) -> None:
    """Check that every field of ``template`` is a column whose values have a text.

    Raises:
        DataError: a column of bytes, lists or structs; names it and its type.
    """
    for name in template.fields:
        kind = _plain_type(schema.field(name).type)
        if pa.types.is_nested(kind) or _is_bytes(kind):
            raise DataError(
                f"the input column {shown(name)} holds {one_line(str(kind))}, which no prompt text "
                "can be made of; make it a column of text, or name another in prepare.input"
            )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """What the values are, under dictionaries and extensions."""
    while isinstance(kind, pa.BaseExtensionType | pa.DictionaryType):
        is_extension = isinstance(kind, pa.BaseExtensionType)
        kind = kind.storage_type if is_extension else kind.value_type
    return kind


def _is_text(kind: pa.DataType) -> bool:
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)


def _is_bytes(kind: pa.DataType) -> bool:
    checks = (
        *(pa.types.is_binary, pa.types.is_large_binary),
        *(pa.types.is_fixed_size_binary, pa.types.is_binary_view),
    )
    return any(check(kind) for check in checks)


def check_not_empty(template: Template, columns: Iterable[pa.Table]) -> None:
    """Check that no row has only empty fields, where the template has no text besides.

    Args:
        template: how a row becomes text.
        columns: the columns ``row``, ``id`` and those of the template's fields, some rows at a
            time.

    Raises:
        DataError: names the first such row.
    """
    for table in columns:
        fields = [table.column(name) for name in template.fields]
        if not all(_is_text(_plain_type(field.type)) for field in fields):
            return  # a number is never empty
        empty = pa.array([True] * table.num_rows)
        for field in fields:
            empty = pc.and_(empty, pc.equal(field.cast(pa.string()), ""))
        place = pc.index(empty, True).as_py()
        if place >= 0:
            row, identifier = (table.column(name)[place].as_py() for name in ("row", "id"))
            raise DataError(
                f"row {row} (id {shown(identifier)}): {listed(template.fields)} is empty and "
                "predict.template has no text besides, so there is no prompt; put some text into "
                "predict.template, or leave the row out of the data set"
            )


def field_texts(columns: Mapping[str, Sequence[object]], first_row: int) -> list[dict[str, str]]:
    """Rows of input values as text; numbers and booleans are written as Python writes them.

    Args:
        columns: column name -> values, all of one length.
        first_row: number of the first row, for the message.

    Raises:
        DataError: a value is null.
    """
    rows = []
    for offset, values in enumerate(zip(*columns.values(), strict=True)):
        texts = dict(zip(columns, values, strict=True))
        for name, value in texts.items():
            if value is None:
                raise DataError(
                    f"row {first_row + offset}: input column {shown(name)} is null; remove the "
                    "row or give it a text, and prepare again"
                )
        rows.append({name: str(value) for name, value in texts.items()})
    return rows
