"""``twophase check``: all of params.yaml at once, before anything runs.

DVC skips a stage whose keys did not change, so a key that is misspelt is read by nobody; `make
repro` and `make score` begin with this.
"""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.config import Config, load_section
from pipeline.fetch.config import FetchConfig
from pipeline.predict.config import PredictConfig
from pipeline.prepare.config import PrepareConfig
from pipeline.score.config import ScoreConfig
from stages.options import expected_errors, path_option

CONFIGS: dict[str, type[Config]] = {
    "fetch": FetchConfig,
    "prepare": PrepareConfig,
    "predict": PredictConfig,
    "score": ScoreConfig,
}


@click.command("check")
@path_option("--params", "params.yaml", "File with the parameters.")
@expected_errors
def command(params: Path) -> None:
    """Check every key of params.yaml: unknown names, wrong types, metrics and their options."""
    from pipeline.score.metrics import parse_metrics

    for section, model in CONFIGS.items():
        config = load_section(params, section, model)
        if isinstance(config, ScoreConfig):
            parse_metrics(config.metrics)


if __name__ == "__main__":
    command()
