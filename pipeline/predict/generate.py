"""The engine that calls ``generate``: causal and encoder–decoder language models.

Prompts are padded on the left for causal models (new tokens follow the prompt directly) and on
the right for encoders; what comes back is cut by the true length of what went in.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.errors import ConfigError, first_line
from pipeline.predict.config import PredictConfig
from pipeline.predict.decoding import decoding
from pipeline.predict.engine import Prediction
from pipeline.predict.generation import generation_config, rows_alone
from pipeline.predict.labels import LabelScorer
from pipeline.predict.load import Loaded
from pipeline.predict.memory import DeviceMemory
from pipeline.predict.oom import is_out_of_memory
from pipeline.predict.padding import check_rows_alone
from pipeline.predict.prompt import Prompt
from pipeline.predict.sampling import GumbelNoise
from pipeline.predict.stopping import StopStrings
from pipeline.predict.template import Template
from pipeline.predict.text import TextPrompts, check_known, known_tokens, window_tokens
from pipeline.predict.tokenizer import decode_options, tokenizer_json


class GenerateEngine:
    """Generates with a loaded model; see ``engine.Engine``.

    Args:
        loaded: model, tokenizer and device.
        config: the ``predict`` section.
        template: how a row becomes text.
        fields: checked ``generation`` fields.

    Raises:
        ConfigError: a limit or generation value that does not fit the model.
        ModelError: ``chat`` is on and the tokenizer has no chat template, or the model's
            predictions depend on other rows.
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
        self.max_rows: int | None = 1 if rows_alone(self._generation, loaded.kind) else None
        self.memory = DeviceMemory(loaded.device)
        self.tokenizer_json = tokenizer_json(loaded.tokenizer)
        self.decode = decode_options(loaded.tokenizer)
        self._eos = _eos_ids(self._generation.eos_token_id)
        self._stops = self._take_stop_strings()
        self._seed = config.seed
        self._scorer: LabelScorer | None = None
        if config.logprob:
            self._scorer = LabelScorer(loaded.model, loaded.kind, loaded.device)
        self.optional: tuple[str, ...] = ("logprob",) if config.logprob else ()
        self._prompts = TextPrompts(
            loaded.tokenizer,
            template,
            chat=config.chat,
            max_tokens=self._longest_prompt(config),
        )
        self._try_out(config)

    def _try_out(self, config: PredictConfig) -> None:
        """Generate a token from a token: what ``generate`` refuses is known before the first chunk.

        Raises:
            ConfigError: the settings, or those of the model's own config, cannot be used.
            ModelError: what the model makes of a row depends on other rows.
        """
        settings = self._generation
        self._generation = copy.deepcopy(settings)
        self._generation.update(max_new_tokens=1, min_new_tokens=None, min_length=None)
        try:
            self._check_values()
            self.predict([Prompt([0], truncated=False)])
            check_rows_alone(
                self._loaded.model,
                self._loaded.device,
                self._generation,
                causal=self._loaded.kind == "causal",
                longest=self._longest_prompt(config),
                batches=config.max_batch_rows > 1 and self.max_rows is None,
            )
        except (
            ArithmeticError,
            AssertionError,
            AttributeError,
            ImportError,
            LookupError,
            NotImplementedError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            if is_out_of_memory(error):
                raise
            raise ConfigError(
                "predict.generation: transformers cannot generate with these settings, or with "
                f"those of the model's generation_config.json ({first_line(error)}); mend or "
                "remove what it names"
            ) from None
        finally:
            self._generation = settings

    def _check_values(self) -> None:
        beams, padding = self._generation.num_beams, self._generation.pad_token_id
        if beams is not None and beams < 1:
            raise ValueError(f"num_beams is {beams}, which is less than 1")
        known = known_tokens(self._loaded.model)
        if known is not None and not 0 <= padding < known:
            raise ValueError(f"pad_token_id {padding} is none of the model's {known} tokens")

    def _take_stop_strings(self) -> StopStrings | None:
        """Our own criterion in place of the one that ``generate`` would make for every batch."""
        strings = self._generation.stop_strings
        self._generation.stop_strings = self._loaded.model.generation_config.stop_strings = None
        return None if strings is None else StopStrings(self._loaded.tokenizer, strings)

    def _longest_prompt(self, config: PredictConfig) -> int | None:
        """What the window leaves for the prompt, or what the settings allow if that is less."""
        window = window_tokens(self._loaded.model)
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

    def prompts(self, examples: pa.Table) -> list[Prompt]:
        """Prompts of a chunk's rows, in order."""
        prompts = self._prompts.build(examples)
        for prompt in prompts:
            check_known(self._loaded.model, prompt.row, prompt.ids)
        return prompts

    def predict(self, batch: Sequence[Prompt]) -> list[Prediction]:
        """Generate for ``batch``, in order."""
        output = self._generate(batch)
        causal = self._loaded.kind == "causal"
        prompts = [prompt.ids for prompt in batch]
        # A causal model returns the padded prompt before the new tokens, a decoder its start token.
        skip = max(map(len, prompts)) if causal else 1
        before = prompts if causal else [ids[:skip] for ids in output]
        cut = [self._cut(start, ids[skip:]) for start, ids in zip(before, output, strict=True)]
        extra: list[dict[str, float]] = [{} for _ in batch]
        if self._scorer is not None:
            scores = self._scorer.score(
                prompts,
                [new for new, _ in cut],
                starts=None if causal else [ids[0] for ids in output],
            )
            extra = [{"logprob": -score.nll} for score in scores]
        return [
            Prediction(new, reason, self._text(new), values)
            for (new, reason), values in zip(cut, extra, strict=True)
        ]

    def _generate(self, batch: Sequence[Prompt]) -> list[list[int]]:
        """What ``generate`` returns, as lists."""
        import torch

        device, model = self._loaded.device, self._loaded.model
        rows = [prompt.ids for prompt in batch]
        causal = self._loaded.kind == "causal"
        input_ids, attention_mask = pad(rows, self._generation.pad_token_id, left=causal)
        padding = [len(input_ids[0]) - len(ids) for ids in rows] if causal else None
        noise = None
        if self._generation.do_sample:
            noise = GumbelNoise(self._seed, [prompt.row for prompt in batch], device)
        with torch.inference_mode():
            output: list[list[int]] = model.generate(
                input_ids=torch.tensor(input_ids, device=device),  # (batch, longest prompt) int64
                attention_mask=torch.tensor(attention_mask, device=device),
                generation_config=self._generation,
                custom_generate=decoding(padding, self._stops, noise),
            ).tolist()
        return output

    def _cut(self, before: list[int], ids: list[int]) -> tuple[list[int], str]:
        """``ids`` up to the end of the prediction, and what ended it."""
        new, finished = cut_at_eos(ids, self._eos)
        if self._stops is not None:
            end = self._stops.end(before, new, self._loaded.device)
            if end is not None and (end < len(new) or not finished):
                return new[:end], "stop"
        return new, "eos" if finished else "length"

    def _text(self, new: list[int]) -> str | None:
        if self.tokenizer_json is not None:
            return None
        text: str = self._loaded.tokenizer.decode(new, skip_special_tokens=True)
        return text


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
