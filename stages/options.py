"""What the commands share: options with the defaults of the DVC stages, and errors as exit codes.

0 done; 1 an expected error, in one line on stderr; 2 usage; 130 and 143 stopped by a signal.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from pipeline import signals
from pipeline.errors import TwophaseError
from pipeline.extras import require_extra

Command = TypeVar("Command", bound=Callable[..., Any])

# What a machine without phase one can still do; named by each stage that cannot run there.
ON_A_CPU_MACHINE = (
    "; on a machine that only scores, run `dvc repro --pull --allow-missing score` instead"
)
DEFAULT_MODEL = Path("data/model")
PREDICT_MODULES = ("torch", "transformers", "datasets", "huggingface_hub")


def path_option(flag: str, default: str, what: str) -> Callable[[Command], Command]:
    """An option that holds a path, with the default that dvc.yaml relies on."""
    return click.option(
        flag, type=click.Path(path_type=Path), default=default, show_default=True, help=what
    )


def model_option(function: Command) -> Command:
    return path_option(
        "--model", str(DEFAULT_MODEL), "Folder with the model (predict: or a hub id)."
    )(function)


def examples_option(function: Command) -> Command:
    return path_option("--examples", "data/examples.parquet", "The prepared data set.")(function)


def predictions_option(function: Command) -> Command:
    return path_option("--predictions", "data/predictions", "The prediction set.")(function)


def telemetry_option(function: Command) -> Command:
    return path_option("--telemetry", "data/telemetry.csv", "Time and memory per chunk.")(function)


def scores_option(function: Command) -> Command:
    return path_option("--scores", "data/scores", "Scores per example, and summary.json.")(function)


def metrics_option(function: Command) -> Command:
    return path_option("--metrics", "metrics.json", "The headline scores.")(function)


def params_options(function: Command) -> Command:
    """``--params`` and ``-S``, as ``params: Path`` and ``overrides: tuple[str, ...]``."""
    function = click.option(
        "-S",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Replace one parameter; the value is YAML. May be repeated.",
    )(function)
    return path_option("--params", "params.yaml", "File with the parameters.")(function)


def needs_phase_one(function: Command) -> Command:
    """Refuse to start where the extra [predict] is missing, and say what to type instead."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        stage = click.get_current_context().info_name or function.__name__
        require_extra(stage, "predict", PREDICT_MODULES, ON_A_CPU_MACHINE)
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def expected_errors(function: Command) -> Command:
    """Translate the library's errors and signals into the exit codes above."""

    @functools.wraps(function)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            with signals.handled():
                return function(*args, **kwargs)
        except TwophaseError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt as stop:
            _stop("Ctrl-C", stop, 130)
        except signals.Terminated as stop:
            _stop("SIGTERM", stop, 143)

    return translated  # type: ignore[return-value]


def _stop(by: str, stop: BaseException, code: int) -> NoReturn:
    """Say what stopped the command, and what the library noted about going on."""
    click.echo("; ".join([f"stopped by {by}", *getattr(stop, "__notes__", [])]), err=True)
    sys.exit(code)
