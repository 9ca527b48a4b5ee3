"""The ``twophase`` command. A subcommand's module is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys

import click

from pipeline import __version__

SUBCOMMANDS = {
    "fetch": "Make the model local.",
    "prepare": "Make the data set one Parquet file.",
    "predict": "Phase one: predict, in chunks, resumable.",
    "merge": "Parts of one run, made on several hosts, as one set.",
    "ingest": "Make a prediction set of predictions made elsewhere.",
    "inspect": "Show what a prediction set holds.",
    "verify": "Check a prediction set, and name each fault.",
    "score": "Phase two: decode and score, on any CPU.",
    "report": "Tables and pictures as one HTML page.",
    "check": "Check every key of params.yaml.",
    "compare": "Scored sets against a baseline: differences, p-values.",
    "grid": "Models, checkpoints and data sets as one table.",
}


class LazyGroup(click.Group):
    """A group that knows its subcommands by name, so that ``score`` never imports ``predict``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        command = importlib.import_module(f"stages.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="twophase")
def main() -> None:
    """Evaluate text generators in two phases: predict once on a GPU, score anywhere."""


if __name__ == "__main__":
    sys.exit(main())
