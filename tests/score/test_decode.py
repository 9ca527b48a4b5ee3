"""Parity with ``AutoTokenizer.batch_decode`` (transformers 5.24), whatever the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from pipeline.errors import PredictionSetError
from pipeline.score.decode import Decoder, TokenizerFile, load_decoder
from pipeline.store.card import DecodeOptions
from pipeline.store.chunk import file_sha256
from pipeline.store.place import Folder
from pipeline.store.prediction_set import TOKENIZER_FILE, TOKENIZER_FOLDER
from tests.models import TEXTS, train_tokenizer

CORPUS = [
    *TEXTS,
    "I don't think it's we've , they 're . What ?  Yes ! I 'm ' quoted ' , isn 't it n't",
]
SPECIAL = ["<pad>", "</s>", "<unk>"]


def _unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _wordpiece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _byte_level_with_odd_tokens() -> Tokenizer:
    """Added tokens with spaces, with letters that stand for bytes, and with such that do not."""
    tokenizer = train_tokenizer()
    tokenizer.add_tokens(["two words", "\u0120caf\u00e9 \u65e5", "\u0120\u0100", "\xad"])
    tokenizer.add_special_tokens(["<a b>", "<\u672c>"])
    return tokenizer


def _byte_fallback() -> Tokenizer:
    """As Llama 2 has it: pieces with U+2581 for a space, and a token for each byte."""
    vocabulary = {name: place for place, name in enumerate([*SPECIAL, "\u2581a", "b", "\u2581"])}
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


@pytest.fixture(
    scope="module",
    params=[train_tokenizer, _byte_level_with_odd_tokens, _byte_fallback, _unigram, _wordpiece],
    ids=["bpe", "added tokens", "byte fallback", "unigram", "wordpiece"],
)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    PreTrainedTokenizerFast(
        tokenizer_object=request.param(), eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    ).save_pretrained(path / TOKENIZER_FOLDER)
    return path


def _decoder(folder: Path, options: DecodeOptions) -> Decoder:
    file = TokenizerFile(Folder(folder), file_sha256(folder / TOKENIZER_FILE))
    return load_decoder(file, options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("clean_up", [True, False])
def test_text_is_that_of_auto_tokenizer(folder: Path, skip: bool, clean_up: bool) -> None:
    oracle = AutoTokenizer.from_pretrained(folder / TOKENIZER_FOLDER)
    decoder = _decoder(
        folder, DecodeOptions(skip_special_tokens=skip, clean_up_tokenization_spaces=clean_up)
    )
    size = len(oracle)
    encoded = [oracle(text).input_ids for text in CORPUS]

    @settings(deadline=None, max_examples=60)
    @given(drawn=st.lists(st.lists(st.integers(0, size + 5), max_size=12), max_size=4))
    def check(drawn: list[list[int]]) -> None:
        ids: list[Any] = [*encoded, [], *drawn, list(range(size - 8, size))]
        expected = oracle.batch_decode(
            ids, skip_special_tokens=skip, clean_up_tokenization_spaces=clean_up
        )
        array = pa.array(ids, pa.list_(pa.int32()))
        assert decoder.decode(array) == expected
        assert decoder.decode(array.slice(1)) == expected[1:]
        unknown = sum(token >= size for row in ids for token in row)
        assert decoder.unknown_ids(array) == unknown
        assert decoder.unknown_ids(array.slice(len(ids))) == 0
        assert decoder.decode(array.slice(len(ids))) == []

    check()


def test_clean_up_changes_something_here(folder: Path) -> None:
    # Else the parity above would say nothing about it.
    ids = pa.array([Tokenizer.from_file(str(folder / TOKENIZER_FILE)).encode("yes , it").ids])
    ids = ids.cast(pa.list_(pa.int32()))
    plain, cleaned = (
        _decoder(folder, DecodeOptions(clean_up_tokenization_spaces=clean_up)).decode(ids)
        for clean_up in (False, True)
    )
    is_bpe = "BPE" in (folder / TOKENIZER_FILE).read_text(encoding="utf-8")
    assert (plain == cleaned) == is_bpe


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / TOKENIZER_FOLDER).mkdir()
    (tmp_path / TOKENIZER_FILE).write_text("{}")
    with pytest.raises(PredictionSetError, match=r"tokenizer.json is not a tokenizer that can"):
        _decoder(tmp_path, DecodeOptions())


def test_a_replaced_file_is_loaded_again(tmp_path: Path) -> None:
    ids = pa.array([[5, 6]], pa.list_(pa.int32()))
    texts = []
    (tmp_path / TOKENIZER_FOLDER).mkdir()
    for make in (_unigram, _wordpiece):
        make().save(str(tmp_path / TOKENIZER_FILE))
        texts += _decoder(tmp_path, DecodeOptions()).decode(ids)
    assert texts[0] != texts[1]
