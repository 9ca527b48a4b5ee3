"""The engine for teacher-forced evaluation: what ``Trainer.evaluate`` measures, per row.

Nothing is generated. The labels are the tokens of the row's first reference:

* encoder–decoder: ``tokenizer(text_target=reference)``, with the special tokens that it adds, after
  the decoder's start token;
* causal: the tokens of the reference without special tokens and then EOS, right after the prompt.
  The prompt is seen, and masked in the loss.

What is stored is the best token at each label, so the text that comes of it is not a generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.errors import ConfigError
from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Prediction
from pipeline.predict.labels import LabelScorer
from pipeline.predict.load import Loaded
from pipeline.predict.memory import DeviceMemory
from pipeline.predict.prompt import Prompt
from pipeline.predict.template import Template
from pipeline.predict.text import TextPrompts, check_known, window_tokens
from pipeline.predict.tokenizer import decode_options, tokenizer_json
from pipeline.schema import FORCED


@dataclass(frozen=True, slots=True)
class LabelledPrompt:
    """One row's prompt and labels.

    Attributes:
        prompt: the prompt.
        labels: token ids of the reference.
        truncated: a field of the prompt, or the reference, was cut to make it fit.
    """

    prompt: Prompt
    labels: list[int]
    truncated: bool

    @property
    def length(self) -> int:
        """Tokens of prompt and labels."""
        return len(self.prompt.ids) + len(self.labels)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt.ids)


class ForcedEngine:
    """Scores references with a loaded model; see ``engine.Engine``.

    Args:
        loaded: model, tokenizer and device.
        config: the ``predict`` section.
        template: how a row becomes text.

    Raises:
        ConfigError: ``max_label_tokens`` is more than the model's window allows.
        ModelError: ``chat`` is on and the tokenizer has no chat template.
    """

    def __init__(self, loaded: Loaded, config: PredictConfig, template: Template) -> None:
        self._loaded = loaded
        self._scorer = LabelScorer(loaded.model, loaded.kind, loaded.device)
        self._causal = loaded.kind == "causal"
        self.new_tokens = 0  # labels are part of a prompt's length
        self.max_rows: int | None = None
        self.optional: tuple[str, ...] = ("nll", "label_tokens", "correct_tokens")
        self.tokenizer_json = tokenizer_json(loaded.tokenizer)
        self.decode = decode_options(loaded.tokenizer)
        self.memory = DeviceMemory(loaded.device)
        window = window_tokens(loaded.model)
        most_labels = window // 2 if window is not None and self._causal else window
        if most_labels is not None and (config.max_label_tokens or 0) > most_labels:
            shared = ", which holds the prompt, too" if self._causal else ""
            raise ConfigError(
                f"predict.max_label_tokens: {config.max_label_tokens} is more than this model can "
                f"take: its window is {window}{shared}; use at most {most_labels}, or null"
            )
        self._most_labels = _least(config.max_label_tokens, most_labels)
        # A causal model's prompt shares the window with its labels, an encoder has its own.
        self._window = window if self._causal else None
        self._prompts = TextPrompts(
            loaded.tokenizer,
            template,
            chat=config.chat,
            max_tokens=_least(config.max_prompt_tokens, window),
        )

    def prompts(self, examples: pa.Table) -> list[LabelledPrompt]:
        """Prompts and labels of a chunk's rows, in order."""
        references = [texts[0] for texts in examples.column("references").to_pylist()]
        whole = self._labels(references)
        labels = [row[: self._most_labels] for row in whole]
        room = None if self._window is None else [self._window - len(row) for row in labels]
        prompts = self._prompts.build(examples, room)
        for prompt, row in zip(prompts, labels, strict=True):
            check_known(self._loaded.model, prompt.row, [*prompt.ids, *row])
        return [
            LabelledPrompt(prompt, row, prompt.truncated or len(row) < len(uncut))
            for prompt, row, uncut in zip(prompts, labels, whole, strict=True)
        ]

    def _labels(self, references: list[str]) -> list[list[int]]:
        tokenizer = self._loaded.tokenizer
        if not self._causal:
            encoded: list[list[int]] = tokenizer(text_target=references)["input_ids"]
            return encoded
        encoded = tokenizer(references, add_special_tokens=False)["input_ids"]
        end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
        return [row + end for row in encoded]

    def predict(self, batch: Sequence[LabelledPrompt]) -> list[Prediction]:
        """The best token at each label, and the labels' log-likelihood, in order."""
        scores = self._scorer.score(
            [row.prompt.ids for row in batch], [row.labels for row in batch]
        )
        return [
            Prediction(
                score.ids,
                FORCED,
                self._text(score.ids),
                {
                    "nll": score.nll,
                    "label_tokens": len(row.labels),
                    "correct_tokens": score.correct,
                },
            )
            for row, score in zip(batch, scores, strict=True)
        ]

    def _text(self, ids: list[int]) -> str | None:
        if self.tokenizer_json is not None:
            return None
        text: str = self._loaded.tokenizer.decode(ids, skip_special_tokens=True)
        return text


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
