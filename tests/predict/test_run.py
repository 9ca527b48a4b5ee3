"""The run: resume, damage, overwrite, mixing — with an engine that is no model."""

from __future__ import annotations

import csv
import gc
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import DataError, FingerprintError, ModelError
from pipeline.predict import fingerprint
from pipeline.predict.config import PredictConfig
from pipeline.predict.prompt import Prompt
from pipeline.predict.run import Result, predict
from pipeline.store.chunk import chunk_name
from pipeline.store.prediction_set import SUMS, PredictionSet
from tests.examples import write_examples
from tests.predict.fake import FakeEngine, Silent

TEXTS = [f"row {row} " + "word " * (row * 7 % 11) for row in range(23)]
# The least that is whole: no tensors behind a header of two bytes.
MODEL_FILES = {
    "config.json": b"{}",
    "model.safetensors": (2).to_bytes(8, "little") + b"{}",
    "tokenizer.json": b"{}",
}


CONFIG_KEYS = set(PredictConfig.__struct_fields__)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_examples(tmp_path / "examples.parquet", TEXTS, keep={"topic": list(range(23))})
    (tmp_path / "model").mkdir()
    for name, content in MODEL_FILES.items():
        (tmp_path / "model" / name).write_bytes(content)
    return tmp_path


def run(
    place: Path, engine: FakeEngine | None = None, progress: Silent | None = None, **options: Any
) -> Result:
    keys = {"chunk_rows": 5, "max_batch_rows": 2}
    keys |= {name: options.pop(name) for name in CONFIG_KEYS & options.keys()}
    config = PredictConfig(**keys)
    folder = place / options.pop("out", "out")
    options.setdefault("make_engine", lambda *_: engine or FakeEngine())
    return predict(
        config,
        model=place / "model",
        examples=place / "examples.parquet",
        predictions=folder / "predictions",
        telemetry=folder / "telemetry.csv",
        progress=progress or Silent(),
        **options,
    )


def rows_of(folder: Path) -> list[dict[str, Any]]:
    prediction_set = PredictionSet(folder / "predictions")
    prediction_set.require_complete()
    return [
        row
        for chunk in prediction_set.present()
        for row in prediction_set.reader(chunk).read().to_pylist()
    ]


def never(*_: Any) -> FakeEngine:
    raise AssertionError("the model was loaded")


def test_rows_are_written_in_order_with_what_belongs_to_them(place: Path) -> None:
    engine, progress = FakeEngine(), Silent()
    result = run(place, engine, progress)
    rows = rows_of(place / "out")
    tokenizer = engine._tokenizer
    assert [row["row"] for row in rows] == list(range(23))
    for number, row in enumerate(rows):
        assert row["id"] == f"id-{number}"
        assert row["references"] == [TEXTS[number]]
        assert row["topic"] == number
        assert row["prediction_ids"] == tokenizer.encode(TEXTS[number]).ids[::-1]
        assert row["prompt_tokens"] == len(row["prediction_ids"])
    assert (result.made, result.kept) == (5, 0)
    assert progress.began == (23, 0)
    assert progress.rows == 23
    assert [row["batch_rows"] for row in rows[20:]].count(2) == 2  # 3 rows: a pair and one alone
    assert engine.memory.emptied == 5  # between chunks, never between batches
    assert len(engine.batches) == 4 * 3 + 2


def test_an_engine_may_limit_its_batches_and_add_columns(place: Path) -> None:
    engine = FakeEngine()
    engine.max_rows = 1
    engine.optional = ("logprob",)
    run(place, engine)
    assert engine.batches == [1] * 23
    rows = rows_of(place / "out")
    assert [row["batch_rows"] for row in rows] == [1] * 23
    assert [row["logprob"] for row in rows] == [-len(row["prediction_ids"]) for row in rows]


def test_the_telemetry_has_a_line_per_chunk(place: Path) -> None:
    run(place)
    with (place / "out/telemetry.csv").open() as handle:
        lines = list(csv.DictReader(handle))
    assert [line["chunk"] for line in lines] == ["0", "1", "2", "3", "4"]
    assert sum(int(line["rows"]) for line in lines) == 23
    for line in lines:
        assert int(line["rss_peak_bytes"]) >= int(line["rss_before_bytes"]) > 0
        assert line["allocated_peak_bytes"] == ""  # a CPU does not count


