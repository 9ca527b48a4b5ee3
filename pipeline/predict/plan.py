"""What a run would do (``--dry-run``): nothing is written, no model loaded, no torch imported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.predict.fields import field_texts
from pipeline.predict.fingerprint import reads_audio
from pipeline.predict.job import Job
from pipeline.predict.oom import read_budget
from pipeline.predict.shard import Shard
from pipeline.predict.template import Template
from pipeline.store.prediction_set import name_chunks

# Rows whose prompts are counted: the first few of chunks that are evenly spaced.
_SAMPLED_CHUNKS = 20
_SAMPLED_ROWS = 10
# English text in most vocabularies; used where the tokenizer has no tokenizer.json.
_BYTES_PER_TOKEN = 4
# Characters of the first prompt: both ends of a long one.
_SHOWN = 400


def plan_lines(job: Job, shard: Shard | None = None) -> list[str]:
    """The plan, a fact a line.

    Raises:
        ConfigError: the template does not fit the columns.
    """
    chunks = range(job.chunks) if shard is None else shard.chunks(job.chunks)
    missing = missing_chunks(job, chunks)
    named = f" ({name_chunks(missing)})" if missing else ": no model is needed"
    whose = f" of shard {shard}" if shard else ""
    facts = {
        "rows": f"{job.rows} ({job.first_row} to {job.first_row + job.rows - 1})",
        "chunks": f"{len(chunks)}{whose}, of {job.config.chunk_rows} rows",
        "missing": f"{len(missing)}{named}",
        "batch budget": f"{read_budget(job.store, job.config)} (padded prompts plus new tokens)",
        "estimated tokens": " + ".join(_estimate(job, missing)) if missing else "none",
        "first prompt": _first_prompt(job),
        "store": str(job.store.folder),
        "fingerprint": job.store.fingerprint,
        "its inputs": "",
    }
    lines = [f"{name:<17} {value}".rstrip() for name, value in facts.items()]
    return lines + [f"  {name}: {_plain(value)}" for name, value in _flat(job.inputs)]


def missing_chunks(job: Job, chunks: range) -> list[int]:
    """Which of ``chunks`` a run would make."""
    lacking = job.store.lacking(chunks) if job.store.begun else list(chunks)
    there = job.store.target.holds(job.store.fingerprint) if lacking else set()
    return [chunk for chunk in lacking if chunk not in there]


def _estimate(job: Job, missing: list[int]) -> Iterator[str]:
    """Prompt tokens of the rows to make, and the most that can be new."""
    config, rows = job.config, 0
    for chunk in missing:
        rows += min(config.chunk_rows, job.rows - chunk * config.chunk_rows)
    if reads_audio(config, job.model):
        yield "not counted: the inputs are audio"
        return
    yield _prompt_tokens(job, missing, rows)
    if config.engine == "forced":
        yield "the references, not counted"
        return
    new_tokens = config.generation.get("max_new_tokens")
    if isinstance(new_tokens, int):
        yield f"at most {rows * new_tokens} new ones ({new_tokens} per row)"


def _first_prompt(job: Job) -> str:
    """What the template makes of the first row, in quotes; the middle of a long one left out."""
    if reads_audio(job.config, job.model):
        return "audio"
    template = Template(job.config.template, job.examples.inputs)
    row = job.examples.read(job.first_row, job.first_row + 1)
    columns = {name: row.column(name).to_pylist() for name in template.fields}
    (values,) = field_texts(columns, job.first_row)
    text = json.dumps(template.render(values), ensure_ascii=False)
    if len(text) > _SHOWN:
        text = f"{text[: _SHOWN // 2]} … {text[-_SHOWN // 2 :]}"
    return text


def _prompt_tokens(job: Job, missing: list[int], rows: int) -> str:
    sample = _sample(job, missing)
    template = Template(job.config.template, job.examples.inputs)
    columns = {name: sample.column(name).to_pylist() for name in template.fields}
    texts = [template.render(values) for values in field_texts(columns, job.first_row)]
    counts, by = _count(texts, job.model)
    longest = job.config.max_prompt_tokens
    total = sum(count if longest is None else min(count, longest) for count in counts)
    estimate = round(total / len(texts) * rows)
    return (
        f"about {estimate} of prompts ({len(texts)} rows {by}, chat template and the model's "
        "window aside)"
    )


def _sample(job: Job, missing: list[int]) -> pa.Table:
    step = max(1, len(missing) // _SAMPLED_CHUNKS)
    tables = []
    for chunk in missing[::step][:_SAMPLED_CHUNKS]:
        start = chunk * job.config.chunk_rows
        stop = min(start + min(job.config.chunk_rows, _SAMPLED_ROWS), job.rows)
        tables.append(job.examples.read(job.first_row + start, job.first_row + stop))
    return pa.concat_tables(tables)


def _count(texts: list[str], model: Path) -> tuple[list[int], str]:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    except Exception:  # the library raises no other class: there is none, or none that it reads
        counts = [-(-len(text.encode()) // _BYTES_PER_TOKEN) for text in texts]
        return counts, f"at {_BYTES_PER_TOKEN} bytes a token, without a tokenizer.json"
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return [len(encoding.ids) for encoding in tokenizer.encode_batch(texts)], "counted"


def _plain(value: Any) -> str:
    """As it would stand in params.yaml, but for the quotes of a text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _flat(inputs: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in inputs.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
