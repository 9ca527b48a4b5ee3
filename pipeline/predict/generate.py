"""The engine that calls ``generate``: causal and encoder–decoder language models.

Prompts are padded on the left for causal models (new tokens follow the prompt directly) and on
the right for encoders; what comes back is cut by the true length of what went in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.errors import ConfigError, ModelError
from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Prediction
from pipeline.predict.generation import generation_config
from pipeline.predict.load import Loaded
from pipeline.predict.memory import DeviceMemory
from pipeline.predict.prompt import Prompt, PromptBuilder, Template, field_texts
from pipeline.store.card import DecodeOptions


class GenerateEngine:
    """Generates with a loaded model; see ``engine.Engine``.

    Args:
        loaded: model, tokenizer and device.
        config: the ``predict`` section.
        template: how a row becomes text.
        fields: checked ``generation`` fields.

    Raises:
        ConfigError: a limit or generation value that does not fit the model.
        ModelError: ``chat`` is on and the tokenizer has no chat template.
    """

    def __init__(
        self,
        loaded: Loaded,
        config: PredictConfig,
        template: Template,
        fields: dict[str, Any],
    ) -> None:
        self._loaded = loaded
        self._generation = generation_config(loaded.model, loaded.tokenizer, fields)
        self.new_tokens = int(self._generation.max_new_tokens)
        self.memory = DeviceMemory(loaded.device)
        self.tokenizer_json = tokenizer_json(loaded.tokenizer)
        self.decode = decode_options(loaded.tokenizer)
        self._eos = _eos_ids(self._generation.eos_token_id)
        if config.chat and not loaded.tokenizer.chat_template:
            raise ModelError(
                "predict.chat is on, but the model's tokenizer has no chat template; "
                "turn it off, or use the instruction-tuned variant of the model"
            )
        self._chat = config.chat
        self._fields = template.fields
        self._prompts = PromptBuilder(template, self._encode, self._longest_prompt(config))

    def _longest_prompt(self, config: PredictConfig) -> int | None:
        """What the window leaves for the prompt, or what the settings allow if that is less."""
        text_config = self._loaded.model.config.get_text_config()
        # None where positions are relative.
        window: int | None = getattr(text_config, "max_position_embeddings", None)
        if window is None:
            return config.max_prompt_tokens
        # An encoder has a window of its own; a causal model shares it with the new tokens.
        room = window if self._loaded.kind == "seq2seq" else window - self.new_tokens
        if room < 1 or self.new_tokens > window:
            raise ConfigError(
                f"predict.generation.max_new_tokens: {self.new_tokens} do not fit the model's "
                f"window of {window} tokens beside a prompt"
            )
        return min(room, config.max_prompt_tokens or room)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        tokenizer = self._loaded.tokenizer
        if self._chat:
            # The template writes the special tokens itself; a second BOS would be a mistake.
            texts = [
                tokenizer.apply_chat_template(
                    [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
                )
                for text in texts
            ]
        encoded: list[list[int]] = tokenizer(
            texts,
            add_special_tokens=not self._chat,
            padding=False,
            truncation=False,
            return_attention_mask=False,
        )["input_ids"]
        return encoded

    def prompts(self, examples: pa.Table) -> list[Prompt]:
        """Prompts of a chunk's rows, in order."""
        columns = {name: examples.column(name).to_pylist() for name in self._fields}
        first_row = examples.column("row")[0].as_py()
        prompts = self._prompts.build(field_texts(columns, first_row))
        for offset, prompt in enumerate(prompts):
            if not prompt.ids:
                raise ConfigError(
                    f"row {first_row + offset} gives a prompt without a token, which the model "
                    "cannot continue; put some text into predict.template"
                )
        return prompts

    def predict(self, batch: Sequence[Prompt]) -> list[Prediction]:
        """Generate for ``batch``, in order."""
        import torch

        input_ids, attention_mask = pad(
            [prompt.ids for prompt in batch],
            self._generation.pad_token_id,
            left=self._loaded.kind == "causal",
        )
        device = self._loaded.device
        with torch.inference_mode():
            output = self._loaded.model.generate(
                input_ids=torch.tensor(input_ids, device=device),  # (batch, longest prompt) int64
                attention_mask=torch.tensor(attention_mask, device=device),
                generation_config=self._generation,
                tokenizer=self._loaded.tokenizer,
            )
        # A causal model returns the padded prompt before the new tokens, a decoder its start token.
        skip = len(input_ids[0]) if self._loaded.kind == "causal" else 1
        return [self._prediction(ids) for ids in output[:, skip:].tolist()]

    def _prediction(self, ids: list[int]) -> Prediction:
        new, finished = cut_at_eos(ids, self._eos)
        text = None
        if self.tokenizer_json is None:
            text = self._loaded.tokenizer.decode(new, skip_special_tokens=True)
        return Prediction(new, "eos" if finished else "length", text)


def pad(rows: list[list[int]], fill: int, *, left: bool) -> tuple[list[list[int]], list[list[int]]]:
    """Rows padded to one width, and their attention mask."""
    width = max(len(row) for row in rows)
    padded, mask = [], []
    for row in rows:
        gap = width - len(row)
        filling, ones, zeros = [fill] * gap, [1] * len(row), [0] * gap
        padded.append(filling + row if left else row + filling)
        mask.append(zeros + ones if left else ones + zeros)
    return padded, mask


def cut_at_eos(ids: list[int], eos: frozenset[int]) -> tuple[list[int], bool]:
    """``ids`` up to and including the first EOS, and whether there was one."""
    for position, token in enumerate(ids):
        if token in eos:
            return ids[: position + 1], True
    return ids, False


def _eos_ids(eos: int | list[int] | None) -> frozenset[int]:
    if eos is None:
        return frozenset()
    return frozenset(eos if isinstance(eos, list) else [eos])


def tokenizer_json(tokenizer: Any) -> str | None:
    """What ``tokenizers`` needs to decode, or None for tokenizers that exist in Python only."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "to_str"):
        return None
    return str(backend.to_str(pretty=False))


def decode_options(tokenizer: Any) -> DecodeOptions:
    """How ``tokenizer.decode`` treats spaces: for BPE, transformers ignores the clean-up."""
    clean_up = bool(getattr(tokenizer, "clean_up_tokenization_spaces", False))
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and type(backend.model).__name__ == "BPE":
        forced = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"
        clean_up = clean_up and bool(getattr(tokenizer, forced, False))
    return DecodeOptions(clean_up_tokenization_spaces=clean_up)
