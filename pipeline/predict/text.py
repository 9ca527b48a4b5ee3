"""Rows of text columns as prompts, with the model's tokenizer, chat template and window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from pipeline.errors import ConfigError, ModelError, first_line
from pipeline.predict.fields import field_texts
from pipeline.predict.prompt import Prompt, PromptBuilder
from pipeline.predict.template import Template

_MARKER = "text"  # what a chat template must let through
# Templates that write the date (Llama 3.2) would give a run other tokens tomorrow, and a resumed
# one two kinds of them. This is the date that Meta's write where there is no clock.
_TEMPLATE_TIME = datetime(2024, 7, 26)


class TextPrompts:
    """Makes prompts of a chunk's rows.

    Args:
        tokenizer: the model's.
        template: how a row becomes text.
        chat: wrap the prompt in the tokenizer's chat template, as a user's message.
        max_tokens: longest prompt; None is no limit.

    Raises:
        ModelError: ``chat`` is on and the tokenizer has no chat template, or one that cannot be
            used.
    """

    def __init__(
        self, tokenizer: Any, template: Template, *, chat: bool, max_tokens: int | None
    ) -> None:
        if chat and not tokenizer.chat_template:
            raise ModelError(
                "predict.chat is on, but the model's tokenizer has no chat template; "
                "turn it off, or use the instruction-tuned variant of the model"
            )
        self._tokenizer = tokenizer
        self._chat = chat
        self._fields = template.fields
        self._builder = PromptBuilder(template, self._encode, max_tokens)
        if chat and _MARKER not in self._chat_text(_MARKER).lower():
            raise ModelError(
                "the model's chat template leaves the text of a user's message out, so every "
                "prompt would be the same; mend chat_template.jinja beside the model, or set "
                "predict.chat to false"
            )

    def _encode(self, texts: list[str]) -> list[list[int]]:
        if self._chat:
            # The template writes the special tokens itself; a second BOS would be a mistake.
            texts = [self._chat_text(text) for text in texts]
        encoded: list[list[int]] = self._tokenizer(
            texts,
            add_special_tokens=not self._chat,
            padding=False,
            truncation=False,
            return_attention_mask=False,
        )["input_ids"]
        return encoded

    def _chat_text(self, text: str) -> str:
        from jinja2 import TemplateError
        from transformers.utils.chat_template_utils import _compile_jinja_template

        # What a template of a stranger may raise: its own refusal, or any error of an expression.
        failures = (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError)
        try:
            compiled = _compile_jinja_template(self._tokenizer.get_chat_template())  # it is cached
            compiled.globals["strftime_now"] = _TEMPLATE_TIME.strftime
            wrapped: str = self._tokenizer.apply_chat_template(
                [{"role": "user", "content": text}],
                tokenize=False,
                add_generation_prompt=True,
            )
        except (*failures, ValueError) as error:
            raise ModelError(
                "the model's chat template cannot be used with one user's message "
                f"({first_line(error)}); "
                "mend chat_template.jinja beside the model, or set predict.chat to false"
            ) from None
        return wrapped

    def build(self, examples: pa.Table, room: Sequence[int] | None = None) -> list[Prompt]:
        """Prompts of a chunk's rows, in order; see ``PromptBuilder.build``.

        Raises:
            ConfigError: a prompt without a token, or a template that is too long.
            DataError: an input that is null.
        """
        columns = {name: examples.column(name).to_pylist() for name in self._fields}
        rows: list[int] = examples.column("row").to_pylist()
        prompts = self._builder.build(field_texts(columns, rows[0]), room)
        for row, prompt in zip(rows, prompts, strict=True):
            if not prompt.ids:
                raise ConfigError(
                    f"row {row} gives a prompt without a token, which the model "
                    "cannot continue; put some text into predict.template"
                )
        return [replace(prompt, row=row) for row, prompt in zip(rows, prompts, strict=True)]


def check_known(model: Any, row: int, ids: Sequence[int]) -> None:
    """A tokenizer may know more tokens than the model has embeddings.

    Raises:
        ModelError: names the row.
    """
    known = known_tokens(model)
    if known is not None and ids and max(ids) >= known:
        raise ModelError(
            f"row {row} has token id {max(ids)}, but the model knows {known} tokens: the tokenizer "
            "is another model's, or the embeddings were not resized"
        )


def known_tokens(model: Any) -> int | None:
    """Tokens that the model has embeddings of; None where it does not say."""
    count: int | None = getattr(model.get_input_embeddings(), "num_embeddings", None)
    return count


def window_tokens(model: Any) -> int | None:
    """Longest sequence that the model takes; None where positions are relative."""
    window: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return window
