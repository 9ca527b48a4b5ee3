"""``twophase predict``: phase one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
from stages.progress import progress_for

if TYPE_CHECKING:
    from pipeline.predict.run import Result
    from pipeline.predict.shard import Shard


@click.command("predict")
@model_option("Folder with the model, or a hub id.")
@examples_option
@predictions_option
@telemetry_option
@params_options
@click.option("--overwrite", is_flag=True, help="Start anew; replace a set of other settings.")
@click.option("--allow-mixed", is_flag=True, help="Go on with chunks made by other versions.")
@click.option(
    "--shard",
    metavar="I/N",
    help="Make the I-th of N parts (from 1); the shard that finds all complete publishes.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done; load no model.")
@expected_errors
@needs_phase_one
def command(
    model: Path,
    examples: Path,
    predictions: Path | str,
    telemetry: Path,
    params: Path,
    overrides: tuple[str, ...],
    overwrite: bool,
    allow_mixed: bool,
    shard: str | None,
    dry_run: bool,
) -> None:
    """Phase one: write predictions (token ids) in chunks; run it again to resume.

    Started by torchrun, all ranks share the work and rank 0 publishes.
    """
    from pipeline.fetch.hub import download_snapshot
    from pipeline.predict.job import Job
    from pipeline.predict.plan import plan_lines
    from pipeline.predict.ranks import Ranks
    from pipeline.predict.run import predict
    from pipeline.predict.shard import Shard

    config = load_section(params, "predict", PredictConfig, overrides)
    part = Shard.parse(shard) if shard is not None else None
    if model != DEFAULT_MODEL and local_path(str(model)) is None:
        model = download_snapshot(str(model), revision=None, progress=sys.stderr.isatty())
    if dry_run:
        job = Job.plan(config, model, examples, predictions)
        click.echo("\n".join(plan_lines(job, part)))
        return
    ranks = Ranks.from_environment()
    rank, size = (ranks.rank, ranks.size) if ranks is not None else (0, 1)
    progress = progress_for(rank, size)
    try:
        result = predict(
            config,
            model=model,
            examples=examples,
            predictions=predictions,
            telemetry=telemetry,
            progress=progress,
            overwrite=overwrite,
            allow_mixed=allow_mixed,
            shard=part,
            ranks=ranks,
        )
    finally:
        progress.close()
    if rank == 0:
        for line in _summary(result, predictions, part):
            click.echo(line)


def _summary(result: Result, predictions: Path | str, shard: Shard | None) -> list[str]:
    did = f"({result.made} made, {result.kept} kept)"
    if result.tally is None:
        return [
            f"shard {shard}: done {did}, {result.done} of {result.chunks} chunks are there; the "
            f"shard that finds all of them publishes {predictions}; without a shared folder, merge "
            "the parts"
        ]
    tally = result.tally
    lines = [
        f"{predictions}: {result.rows} rows in {result.chunks} chunks {did}, "
        f"run {result.fingerprint}"
    ]
    if tally.truncated:
        share = tally.truncated / tally.rows
        lines.append(f"{tally.truncated} prompts ({share:.1%}) had a field cut to fit")
    if tally.out_of_memory:
        share = tally.out_of_memory / tally.rows
        lines.append(f"{tally.out_of_memory} rows ({share:.1%}) did not fit the memory: empty")
    return lines


if __name__ == "__main__":
    command()
