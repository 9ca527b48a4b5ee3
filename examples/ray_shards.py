"""Predict as tasks of Ray: each makes a shard of the chunks, and the last one publishes the set.

    python examples/ray_shards.py --shards 32 --num-gpus 1                    # on this machine
    RAY_ADDRESS=head:6379 python examples/ray_shards.py --shards 32 --num-gpus 1

Ray starts a task wherever a GPU is free, and starts it again where its worker was lost: a machine
that is gone, a process that the kernel killed. The chunks of the lost one are kept. More shards
than GPUs let a slow machine make fewer of them. `--predictions` is on a file system that all
machines share, or a URL, and twophase[predict] is installed on each.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from pipeline.config import load_section
from pipeline.errors import RankError, TwophaseError
from pipeline.predict.config import PredictConfig
from pipeline.predict.run import Result, predict
from pipeline.predict.shard import Shard
from stages.options import (
    examples_option,
    expected_errors,
    model_option,
    params_options,
    predictions_option,
    telemetry_option,
)
from stages.progress import Log

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def make_shard(config: PredictConfig, shard: Shard, paths: dict[str, Path | str]) -> Result:
    """Make one shard, in a process of its own on any machine."""
    return predict(config, progress=Log(f"shard {shard}: "), shard=shard, **paths)


@click.command()
@model_option("Folder with the model, or a hub id.")
@examples_option
@predictions_option
@telemetry_option
@params_options
@click.option("--shards", type=click.IntRange(1), default=8, show_default=True)
@click.option("--num-gpus", type=float, default=1, show_default=True, help="Of each task.")
@click.option("--num-cpus", type=float, default=1, show_default=True, help="Of each task.")
@click.option(
    "--retries", type=click.IntRange(0), default=3, show_default=True, help="Of a lost task."
)
@click.option("--address", help="Of the cluster; `local` starts one here. [default: RAY_ADDRESS]")
@expected_errors
def command(
    model: Path,
    examples: Path,
    predictions: Path | str,
    telemetry: Path,
    params: Path,
    overrides: tuple[str, ...],
    shards: int,
    num_gpus: float,
    num_cpus: float,
    retries: int,
    address: str | None,
) -> None:
    """Phase one as tasks of Ray; run it again to resume."""
    import ray

    config = load_section(params, "predict", PredictConfig, overrides)
    # A worker has a working directory of its own.
    paths = {
        "model": model.absolute(),
        "examples": examples.absolute(),
        "predictions": predictions if isinstance(predictions, str) else predictions.absolute(),
        "telemetry": telemetry.absolute(),
    }
    ray.init(address=address, include_dashboard=False)
    try:
        # A worker that ends with its task leaves the GPU empty for the next one.
        task = ray.remote(num_gpus=num_gpus, num_cpus=num_cpus, max_retries=retries, max_calls=1)(
            make_shard
        )
        parts = [Shard(number, shards) for number in range(1, shards + 1)]
        running = {task.remote(config, shard, paths): shard for shard in parts}
        published = None
        while running:
            (done,), _ = ray.wait(list(running))
            shard = running.pop(done)
            result = _result(done, shard, retries)
            click.echo(f"shard {shard}: {result.made} made, {result.kept} kept")
            published = result if result.tally is not None else published
    finally:
        ray.shutdown()
    if published is None:
        raise RankError(
            f"every shard is done, but none found all chunks in {predictions}: the machines do not "
            "share that folder; name one that they do with --predictions, or use --shard and "
            "`twophase merge`"
        )
    click.echo(
        f"{predictions}: {published.rows} rows in {published.chunks} chunks, "
        f"run {published.fingerprint}"
    )


def _result(task: object, shard: Shard, retries: int) -> Result:
    """What a task did; its error in one line."""
    import ray

    try:
        result: Result = ray.get(task)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, TwophaseError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise RankError(
            f"shard {shard} was lost {retries + 1} times ({type(error).__name__}); run the same "
            "command again: finished chunks are kept"
        ) from None
    return result


if __name__ == "__main__":
    command()
