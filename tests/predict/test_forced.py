"""Teacher-forced evaluation: what ``Trainer.evaluate`` measures, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from pipeline.errors import ConfigError, ModelError
from pipeline.predict.config import PredictConfig
from pipeline.predict.engines import load_engine
from pipeline.predict.examples import Examples
from pipeline.predict.forced import ForcedEngine
from pipeline.predict.labels import MASKED
from pipeline.predict.run import predict
from pipeline.store.prediction_set import PredictionSet
from tests.examples import write_examples
from tests.models import TEXTS, save_gpt2
from tests.predict.fake import Silent

ROWS = [*TEXTS, "a", "b c", TEXTS[0] * 2]
REFERENCES = [["the fox", "another"], ["a sum"], ["read"], ["мир"], [""], ["b c d e f"], ["dog"]]


def make_forced(folder: Path, place: Path, **keys: Any) -> tuple[ForcedEngine, pa.Table]:
    examples = Examples(write_examples(place / "e.parquet", ROWS, REFERENCES))
    config = PredictConfig(device="cpu", engine="forced", **keys)
    engine = load_engine(config, folder, examples)
    assert isinstance(engine, ForcedEngine)
    return engine, examples.read(0, len(ROWS))


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_loss_and_tokens_are_those_of_trainer(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The mean over all labels is the loss that ``Trainer`` reports for the batch."""
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForSeq2SeqLM,
        AutoTokenizer,
        Trainer,
        TrainingArguments,
    )

    folder = request.getfixturevalue(name)
    engine, rows = make_forced(folder, tmp_path)
    predictions = engine.predict(engine.prompts(rows))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.eos_token
    features = []
    for text, (reference, *_) in zip(ROWS, REFERENCES, strict=True):
        prompt = tokenizer(text)["input_ids"]
        labels = tokenizer(reference)["input_ids"]
        if name == "gpt2":
            labels = [*labels, tokenizer.eos_token_id]
            ids, labels = prompt + labels, [MASKED] * len(prompt) + labels
        else:
            ids = prompt
        features.append({"input_ids": ids, "labels": labels})

    def collate(batch: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        def padded(key: str, fill: int) -> torch.Tensor:
            width = max(len(row[key]) for row in batch)
            return torch.tensor([row[key] + [fill] * (width - len(row[key])) for row in batch])

        mask = [[1] * len(row["input_ids"]) for row in batch]
        wide = max(map(len, mask))
        return {
            "input_ids": padded("input_ids", 0),
            "attention_mask": torch.tensor([row + [0] * (wide - len(row)) for row in mask]),
            "labels": padded("labels", MASKED),
        }

    auto = AutoModelForCausalLM if name == "gpt2" else AutoModelForSeq2SeqLM
    trainer = Trainer(
        auto.from_pretrained(folder),
        TrainingArguments(
            str(tmp_path), per_device_eval_batch_size=8, use_cpu=True, report_to=[],
            disable_tqdm=True,
        ),
        data_collator=collate,
    )  # fmt: skip
    output = trainer.predict(features)
    counts = [prediction.extra["label_tokens"] for prediction in predictions]
    total = sum(prediction.extra["nll"] for prediction in predictions)
    assert total / sum(counts) == pytest.approx(output.metrics["test_loss"], rel=1e-5)
    logits = output.predictions if name == "gpt2" else output.predictions[0]
    for row, prediction in enumerate(predictions):
        labels = torch.tensor(output.label_ids[row])
        best = torch.tensor(logits[row]).argmax(-1)
        if name == "gpt2":  # shifted: position p predicts the token at p + 1
            labels, best = labels[1:], best[:-1]
        real = labels != MASKED
        assert prediction.ids == best[real].tolist()
        assert prediction.extra["correct_tokens"] == int((best[real] == labels[real]).sum())
        assert prediction.finish_reason == "forced"


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_a_batch_gives_what_rows_give_alone(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    engine, rows = make_forced(request.getfixturevalue(name), tmp_path)
    prompts = engine.prompts(rows)
    together = engine.predict(prompts)
    for prompt, one in zip(prompts, together, strict=True):
        (single,) = engine.predict([prompt])
        assert single.ids == one.ids
        assert single.extra == pytest.approx(dict(one.extra), rel=1e-5)
        assert one.extra["label_tokens"] == len(one.ids)


def test_an_empty_reference_of_a_causal_model_is_its_eos(gpt2: Path, tmp_path: Path) -> None:
    engine, rows = make_forced(gpt2, tmp_path)
    prompts = engine.prompts(rows)
    assert prompts[4].labels == [engine._loaded.tokenizer.eos_token_id]


def test_long_references_and_prompts_share_the_window(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "small", window=32)
    texts, references = ["short", "long " * 60, "long " * 60], [["re " * 60], ["re " * 60], ["re"]]
    examples = Examples(write_examples(tmp_path / "e.parquet", texts, references))
    config = PredictConfig(device="cpu", engine="forced", template="{document} end")
    engine = load_engine(config, folder, examples)
    prompts = engine.prompts(examples.read(0, 3))
    assert [prompt.truncated for prompt in prompts] == [True, True, True]
    assert [len(prompt.labels) for prompt in prompts] == [16, 16, 2]
    assert all(prompt.length <= 32 for prompt in prompts)
    assert prompts[1].prompt_tokens > 10
    assert len(engine.predict(prompts)) == 3
    config = PredictConfig(device="cpu", engine="forced", max_prompt_tokens=9)
    shorter = load_engine(config, folder, examples).prompts(examples.read(0, 3))
    assert [prompt.prompt_tokens for prompt in shorter][1:] == [9, 9]  # of the prompt alone
    fewer = load_engine(
        PredictConfig(device="cpu", engine="forced", max_label_tokens=3), folder, examples
    )
    assert [len(prompt.labels) for prompt in fewer.prompts(examples.read(0, 3))] == [3, 3, 2]
    more = PredictConfig(device="cpu", engine="forced", max_label_tokens=17)
    with pytest.raises(ConfigError, match="17 is more than .* window is 32, .* use at most 16"):
        load_engine(more, folder, examples)


def test_end_to_end_the_columns_are_in_the_set(t5: Path, tmp_path: Path) -> None:
    write_examples(tmp_path / "examples.parquet", ROWS, REFERENCES)
    predict(
        PredictConfig(device="cpu", engine="forced", chunk_rows=3, max_batch_rows=2),
        model=t5,
        examples=tmp_path / "examples.parquet",
        predictions=tmp_path / "predictions",
        telemetry=tmp_path / "telemetry.csv",
        progress=Silent(),
    )
    found = PredictionSet(tmp_path / "predictions")
    assert found.card.optional == ("nll", "label_tokens", "correct_tokens")
    table = pa.concat_tables([found.reader(chunk).read() for chunk in found.present()])
    assert table.schema.field("nll").type == pa.float64()
    assert table.schema.field("label_tokens").type == pa.int32()
    engine, rows = make_forced(t5, tmp_path)
    expected = engine.predict(engine.prompts(rows))
    nll = [one.extra["nll"] for one in expected]
    assert table.column("nll").to_pylist() == pytest.approx(nll, rel=1e-5)
    assert table.column("prediction_ids").to_pylist() == [e.ids for e in expected]
    assert set(table.column("finish_reason").to_pylist()) == {"forced"}
    assert pq.read_schema(tmp_path / "predictions/chunk-00000.parquet").names[-3:] == [
        "nll", "label_tokens", "correct_tokens",
    ]  # fmt: skip


def test_logprob_is_for_generation(gpt2: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="forced stores the references' nll"):
        make_forced(gpt2, tmp_path, logprob=True)


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_a_token_that_the_model_does_not_know_is_named(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    engine, rows = make_forced(request.getfixturevalue(name), tmp_path)
    engine._loaded.tokenizer.add_tokens(["d e f"])  # of one reference
    with pytest.raises(ModelError, match=r"row 5 has token id \d+, but the model knows \d+"):
        engine.prompts(rows)
