"""From the columns of a row to the token ids of its prompt.

A prompt that is too long has a *field* cut, never the template: the question at the end of the
template and the markers of a chat template always reach the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.predict.template import Template


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