@pytest.mark.parametrize("failing", [0, 7, 22])
def test_resumed_equals_uninterrupted(place: Path, failing: int) -> None:
    with pytest.raises(RuntimeError, match="fell over"):
        run(place, FakeEngine(fail_at=TEXTS[failing]), out="resumed")
    assert not (place / "resumed/predictions").exists()
    progress = Silent()
    result = run(place, progress=progress, out="resumed")
    assert result.kept == failing // 5
    assert progress.began == (23, 5 * (failing // 5))
    run(place, out="whole")
    for name in (place / "whole/predictions").rglob("*"):
        if name.is_file():
            other = place / "resumed/predictions" / name.relative_to(place / "whole/predictions")
            assert other.read_bytes() == name.read_bytes()


def test_a_finished_run_is_published_again_without_a_model(place: Path) -> None:
    run(place)
    shutil.rmtree(place / "out/predictions")
    (place / "out/telemetry.csv").unlink()
    config = PredictConfig(chunk_rows=5, max_batch_rows=2, device="cpu")
    result = predict(
        config,
        model=place / "model",
        examples=place / "examples.parquet",
        predictions=place / "out/predictions",
        telemetry=place / "out/telemetry.csv",
        progress=Silent(),
        make_engine=never,
    )
    assert (result.made, result.kept) == (0, 5)
    assert len(rows_of(place / "out")) == 23
    assert len((place / "out/telemetry.csv").read_text().splitlines()) == 6


def test_a_finished_run_does_not_import_torch(place: Path) -> None:
    run(place)
    code = (
        "import sys; from pathlib import Path\n"
        "from pipeline.predict.config import PredictConfig\n"
        "from pipeline.predict.run import predict\n"
        "place = Path(sys.argv[1])\n"
        "predict(PredictConfig(chunk_rows=5, max_batch_rows=2), model=place / 'model',\n"
        "        examples=place / 'examples.parquet', predictions=place / 'out/predictions',\n"
        "        telemetry=place / 'out/telemetry.csv', progress=None)\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True)


@pytest.mark.parametrize("where", ["predictions", "store"])
def test_a_damaged_chunk_is_made_again_alone(place: Path, where: str) -> None:
    result = run(place)
    folder = place / "out/predictions"
    before = (folder / SUMS).read_bytes()
    if where == "store":  # both: they are links to the same bytes
        folder = place / "out/.partial" / result.fingerprint
        with (folder / chunk_name(2)).open("r+b") as handle:
            handle.write(b"XXXX")
    else:  # the set was copied, its store is elsewhere
        shutil.rmtree(place / "out/.partial")
        (folder / chunk_name(2)).write_bytes(b"cut")
    progress = Silent()
    again = run(place, progress=progress)
    assert (again.made, progress.chunks) == (1, [2])
    assert (place / "out/predictions" / SUMS).read_bytes() == before
    rows_of(place / "out")


def test_other_settings_do_not_mix(place: Path) -> None:
    first = run(place)
    with pytest.raises(FingerprintError, match=r"differing: predict.chunk_rows\).*--overwrite"):
        run(place, chunk_rows=6)
    second = run(place, chunk_rows=6, overwrite=True)
    assert first.fingerprint != second.fingerprint
    assert PredictionSet(place / "out/predictions").card.chunks == 4


def test_overwrite_starts_anew(place: Path) -> None:
    with pytest.raises(RuntimeError, match="fell over"):
        run(place, FakeEngine(fail_at=TEXTS[22]))
    assert run(place, overwrite=True).made == 5


def test_what_enters_the_fingerprint(place: Path) -> None:
    config = PredictConfig()
    examples, model = place / "examples.parquet", place / "model"

    def inputs(**changes: Any) -> dict[str, Any]:
        return fingerprint.run_inputs(PredictConfig(**changes), examples, model)

    base = inputs()
    assert inputs(device="cpu") == base
    assert inputs(device_map="auto", max_memory={"cpu": "1GiB"}) == base
    changes: dict[str, Any] = {
        "engine": "causal",
        "template": "{document}",
        "chat": True,
        "rows": ":9",
        "max_prompt_tokens": 9,
        "dtype": "bfloat16",
        "chunk_rows": 9,
        "max_batch_rows": 9,
        "max_batch_tokens": 9,
        "on_oom": "record",  # a set that holds empty rows is another set
        "generation": {"max_new_tokens": 9},
        "max_label_tokens": 9,
        "tokenizer": {"src_lang": "de"},
        "sampling_rate": 9,
        "quantization": "4bit",
        "model_kwargs": {"attn_implementation": "eager"},
        "trust_remote_code": True,
        "seed": 9,
        "logprob": True,
        "adapter": str(place / "adapter"),
    }
    (place / "adapter").mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (place / "adapter" / name).write_text("{}")
    assert set(changes) == set(config.__struct_fields__) - fingerprint.NEUTRAL_KEYS
    for key, value in changes.items():
        assert inputs(**{key: value}) != base, key
    (model / "README.md").write_text("about the model")
    (model / "optimizer.pt").write_bytes(b"state")
    assert inputs() == base
    changed = MODEL_FILES | dict.fromkeys(("config.json", "tokenizer.json"), b"{ }")
    changed["model.safetensors"] = (3).to_bytes(8, "little") + b"{ }"
    for name, content in MODEL_FILES.items():
        (model / name).write_bytes(changed[name])
        assert inputs() != base, name
        (model / name).write_bytes(content)
    write_examples(examples, ["another"])
    assert inputs()["examples"] != base["examples"]


def test_missing_inputs_say_what_to_run(place: Path) -> None:
    shutil.rmtree(place / "model")
    with pytest.raises(ModelError, match=r"no such folder; run `twophase fetch`"):
        run(place)
    (place / "examples.parquet").unlink()
    with pytest.raises(DataError, match=r"no such file; run `twophase prepare`"):
        run(place)


def test_an_examples_file_of_something_else_is_refused(place: Path) -> None:
    (place / "examples.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match="cannot be read"):
        run(place)
    shutil.copy(
        Path(write_examples(place / "x.parquet", ["a"])).with_name("x.parquet"),
        place / "examples.parquet",
    )
    assert run(place, out="fresh").rows == 1


def test_an_empty_data_set_is_refused(place: Path) -> None:
    write_examples(place / "examples.parquet", [], references=[], keep={})
    with pytest.raises(DataError, match="has no rows"):
        run(place)


def test_what_is_loaded_is_not_looked_through_for_garbage_after_each_chunk(place: Path) -> None:
    """Else each chunk costs as much as torch has objects."""
    frozen: list[int] = []
    run(place, progress=Silent(lambda chunk: frozen.append(gc.get_freeze_count())))
    assert min(frozen) > 10_000
    assert gc.get_freeze_count() == 0  # afterwards a dropped model is garbage again


def test_a_damaged_chunk_is_named(place: Path) -> None:
    result = run(place)
    store = place / "out/.partial" / result.fingerprint
    (store / chunk_name(2)).write_bytes(b"cut")
    progress = Silent()
    assert run(place, progress=progress).made == 1
    assert progress.notes == ["chunk-00002.parquet is damaged; making it again"]


def test_what_cannot_be_written_is_found_before_the_model_is_loaded(place: Path) -> None:
    (place / "out/telemetry.csv").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        predict(
            PredictConfig(),
            model=place / "model",
            examples=place / "examples.parquet",
            predictions=place / "out/predictions",
            telemetry=place / "out/telemetry.csv",
            progress=Silent(),
            make_engine=never,
        )


def test_a_run_that_ends_before_it_begins_leaves_no_store(place: Path) -> None:
    def refuse(*_: Any) -> FakeEngine:
        raise ModelError("no such model")

    with pytest.raises(ModelError):
        predict(
            PredictConfig(),
            model=place / "model",
            examples=place / "examples.parquet",
            predictions=place / "out/predictions",
            telemetry=place / "out/telemetry.csv",
            progress=Silent(),
            make_engine=refuse,
        )
    assert not list((place / "out/.partial").glob("*/"))


def predict_without_a_model(place: Path, **settings: Any) -> None:
    """As the command does; of the model there is a config only, so that loading it is an error."""
    (place / "model/config.json").write_text('{"model_type": "gpt2"}')
    predict(
        PredictConfig(generation={"max_new_tokens": 2}, **settings),
        model=place / "model",
        examples=place / "examples.parquet",
        predictions=place / "predictions",
        telemetry=place / "telemetry.csv",
        progress=Silent(),
    )


def test_an_empty_prompt_is_found_before_the_model_is_loaded(place: Path) -> None:
    write_examples(place / "examples.parquet", ["a", "b", "", "c", ""], row_group_rows=2)
    for template in (None, "{document}"):
        with pytest.raises(DataError, match=r"^row 2 \(id 'id-2'\): document is empty .*leave"):
            predict_without_a_model(place, template=template)
    with pytest.raises(ModelError, match="has no tokenizer that can be loaded"):
        predict_without_a_model(place, template="{document}!")  # there is a prompt
    with pytest.raises(ModelError, match="has no tokenizer that can be loaded"):
        predict_without_a_model(place, template=None, chat=True)


def test_an_input_of_bytes_is_found_before_the_model_is_loaded(place: Path) -> None:
    path = place / "examples.parquet"
    table = pq.read_table(write_examples(path, ["a", "b"]))
    sound = table.set_column(3, "document", pa.array([b"RIFF", b"RIFF"]))
    schema = sound.schema.with_metadata(table.schema.metadata)
    pq.write_table(sound.cast(schema), path)
    with pytest.raises(DataError, match="the input column 'document' holds binary, which no"):
        predict_without_a_model(place)
    assert (
        predict(  # the check is the template's: another engine may take sound
            PredictConfig(),
            model=place / "model",
            examples=path,
            predictions=place / "predictions",
            telemetry=place / "telemetry.csv",
            progress=Silent(),
            make_engine=lambda *_: Listener(),
        ).rows
        == 2
    )


class Listener(FakeEngine):
    def prompts(self, examples: pa.Table) -> list[Prompt]:
        return [Prompt(list(sound), truncated=False) for sound in examples["document"].to_pylist()]
