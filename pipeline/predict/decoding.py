"""Between ``generate``'s preparations and its loop: padding is hidden, and sampling made stable.

``generate(custom_generate=...)`` calls a function in place of its decoding loop, with logits
processors and stopping criteria made. Two things are changed there before the loop is called:

* What looks at the ids before the new ones (``no_repeat_ngram_size``, ``bad_words_ids``,
  ``sequence_bias``, stop strings) sees an id outside the vocabulary where a shorter row has
  padding, so that padding repeats nothing, forbids nothing and ends nothing. The repetition
  penalty is told by ``transformers`` itself where padding ends.
* Sampling becomes an argmax over scores with noise, see ``sampling``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipeline.predict.sampling import GumbelNoise
from pipeline.predict.stopping import OUTSIDE, StopStrings


def decoding(
    padding: Sequence[int] | None, stops: StopStrings | None, noise: GumbelNoise | None
) -> Callable[..., Any]:
    """The function for ``custom_generate``.

    Args:
        padding: how many ids of padding each row begins with; None where there is none.
        stops: ends rows; None where there are no stop strings.
        noise: makes a sample of the argmax; None is greedy, or beams.
    """

    def decode(
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_arguments: Any,
    ) -> Any:
        if padding is not None:
            for place, processor in enumerate(logits_processor):
                if _looks_back(processor):
                    logits_processor[place] = _Unpadded(processor, padding)
        if stops is not None:
            stopping_criteria.append(_Stop(stops, padding))
        if noise is not None:
            logits_processor.append(noise)
            generation_config.do_sample = False
        beams = (generation_config.num_beams or 1) > 1
        return (model._beam_search if beams else model._sample)(
            input_ids,
            logits_processor=logits_processor,
            stopping_criteria=stopping_criteria,
            generation_config=generation_config,
            **model_arguments,
        )

    return decode


def _looks_back(processor: Any) -> bool:
    from transformers import NoRepeatNGramLogitsProcessor, SequenceBiasLogitsProcessor

    return isinstance(processor, (NoRepeatNGramLogitsProcessor, SequenceBiasLogitsProcessor))


class _Unpadded:
    """A logits processor that does not see padding."""

    def __init__(self, processor: Any, padding: Sequence[int]) -> None:
        self._processor = processor
        self._padding = padding

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return self._processor(blank(input_ids, self._padding), scores)


class _Stop:
    """A stopping criterion that does not see padding."""

    def __init__(self, stops: StopStrings, padding: Sequence[int] | None) -> None:
        self._stops = stops
        self._padding = padding

    def __call__(self, input_ids: Any, scores: Any, **arguments: Any) -> Any:
        if self._padding is not None:
            input_ids = blank(input_ids, self._padding)
        return self._stops(input_ids)


def blank(input_ids: Any, padding: Sequence[int]) -> Any:
    """``input_ids`` with ``OUTSIDE`` over the padding; a row may stand for several beams."""
    import torch

    beams = len(input_ids) // len(padding)
    ends = torch.tensor(padding, device=input_ids.device).repeat_interleave(beams)
    places = torch.arange(input_ids.shape[1], device=input_ids.device)
    return input_ids.masked_fill(places[None, :] < ends[:, None], OUTSIDE)
