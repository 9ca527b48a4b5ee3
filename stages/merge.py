"""``twophase merge``: parts of one run as one sealed set."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.store.merge import merge
from stages.options import LocalPath, SetPath, expected_errors


@click.command("merge")
@click.argument(
    "parts",
    nargs=-1,
    required=True,
    metavar="PART...",
    type=SetPath(),
)
@click.option(
    "--out",
    type=SetPath(),
    required=True,
    help="The prediction set to make, a folder or URL; its store stays beside it.",
)
@click.option("--telemetry", type=LocalPath(), help="Also write the parts' CSV.")
@click.option("--overwrite", is_flag=True, help="Replace a set of other settings.")
@click.option("--allow-mixed", is_flag=True, help="Merge parts made by other library versions.")
@expected_errors
def command(
    parts: tuple[Path | str, ...],
    out: Path | str,
    telemetry: Path | None,
    overwrite: bool,
    allow_mixed: bool,
) -> None:
    """Merge parts of one run, made by --shard on hosts without a shared folder.

    PART is a store (data/.partial/<fingerprint>) or a prediction set, a folder or URL. Settings,
    versions, hashes and coverage are checked before anything is written.
    """
    card = merge(parts, out, telemetry=telemetry, overwrite=overwrite, allow_mixed=allow_mixed)
    click.echo(
        f"{out}: {card.rows} rows in {card.chunks} chunks of {len(parts)} parts, "
        f"run {card.fingerprint}"
    )


if __name__ == "__main__":
    command()
