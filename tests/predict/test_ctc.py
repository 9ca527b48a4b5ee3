"""Speech: what a batch gives is what each row gives alone, from audio to text in the set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from pipeline.errors import ConfigError, MissingExtraError, ModelError
from pipeline.predict.config import PredictConfig
from pipeline.predict.ctc import CtcEngine
from pipeline.predict.engines import load_engine
from pipeline.predict.fingerprint import library_versions, run_inputs
from pipeline.predict.run import predict
from pipeline.store.prediction_set import PredictionSet
from tests.models import save_wav2vec2
from tests.predict.fake import Silent
from tests.predict.test_audio import RATE, wav, write_audio

SIZES = (4000, 2311, 977, 150, 3120, 40)  # samples; the last is shorter than a frame


def sounds() -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    random = np.random.RandomState(0)
    return [random.standard_normal(size).astype(np.float32) for size in SIZES]


@pytest.fixture(scope="module", params=["mask", "group"])
def speech(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    return save_wav2vec2(folder, mask=request.param == "mask")


def transcribed(folder: Path, samples: np.ndarray[Any, Any]) -> str:
    """What transformers makes of one row alone, by its own processors."""
    from transformers import AutoFeatureExtractor, AutoModelForCTC, AutoTokenizer

    model = AutoModelForCTC.from_pretrained(folder).eval()
    features = AutoFeatureExtractor.from_pretrained(folder)(
        samples, sampling_rate=RATE, return_tensors="pt"
    )
    with torch.inference_mode():
        logits = model(**features).logits
    text: str = AutoTokenizer.from_pretrained(folder).batch_decode(logits.argmax(-1))[0]
    return text


def make_ctc(folder: Path, place: Path, **keys: Any) -> tuple[CtcEngine, pa.Table]:
    values = [samples.tolist() for samples in sounds()]
    examples = write_audio(place / "e.parquet", values, pa.list_(pa.float32()))
    config = PredictConfig(device="cpu", sampling_rate=RATE, **keys)
    engine = load_engine(config, folder, examples)
    assert isinstance(engine, CtcEngine)
    return engine, examples.read(0, len(values))


def test_rows_give_what_they_give_alone(speech: Path, tmp_path: Path) -> None:
    engine, rows = make_ctc(speech, tmp_path)
    prompts = engine.prompts(rows)
    size = engine.max_rows or len(prompts)
    assert size == (1 if speech.name.startswith("group") else len(prompts))
    found = []
    for start in range(0, len(prompts), size):
        found += engine.predict(prompts[start : start + size])
    expected = [transcribed(speech, samples) for samples in sounds()[:-1]]
    assert [one.text for one in found] == [*expected, ""]
    assert len(set(expected)) == len(expected)
    assert all(len(text) > 3 for text in expected[:3])
    assert [len(one.ids) for one in found] == [prompt.length for prompt in prompts]
    assert prompts[-1].length == 0
    assert {one.finish_reason for one in found} == {"end"}
    assert engine.tokenizer_json is None


def test_padding_is_longer_than_the_rows(tmp_path: Path) -> None:
    """The lengths that are cut to are shorter than the batch: padding has tokens, too."""
    folder = save_wav2vec2(tmp_path / "mask", mask=True)
    engine, rows = make_ctc(folder, tmp_path)
    prompts = engine.prompts(rows)
    best = engine._best(prompts[:3])
    assert best.shape == (3, prompts[0].length)
    assert prompts[2].length < prompts[1].length < prompts[0].length


def test_end_to_end_the_text_is_in_the_set(tmp_path: Path) -> None:
    folder = save_wav2vec2(tmp_path / "model", mask=True)
    files = []
    for place, samples in enumerate(sounds()):
        files.append(str(tmp_path / f"{place}.wav"))
        Path(files[-1]).write_bytes(wav(samples / 10))
    write_audio(tmp_path / "examples.parquet", files)
    config = PredictConfig(device="cpu", chunk_rows=4, max_batch_rows=3)
    predict(
        config,
        model=folder,
        examples=tmp_path / "examples.parquet",
        predictions=tmp_path / "predictions",
        telemetry=tmp_path / "telemetry.csv",
        progress=Silent(),
    )
    found = PredictionSet(tmp_path / "predictions")
    assert found.card.prediction == "text"
    assert {"soundfile", "soxr"} <= set(found.card.versions)
    assert not found.tokenizer_file.exists()
    rows = [row for chunk in found.present() for row in found.reader(chunk).read().to_pylist()]
    expected = [transcribed(folder, samples / 10) for samples in sounds()[:-1]]
    assert [row["prediction"] for row in rows] == [*expected, ""]
    inputs = run_inputs(config, tmp_path / "examples.parquet", folder)
    assert inputs == found.card.inputs
    Path(files[0]).write_bytes(wav(sounds()[0]))
    assert run_inputs(config, tmp_path / "examples.parquet", folder) != inputs


def test_an_explicit_engine_reads_audio_too(tmp_path: Path) -> None:
    folder = save_wav2vec2(tmp_path / "model", mask=True)
    write_audio(tmp_path / "e.parquet", [wav(sounds()[0])])
    for engine, audio in (("auto", True), ("ctc", True), ("causal", False)):
        inputs = run_inputs(PredictConfig(engine=engine), tmp_path / "e.parquet", folder)
        assert ("audio" in inputs) == audio
        assert ("soxr" in library_versions(inputs)) == audio


def test_mistakes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    folder = save_wav2vec2(tmp_path / "model", mask=True)
    with pytest.raises(ConfigError, match="ctc generates none"):
        make_ctc(folder, tmp_path, logprob=True)
    with pytest.raises(ModelError, match="has no tokens to force"):
        make_ctc(folder, tmp_path, engine="forced")
    (folder / "preprocessor_config.json").rename(tmp_path / "away")
    with pytest.raises(ModelError, match="has no feature extractor that can be loaded"):
        make_ctc(folder, tmp_path)
    (tmp_path / "away").rename(folder / "preprocessor_config.json")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "soxr" else real(name, *a)
    )
    with pytest.raises(MissingExtraError, match=r"\[audio\] \(soxr not installed\)"):
        make_ctc(folder, tmp_path)
