"""Rows of text columns as prompts, with the model's tokenizer, chat template and window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline.errors import ConfigError, ModelError
from pipeline.predict.prompt import Prompt, PromptBuilder, Template, field_texts


class TextPrompts:
    """Makes prompts of a chunk's rows.

    Args:
        tokenizer: the model's.
        template: how a row becomes text.
        chat: wrap the prompt in the tokenizer's chat template, as a user's message.
        max_tokens: longest prompt; None is no limit.

    Raises:
        ModelError: ``chat`` is on and the tokenizer has no chat template.
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

        try:
            wrapped: str = self._tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:  # broken, or it refuses such a conversation itself
            raise ModelError(
                f"the model's chat template cannot be used with one user's message ({error}); "
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


def window_tokens(model: Any) -> int | None:
    """Longest sequence that the model takes; None where positions are relative."""
    window: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return window
