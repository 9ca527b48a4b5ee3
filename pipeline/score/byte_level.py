"""Token ids → text for byte-level BPE (GPT-2 and most models since), a block at a time.

Such a decoder joins the bytes of the tokens and reads them as UTF-8: the bytes of a token do not
depend on its neighbours. So they are looked up once per token of a block and put together by Arrow,
where the library allocates strings per token; the text is the same (Radford et al. 2019,
``bytes_to_unicode`` in GPT-2's encoder.py; ``ByteLevel`` in tokenizers).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pipeline.score.buffers import list_offsets


def is_byte_level(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer decodes by bytes, and in no other way."""
    return type(tokenizer.decoder).__name__ == "ByteLevel"


class ByteLevelDecoder:
    """Decodes as ``tokenizer.decode_batch`` does.

    Args:
        tokenizer: one that ``is_byte_level``.
        skip_special_tokens: leave them out.
    """

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool) -> None:
        self._bytes = _TokenBytes(tokenizer, skip_special_tokens)

    def decode(self, ids: pa.Array) -> list[str]:
        """Texts of a list<int32> array without nulls or negative ids."""
        tokens = ids.flatten().dictionary_encode()
        contents = list(map(self._bytes.__getitem__, tokens.dictionary.to_pylist()))
        ends = np.cumsum([0, *map(len, contents)], dtype=np.int64)
        pieces = _binary(ends, pa.py_buffer(b"".join(contents))).take(tokens.indices)
        # One after the other in the buffer: the texts are there, only their ends are not.
        _, token_ends, joined = pieces.buffers()
        texts = _binary(np.frombuffer(token_ends, np.int64)[list_offsets(ids)], joined)
        try:
            decoded: list[str] = texts.cast(pa.large_string()).to_pylist()
        except pa.ArrowInvalid:  # a character that was cut, or bytes that are none
            decoded = [text.decode("utf-8", "replace") for text in texts.to_pylist()]
        return decoded


class _TokenBytes(dict[int, bytes]):
    """Token id → its bytes; none for one that is unknown or left out."""

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder().values()
        self._skipped = {token.content for token in added if token.special and skip_special_tokens}

    def __missing__(self, token: int) -> bytes:
        content = self._tokenizer.id_to_token(token)
        self[token] = b"" if content is None or content in self._skipped else _bytes_of(content)
        return self[token]


def _binary(ends: NDArray[np.int64], content: pa.Buffer) -> pa.Array:
    """The strings that end at ``ends`` (the first is where the first one starts)."""
    buffers = [None, pa.py_buffer(ends), content]
    return pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def _bytes_of(content: str) -> bytes:
    # A token with a character that stands for no byte (an added one) is its own text.
    if _BYTE_OF.keys() >= set(content):
        return bytes(map(_BYTE_OF.__getitem__, content))
    return content.encode()


def _alphabet() -> dict[str, int]:
    """Character → the byte that it stands for: itself where it can be seen, else from U+0100 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(256)) - set(seen))
    return {chr(byte): byte for byte in seen} | {
        chr(0x100 + place): byte for place, byte in enumerate(hidden)
    }


_BYTE_OF = _alphabet()
