"""``twophase predict``: phase one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from pipeline.config import load_section
from pipeline.local import local_path
from pipeline.predict.config import PredictConfig
from stages.options import (
    DEFAULT_MODEL,
    examples_option,
    expected_errors,
    model_option,
    needs_phase_one,
    params_options,
    predictions_option,
    telemetry_option,
)


class Bar:
    """A tqdm bar over examples, with tokens/s; finished chunks of an earlier run count as done."""

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None
        self._new_tokens = 0

    def begin(self, rows: int, done: int) -> None:
        self._bar = tqdm(total=rows, initial=done, unit="ex", desc="predict", mininterval=0.5)

    def batch(self, rows: int, new_tokens: int) -> None:
        assert self._bar is not None
        self._new_tokens += new_tokens
        elapsed = self._bar.format_dict["elapsed"]
        if elapsed:
            self._bar.set_postfix_str(f"{self._new_tokens / elapsed:.1f} tokens/s", refresh=False)
        self._bar.update(rows)

    def chunk(self, chunk: int, telemetry: dict[str, int | float | None]) -> None:
        assert self._bar is not None
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@click.command("predict")
@model_option
@examples_option
@predictions_option
@telemetry_option
@params_options
@click.option("--overwrite", is_flag=True, help="Start anew; replace a set of other settings.")
@click.option("--allow-mixed", is_flag=True, help="Go on with chunks made by other versions.")
@expected_errors
@needs_phase_one
def command(
    model: Path,
    examples: Path,
    predictions: Path,
    telemetry: Path,
    params: Path,
    overrides: tuple[str, ...],
    overwrite: bool,
    allow_mixed: bool,
) -> None:
    """Phase one: write predictions (token ids) in chunks; run it again to resume."""
    from pipeline.fetch.hub import download_snapshot
    from pipeline.predict.run import predict

    config = load_section(params, "predict", PredictConfig, overrides)
    if model != DEFAULT_MODEL and local_path(str(model)) is None:
        model = download_snapshot(str(model), revision=None, progress=sys.stderr.isatty())
    bar = Bar()
    try:
        result = predict(
            config,
            model=model,
            examples=examples,
            predictions=predictions,
            telemetry=telemetry,
            progress=bar,
            overwrite=overwrite,
            allow_mixed=allow_mixed,
        )
    finally:
        bar.close()
    click.echo(
        f"{predictions}: {result.card.rows} rows in {result.card.chunks} chunks "
        f"({result.made} made, {result.kept} kept), run {result.card.fingerprint}"
    )


if __name__ == "__main__":
    command()
