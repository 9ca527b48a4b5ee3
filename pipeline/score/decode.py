"""Token ids → text without transformers, as ``AutoTokenizer.batch_decode`` has it.

``from transformers import AutoTokenizer`` imports torch where it is installed; the Rust library
under it does not, and gives the same text, apart from ``clean_up_tokenization_spaces``, which
transformers does in Python (``PreTrainedTokenizerBase.clean_up_tokenization``) and only for
tokenizers that are not BPE.

Ids that the tokenizer does not know (models often have more outputs than the vocabulary has
tokens) decode to nothing, as in transformers; here they are counted.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
from tokenizers import Tokenizer

from pipeline.errors import PredictionSetError
from pipeline.score.buffers import list_offsets, to_numpy
from pipeline.score.byte_level import ByteLevelDecoder, is_byte_level
from pipeline.store.card import DecodeOptions
from pipeline.store.place import Place
from pipeline.store.prediction_set import TOKENIZER_FILE

# In this order; each on what the one before it left.
_CLEAN_UPS = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


class TokenizerFile(NamedTuple):
    """The tokenizer.json of a set; the hash tells a cached one from a file that was replaced."""

    place: Place
    sha256: str


class Decoder:
    """Decodes lists of ids with one tokenizer; get one from ``load_decoder``.

    Raises:
        PredictionSetError: the file is not a tokenizer.
    """

    def __init__(self, file: TokenizerFile, options: DecodeOptions) -> None:
        self._tokenizer = _load(file)
        self._known: set[int] = set()
        self._skip_special_tokens = options.skip_special_tokens
        self._byte_level = (
            ByteLevelDecoder(self._tokenizer, options.skip_special_tokens)
            if is_byte_level(self._tokenizer)
            else None
        )
        self._clean_up = (
            options.clean_up_tokenization_spaces and type(self._tokenizer.model).__name__ != "BPE"
        )

    def decode(self, ids: pa.Array) -> list[str]:
        """Texts of a list<int32> array without nulls or negative ids."""
        texts = self._byte_level.decode(ids) if self._byte_level else self._decode_batch(ids)
        return [_clean_up(text) for text in texts] if self._clean_up else texts

    def _decode_batch(self, ids: pa.Array) -> list[str]:
        values = to_numpy(ids.flatten()).tolist()
        offsets = list_offsets(ids).tolist()
        lists = [values[start:stop] for start, stop in pairwise(offsets)]
        texts: list[str] = self._tokenizer.decode_batch(
            lists, skip_special_tokens=self._skip_special_tokens
        )
        return texts

    def unknown_ids(self, ids: pa.Array) -> int:
        """How many of the ids the tokenizer does not know."""
        counted = ids.flatten().value_counts()
        counts = dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))
        unseen = counts.keys() - self._known
        unknown = {token for token in unseen if self._tokenizer.id_to_token(token) is None}
        self._known |= unseen - unknown
        return sum(counts[token] for token in unknown)


def _clean_up(text: str) -> str:
    for spaced, joined in _CLEAN_UPS:
        text = text.replace(spaced, joined)
    return text


@lru_cache(maxsize=2)
def load_decoder(file: TokenizerFile, options: DecodeOptions) -> Decoder:
    """The decoder, made once per process: loading a large vocabulary takes a second."""
    return Decoder(file, options)


def _load(file: TokenizerFile) -> Tokenizer:
    try:
        return Tokenizer.from_buffer(file.place.read(TOKENIZER_FILE))
    except PredictionSetError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise PredictionSetError(
            f"{file.place.at(TOKENIZER_FILE)} is not a tokenizer that can decode ({error}); "
            "copy the set again, or run `twophase predict` where the model is"
        ) from None
