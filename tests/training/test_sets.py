"""The sets that evaluations leave: what the commands make of them, and of evaluations that fail."""

from __future__ import annotations

import errno
import json
import warnings
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from click.testing import CliRunner
from transformers import Trainer

from pipeline.errors import ConfigError, DataError, LockedStoreError, PredictionSetError
from pipeline.store import lock
from pipeline.store.prediction_set import PredictionSet
from pipeline.training import Recorder, evaluation
from stages.main import main
from tests.training.oracle import Kept, best_ids, read
from tests.training.trainers import causal_rows, load, make_trainer

SET = Path("eval") / "step-00000000"


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_the_commands_take_a_set_and_find_the_scores_that_were_logged(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = make_trainer(models, "seq2seq", generate=True, max_steps=1)
    Recorder("evaluations", ["rouge", "bleu"]).attach(trainer)
    logged = trainer.evaluate()
    trainer.train()
    trainer.evaluate()
    first, second = (Path("evaluations/eval") / f"step-0000000{step}" for step in (0, 1))
    run("verify", first)
    assert "sealed" in run("inspect", first)
    assert "prefix: eval" in run("inspect", first)
    for name, folder in (("a", first), ("b", second)):
        run("score", "--predictions", folder, "--scores", name, "--metrics", f"{name}.json")
    flat = json.loads(Path("a.json").read_bytes())
    beside = json.loads(Path(f"{first}-metrics.json").read_bytes())
    assert flat == beside
    for name in ("rouge1", "rougeL", "bleu"):
        assert logged[f"eval_{name}"] == flat[name]
    assert "rougeL" in run("compare", "a", "b")
    assert "rougeL" in run("compare", f"{first}-scores", f"{second}-scores")


def test_a_warning_is_shown_once_in_a_training(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, max_steps=2, eval_strategy="steps", eval_steps=1)
    Recorder(tmp_path / "e", ["bleu"]).attach(trainer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.train()
    texts = [str(warning.message) for warning in caught]
    assert len(list((tmp_path / "e" / "eval").glob("*-scores"))) == 2
    assert sum("not scores of generated text" in text for text in texts) == 1


def test_scoring_is_left_for_later(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path / "e").attach(trainer)
    metrics = trainer.evaluate()
    assert not any("rouge" in name for name in metrics)
    assert [path.name for path in (tmp_path / "e" / "eval").iterdir()] == ["step-00000000"]


def test_a_second_evaluation_of_a_step_replaces_set_and_scores(
    models: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    trainer.evaluate()
    whole = read(tmp_path / SET)
    trainer.evaluate(trainer.eval_dataset.select(range(2)))
    assert read(tmp_path / SET)["prediction_ids"] == whole["prediction_ids"][:2]
    scores = json.loads((tmp_path / f"{SET}-scores" / "summary.json").read_bytes())
    assert scores["rows"] == 2
    assert not list((tmp_path / "eval").glob(".*"))


def test_old_scores_do_not_stay_beside_new_predictions(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    trainer.evaluate()
    other = make_trainer(models)
    Recorder(tmp_path).attach(other)
    other.evaluate()
    assert [path.name for path in (tmp_path / "eval").iterdir()] == ["step-00000000"]


def test_what_is_no_set_is_not_replaced(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path).attach(trainer)
    (tmp_path / SET).mkdir(parents=True)
    (tmp_path / SET / "notes.txt").write_text("mine")
    with pytest.raises(PredictionSetError, match="exists and is not a prediction set; name anot"):
        trainer.evaluate()
    assert (tmp_path / SET / "notes.txt").read_text() == "mine"


def test_another_process_at_the_same_evaluation(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path).attach(trainer)
    partial = tmp_path / "eval" / ".step-00000000.partial"
    with lock.hold(partial), pytest.raises(LockedStoreError, match="is being written by process"):
        trainer.evaluate()
    trainer.evaluate()
    assert not partial.exists()


def test_an_evaluation_that_raises_leaves_a_partial_set_and_the_next_one_works(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "CHUNK_ROWS", 2)
    trainer = make_trainer(models, per_device_eval_batch_size=2)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    trainer.evaluate()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kept = vars(trainer).copy()
    state = trainer.accelerator.gradient_state
    loaders = list(state.dataloader_references)
    own, calls = trainer.model.forward, []

    @wraps(own)
    def forward(**inputs: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("CUDA out of memory")
        return own(**inputs)

    trainer.model.forward = forward
    with pytest.raises(RuntimeError, match="out of memory"):
        trainer.evaluate()
    trainer.model.forward = own
    assert (tmp_path / SET / "SHA256SUMS").read_bytes() == before[tmp_path / SET / "SHA256SUMS"]
    partial = PredictionSet(tmp_path / "eval" / ".step-00000000.partial" / "set")
    assert not partial.sealed
    assert partial.present() == [0, 1]
    assert {name: value for name, value in vars(trainer).items() if name != "control"} == {
        name: value for name, value in kept.items() if name != "control"
    }
    assert state.dataloader_references == loaders
    trainer.evaluate()
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_rows_lie_in_chunks_whatever_the_batches(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path / "one").attach(trainer)
    trainer.evaluate()
    monkeypatch.setattr(evaluation, "CHUNK_ROWS", 2)
    again = make_trainer(models, per_device_eval_batch_size=5)
    Recorder(tmp_path / "four").attach(again)
    again.evaluate()
    assert PredictionSet(tmp_path / "four" / SET).present() == [0, 1, 2, 3]
    one, four = read(tmp_path / "one" / SET), read(tmp_path / "four" / SET)
    for name in ("row", "id", "prediction_ids", "references", "label_tokens"):
        assert one[name] == four[name]
    run("verify", tmp_path / "four" / SET)


def test_a_loader_that_drops_the_last_rows(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, dataloader_drop_last=True)
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate()
    assert read(tmp_path / SET)["row"] == [0, 1, 2, 3, 4, 5]


def test_predict_goes_through_as_if_nothing_were_attached(models: Path, tmp_path: Path) -> None:
    rows = make_trainer(models).eval_dataset
    expected = make_trainer(models).predict(rows)
    trainer = make_trainer(models)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    trainer.evaluate()
    found = trainer.predict(rows)
    assert (found.predictions == expected.predictions).all()
    assert (found.label_ids == expected.label_ids).all()
    assert found.metrics["test_loss"] == expected.metrics["test_loss"]
    assert not (tmp_path / "test").exists()
    assert trainer.args.batch_eval_metrics
    assert "test_rougeL" in trainer.evaluate(rows, metric_key_prefix="test")
    assert (tmp_path / "test").exists()


def test_ids_and_kept_columns_come_from_the_data_set(models: Path, tmp_path: Path) -> None:
    _, tokenizer = load(models, "causal")
    rows = causal_rows(tokenizer, 7, column="id")
    rows = rows.add_column("topic", [*"aababab"]).select([6, 2, 4, 0])
    trainer = make_trainer(models, eval_dataset=rows)
    Recorder(tmp_path, ["rouge"], keep=["topic"], score_options={"by": ["topic"]}).attach(trainer)
    trainer.evaluate()
    found = read(tmp_path / SET)
    assert found["id"] == ["name-6", "name-2", "name-4", "name-0"]
    assert found["topic"] == rows["topic"][:]
    scores = json.loads((tmp_path / f"{SET}-scores" / "summary.json").read_bytes())
    assert {group["values"]["topic"] for group in scores["groups"]} == set(rows["topic"])


@pytest.mark.parametrize(
    ("ids", "keep", "error", "message"),
    [
        (["a", "b", "a"], [], DataError, "rows 0 and 2 of the evaluated data set have the same id"),
        (["a", None, "b"], [], DataError, "row 1 of the evaluated data set has no id"),
        ([["a"], ["b"], ["c"]], [], DataError, "column 'id'.* is of the type list<.*no name"),
        (["a", "b", "c"], ["idd"], ConfigError, "has no column 'idd'.*did you mean id"),
        (["a", "b", "c"], ["id"], ConfigError, "has a column 'id' of its own"),
    ],
)
def test_columns_that_cannot_be_taken(
    ids: list[Any], keep: list[str], error: type[Exception], message: str, models: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    rows = make_trainer(models, rows=3).eval_dataset.add_column("id", ids)
    trainer = make_trainer(models, eval_dataset=rows)
    Recorder(tmp_path, keep=keep).attach(trainer)
    with pytest.raises(error, match=message):
        trainer.evaluate()


def test_columns_of_a_list_cannot_be_kept(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, eval_dataset=list(make_trainer(models).eval_dataset))
    Recorder(tmp_path, keep=["topic"]).attach(trainer)
    with pytest.raises(ConfigError, match=r"can be kept from a datasets\.Dataset only"):
        trainer.evaluate()


def test_rows_grouped_by_length_keep_their_names(models: Path, tmp_path: Path) -> None:
    kept = Kept()
    make_trainer(models, compute_metrics=kept).evaluate()
    expected = dict(zip("0123456", best_ids(kept, causal=True), strict=True))
    trainer = make_trainer(models, train_sampling_strategy="group_by_length")
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate()
    found = read(tmp_path / SET)
    assert found["id"] != list("0123456")
    assert found["row"] == list(range(7))
    assert dict(zip(found["id"], found["prediction_ids"], strict=True)) == expected


def test_a_data_set_without_labels(models: Path, tmp_path: Path) -> None:
    rows = make_trainer(models).eval_dataset.remove_columns("labels")
    trainer = make_trainer(models, eval_dataset=rows)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    with pytest.raises(DataError, match="'eval' gave no row with labels and predictions"):
        trainer.evaluate()


def test_a_tokenizer_without_json_stores_text(models: Path, tmp_path: Path) -> None:
    from transformers import ByT5Tokenizer

    trainer = make_trainer(models, "seq2seq", generate=True, processing_class=ByT5Tokenizer())
    Recorder(tmp_path, ["cer"]).attach(trainer)
    metrics = trainer.evaluate()
    found = read(tmp_path / SET)
    assert "prediction_ids" not in found
    assert all(isinstance(text, str) for text in found["prediction"])
    assert not (tmp_path / SET / "tokenizer").exists()
    assert metrics["eval_cer"] > 0
    run("verify", tmp_path / SET)


def test_one_tokenizer_lies_on_the_disk_for_all_sets(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path).attach(trainer)
    for prefix in ("eval", "odd/../name", ".hidden"):
        trainer.evaluate(metric_key_prefix=prefix)
    (shared,) = (tmp_path / ".tokenizers").iterdir()
    assert shared.stat().st_nlink == 4
    folders = sorted(path.name for path in tmp_path.iterdir() if path.name != ".tokenizers")
    assert folders == ["%2Ehidden", "eval", "odd%2F..%2Fname"]


def test_the_schema_is_that_of_phase_one(models: Path, tmp_path: Path) -> None:
    from pipeline.schema import chunk_schema

    trainer = make_trainer(models)
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate()
    source = PredictionSet(tmp_path / SET)
    optional = ("nll", "label_tokens", "correct_tokens")
    assert source.reader(0).schema.equals(chunk_schema(text=False, optional=optional))
    assert isinstance(source.reader(0).read(), pa.Table)
    assert source.card.inputs["training"]["step"] == 0


def test_kept_loaders_give_their_own_rows(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(
        models,
        train_sampling_strategy="group_by_length",
        dataloader_num_workers=1,
        dataloader_persistent_workers=True,
    )
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate()
    expected, loader = read(tmp_path / SET), trainer._eval_dataloaders["eval"]
    trainer.evaluate()
    assert trainer._eval_dataloaders["eval"] is loader
    found = read(tmp_path / SET)
    assert found["id"] == expected["id"] != list("0123456")
    assert found["references"] == expected["references"]
    other = trainer.eval_dataset.select([6, 4])
    trainer.evaluate(other, metric_key_prefix="test")
    named = dict(zip(found["id"], found["references"], strict=True))
    test = read(tmp_path / "test" / "step-00000000")
    assert sorted(test["references"]) == sorted([named["6"], named["4"]])


class Reversed(Trainer):
    """Evaluates the last row first."""

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        return list(reversed(range(len(eval_dataset))))


class Shuffled(Trainer):
    """Evaluates in an order that nobody knows afterwards."""

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        rows: Any = list(self.eval_dataset)
        loader = torch.utils.data.DataLoader(
            rows, batch_size=3, shuffle=True, collate_fn=self.data_collator
        )
        return self.accelerator.prepare(loader)


def test_an_order_of_the_persons_own(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    trainer.__class__ = Reversed
    Recorder(tmp_path / "reversed").attach(trainer)
    trainer.evaluate()
    found = read(tmp_path / "reversed" / SET)
    assert found["id"] == list("6543210")
    assert [row[0].split()[-1] for row in found["references"]] == list("6543210")
    trainer = make_trainer(models)
    trainer.__class__ = Shuffled
    Recorder(tmp_path / "shuffled").attach(trainer)
    with pytest.raises(ConfigError, match=r"in the order of a \w*RandomSampler, which does not"):
        trainer.evaluate()


def test_rows_that_are_not_those_of_the_data_set(models: Path, tmp_path: Path) -> None:
    from transformers import DataCollatorWithFlattening

    trainer = make_trainer(models, data_collator=DataCollatorWithFlattening())
    Recorder(tmp_path / "joined").attach(trainer)
    with pytest.raises(DataError, match="gave 3 rows with labels and predictions for a data set"):
        trainer.evaluate()
    assert not (tmp_path / "joined" / SET).exists()

    trainer = make_trainer(models)
    own = trainer.data_collator
    trainer.data_collator = lambda rows: own([*rows, *rows])
    Recorder(tmp_path / "split").attach(trainer)
    with pytest.raises(DataError, match="gave 6 rows of labels for a batch of 3 rows"):
        trainer.evaluate()

    rows = [dict(row) for row in make_trainer(models).eval_dataset]
    for row in rows[3:6]:
        del row["labels"]
    trainer = make_trainer(models, eval_dataset=rows)
    Recorder(tmp_path / "unlabelled").attach(trainer)
    with pytest.raises(DataError, match="gave 4 rows with labels and predictions for a data set"):
        trainer.evaluate()


def test_the_folder_stays_where_the_recorder_was_made(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = make_trainer(models, rows=1)
    Recorder("evaluations").attach(trainer)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    trainer.evaluate()
    assert (tmp_path / "evaluations" / SET).exists()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(("folder", "prefix"), [("file", "eval"), ("e", "x" * 300)])
def test_a_folder_that_cannot_be(folder: str, prefix: str, models: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    trainer = make_trainer(models, rows=1)
    Recorder(tmp_path / folder).attach(trainer)
    with pytest.raises(PredictionSetError, match="cannot be written: .*name another folder for"):
        trainer.evaluate(metric_key_prefix=prefix)


def test_a_disk_that_is_full(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.training import spool

    def full(*arguments: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    trainer = make_trainer(models, rows=1)
    Recorder(tmp_path).attach(trainer)
    with monkeypatch.context() as patch:
        patch.setattr(spool, "write_chunk_atomically", full)
        with pytest.raises(PredictionSetError, match="No space left on device; make room, or"):
            trainer.evaluate()
    trainer.evaluate()
    assert (tmp_path / SET).exists()
