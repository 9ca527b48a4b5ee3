"""The plan of a run: what is missing, and how tokens are estimated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError
from pipeline.predict.config import PredictConfig
from pipeline.predict.job import Job
from pipeline.predict.oom import Budget, write_budget
from pipeline.predict.plan import missing_chunks, plan_lines
from pipeline.predict.shard import Shard
from tests.examples import write_examples
from tests.models import train_tokenizer
from tests.predict.test_run import TEXTS, place, run

__all__ = ["place"]


def job(place: Path, out: str = "out", **keys: Any) -> Job:
    config = PredictConfig(**{"chunk_rows": 5, "max_batch_rows": 2} | keys)
    return Job.plan(
        config, place / "model", place / "examples.parquet", place / out / "predictions"
    )


def fact(planned: Job, name: str, shard: Shard | None = None) -> str:
    (line,) = (line for line in plan_lines(planned, shard) if line.startswith(name))
    return line.removeprefix(name).strip()


def test_tokens_are_counted_with_the_tokenizer_and_scaled(place: Path) -> None:
    tokenizer = train_tokenizer()
    tokenizer.save(str(place / "model/tokenizer.json"))
    generation = {"max_new_tokens": 10}
    exact = sum(len(tokenizer.encode(text).ids) for text in TEXTS)
    planned = job(place, generation=generation)
    assert fact(planned, "estimated tokens") == (
        f"about {exact} of prompts (23 rows counted, chat template and the model's window aside) "
        "+ at most 230 new ones (10 per row)"
    )
    cut = job(place, generation=generation, max_prompt_tokens=3)
    assert fact(cut, "estimated tokens").startswith(f"about {3 * 23} of prompts")
    sliced = job(place, rows="5:10", template="say {document}!", generation=generation)
    exact = sum(len(tokenizer.encode(f"say {text}!").ids) for text in TEXTS[5:10])
    assert fact(sliced, "estimated tokens").startswith(f"about {exact} of prompts (5 rows")
    assert fact(sliced, "rows") == "5 (5 to 9)"


def test_without_a_tokenizer_file_bytes_are_counted(place: Path) -> None:
    (place / "model/tokenizer.json").rename(place / "model/vocab.txt")
    said = fact(job(place), "estimated tokens")
    assert "at 4 bytes a token" in said
    assert "new ones" not in said  # nothing says how many


def test_what_is_not_generated_is_not_estimated(place: Path) -> None:
    forced = fact(job(place, engine="forced"), "estimated tokens")
    assert forced.endswith("window aside) + the references, not counted")
    sound = str(place / "model/config.json")  # any file will do: none is listened to
    write_examples(place / "examples.parquet", [sound] * 3)
    assert fact(job(place, engine="ctc"), "estimated tokens") == "not counted: the inputs are audio"
    assert fact(job(place, engine="ctc"), "first prompt") == "audio"


def test_the_first_prompt_is_shown(place: Path) -> None:
    planned = job(place, rows="5:10", template="say:\n{document}!")
    assert fact(planned, "first prompt") == json.dumps(f"say:\n{TEXTS[5]}!", ensure_ascii=False)
    long = fact(job(place, template="A" * 300 + "{document}" + "Z" * 300), "first prompt")
    assert long == '"' + "A" * 199 + " … " + "Z" * 199 + '"'
    assert "  predict.template: null" in plan_lines(job(place))


def test_a_template_that_does_not_fit_is_found(place: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean document"):
        plan_lines(job(place, template="{documnt}"))


def test_what_is_missing_of_a_shard_and_of_a_set_that_was_copied(place: Path) -> None:
    run(place, shard=Shard(2, 2))
    assert fact(job(place), "missing").startswith("3 (chunk-00000.parquet, chunk-00002.parquet,")
    assert fact(job(place), "chunks", Shard(1, 2)) == "3 of shard 1/2, of 5 rows"
    assert fact(job(place), "missing", Shard(2, 2)) == "0: no model is needed"
    assert fact(job(place), "estimated", Shard(2, 2)) == "tokens  none"
    run(place, out="whole")
    (place / "whole/.partial").rename(place / "elsewhere")
    (place / "whole/predictions/chunk-00001.parquet").unlink()
    assert missing_chunks(job(place, "whole"), range(5)) == [1]
    assert missing_chunks(job(place, "whole", chunk_rows=6), range(4)) == [0, 1, 2, 3]


def test_the_budget_is_the_one_that_memory_left(place: Path) -> None:
    run(place, shard=Shard(2, 2))
    write_budget(job(place).store, Budget(1, 300))
    assert fact(job(place), "batch budget") == "1 rows, 300 tokens (padded prompts plus new tokens)"


def test_it_does_not_import_torch(place: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from pipeline.predict.config import PredictConfig\n"
        "from pipeline.predict.job import Job\n"
        "from pipeline.predict.plan import plan_lines\n"
        "place = Path(sys.argv[1])\n"
        "plan_lines(Job.plan(PredictConfig(), place / 'model', place / 'examples.parquet',\n"
        "                    place / 'out/predictions'))\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True)
