"""Stop strings: where a row ends, whatever padding is around it.

``transformers`` matches them over tokens on the device. The same criterion, asked for every
prefix of what was generated, says afterwards where the string was complete: by then a row may be
followed by padding, which can be the EOS id, or by tokens that nobody asked for.
"""

from __future__ import annotations

from typing import Any

from pipeline.errors import ConfigError

# An id outside every vocabulary: it matches no token, and no processor looks it up.
OUTSIDE = 2**31 - 1


class StopStrings:
    """The criterion for ``strings`` over the vocabulary of ``tokenizer``.

    Raises:
        ConfigError: a string that the vocabulary cannot produce, or an empty one.
    """

    def __init__(self, tokenizer: Any, strings: str | list[str]) -> None:
        from transformers import StopStringCriteria

        try:
            if not strings or not all(strings):
                raise ValueError("an empty string stops nothing")
            self._criterion = StopStringCriteria(tokenizer, strings)
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"predict.generation.stop_strings: {strings!r} cannot be used ({error})"
            ) from None

    def __call__(self, input_ids: Any, scores: Any = None) -> Any:
        """Which rows end in a stop string.  # (rows,) bool"""
        return self._criterion(input_ids, scores)

    def end(self, before: list[int], new: list[int], device: Any) -> int | None:
        """How many tokens of ``new`` are there when a stop string is complete for the first time.

        Args:
            before: ids before the new ones; a stop string may begin in them.
            new: the new ids, with whatever follows the end.
            device: where to compute.
        """
        import torch

        width = self._criterion.maximum_token_len  # a token is at least one character
        # Beams are filled up with -1 where there is no EOS.
        filled = [OUTSIDE if token < 0 else token for token in new]
        ids = [OUTSIDE] * width + before[-width:] + filled
        first = len(ids) - len(new) + 1
        windows = [ids[stop - width : stop] for stop in range(first, len(ids) + 1)]
        if not windows:
            return None
        ends = self(torch.tensor(windows, device=device)).tolist()
        return ends.index(True) + 1 if True in ends else None
