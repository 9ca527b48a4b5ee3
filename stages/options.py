"""What the commands share: options with the defaults of the DVC stages, and errors as exit codes.

0 done; 1 an expected error, in one line on stderr; 2 usage; 130 and 143 stopped by a signal.
"""

from __future__ import annotations

import errno
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from pipeline import signals
from pipeline.config import Section, default_section, load_section
from pipeline.errors import TwophaseError
from pipeline.extras import require_extra
from pipeline.store.place import is_url, without_file_scheme

Command = TypeVar("Command", bound=Callable[..., Any])

# What a machine without phase one can still do; named by each stage that cannot run there.
ON_A_CPU_MACHINE = (
    "; or, to score predictions that were made elsewhere, type `make score` (its last step is `dvc "
    "repro --pull --allow-missing score`) or, without DVC, `twophase score --predictions FOLDER`"
)
DEFAULT_MODEL = Path("data/model")
PREDICT_MODULES = ("torch", "transformers", "datasets", "huggingface_hub")


class LocalPath(click.Path):
    """A path on this machine. What would be a URL is refused: as a path it is a strange folder."""

    def __init__(self, **how: Any) -> None:
        super().__init__(path_type=Path, **how)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and is_url(value):
            self.fail(
                f"{value} is a URL, and this is a path on this machine; URLs are for prediction "
                "sets: predict, score, report --predictions, inspect, verify, merge, ingest --out",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class SetPath(click.ParamType):  # type: ignore[type-arg]
    """A prediction set: a ``Path``, or the URL of one as a ``str``."""

    name = "path or URL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        if not isinstance(value, str):
            return Path(value)
        place = without_file_scheme(value)
        return place if is_url(place) else Path(place)


def path_option(flag: str, default: str, what: str) -> Callable[[Command], Command]:
    """An option that holds a path, with the default that dvc.yaml relies on."""
    return click.option(flag, type=LocalPath(), default=default, show_default=True, help=what)


def model_option(what: str) -> Callable[[Command], Command]:
    return path_option("--model", str(DEFAULT_MODEL), what)


def examples_option(function: Command) -> Command:
    return path_option("--examples", "data/examples.parquet", "The prepared data set.")(function)


def predictions_option(function: Command) -> Command:
    return click.option(
        "--predictions",
        type=SetPath(),
        default="data/predictions",
        show_default=True,
        help="The prediction set: a folder, or a URL such as s3://bucket/run.",
    )(function)


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


def read_section(
    params: Path, section: str, model: type[Section], overrides: tuple[str, ...]
) -> Section:
    """``load_section``, or the defaults where there is no params.yaml and none was named.

    For stages that do not need one: a prediction set can be scored in any folder.
    """
    source = click.get_current_context().get_parameter_source("params")
    if source is ParameterSource.DEFAULT and not params.exists():
        return default_section(section, model, overrides)
    return load_section(params, section, model, overrides)


def needs_phase_one(function: Command) -> Command:
    """Refuse to start where the extra [predict] is missing, and say what to type instead."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        stage = click.get_current_context().command.name or function.__name__
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
            raise click.ClickException(message_line(str(error))) from error
        except OSError as error:
            if error.errno not in _CAUSED_BY_PEOPLE:
                raise
            raise click.ClickException(message_line(_os_error(error))) from error
        except KeyboardInterrupt as stop:
            _stop("Ctrl-C", stop, 130)
        except signals.Terminated as stop:
            _stop("SIGTERM", stop, 143)

    return translated  # type: ignore[return-value]


# A full disk, a missing permission, a path that cannot be: anything else is a bug.
_CAUSED_BY_PEOPLE = {
    errno.EACCES: "check its permissions",
    errno.EBUSY: "it is in use, such as a mount point: name a folder in it",
    errno.EDQUOT: "your quota is used up: make room and run the command again",
    errno.EEXIST: "remove it, or name another path",
    errno.EIO: "the disk fails",
    errno.EISDIR: "a file is to be written there: name another path",
    errno.ELOOP: "a link there leads to itself",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ENOENT: "check the path",
    errno.ENOSPC: "make room and run the command again",
    errno.ENOTDIR: "a folder is to be there: name another path",
    errno.ENOTEMPTY: "name another path",
    errno.EPERM: "check its permissions",
    errno.EROFS: "name a path that can be written",
}


def _os_error(error: OSError) -> str:
    assert error.errno is not None
    path = error.filename2 or error.filename or "a file"
    return (
        f"{path}: {error.strerror}; {_CAUSED_BY_PEOPLE[error.errno]}; what was complete before is "
        "kept"
    )


def message_line(message: str, limit: int = 1500) -> str:
    """``message`` on one line, whatever a column, an id or a path in it is called."""
    line = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in message
    )
    return line if len(line) <= limit else f"{line[: limit // 2]} … {line[-limit // 2 :]}"


def _stop(by: str, stop: BaseException, code: int) -> NoReturn:
    """Say what stopped the command, and what the library noted about going on."""
    click.echo("; ".join([f"stopped by {by}", *getattr(stop, "__notes__", [])]), err=True)
    sys.exit(code)
