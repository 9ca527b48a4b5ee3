"""``twophase ingest``: predictions made elsewhere as a prediction set."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from pipeline.ingest.fields import Fields, Format
from pipeline.ingest.ingest import CHUNK_ROWS, ingest_fields, ingest_lines
from stages.options import SetPath, expected_errors


@click.command("ingest")
@click.argument("file", required=False)
@click.option("--hypotheses", metavar="FILE", help="Plain text, a prediction a line.")
@click.option("--hypothesis", metavar="FIELD", help="Field of FILE with the prediction.")
@click.option(
    "--reference",
    "references",
    metavar="FILE|FIELD",
    multiple=True,
    required=True,
    help="With --hypotheses a file, with --hypothesis a field. May be repeated.",
)
@click.option("--id", "identifier", metavar="FIELD", help="Field with unique ids.")
@click.option("--keep", metavar="FIELD", multiple=True, help="Field to carry through to scores.")
@click.option(
    "--format",
    type=click.Choice(get_args(Format)),
    help="Of FILE, if not its suffix; of stdin, if not jsonl.",
)
@click.option("--out", type=SetPath(), required=True, help="The new set, a folder or URL.")
@click.option(
    "--chunk-rows", type=click.IntRange(1), default=CHUNK_ROWS, show_default=True, help="Per chunk."
)
@click.option("--overwrite", is_flag=True, help="Replace the prediction set that is there.")
@expected_errors
def command(
    file: str | None,
    hypotheses: str | None,
    hypothesis: str | None,
    references: tuple[str, ...],
    identifier: str | None,
    keep: tuple[str, ...],
    format: Format | None,
    out: Path | str,
    chunk_rows: int,
    overwrite: bool,
) -> None:
    """Make a prediction set of predictions made elsewhere, which score takes like any other.

    Plain files, line by line:

        twophase ingest --hypotheses hyp.txt --reference ref1.txt --reference ref2.txt --out DIR

    JSONL, CSV or Parquet, by field (a list field holds several references):

        twophase ingest FILE --hypothesis FIELD --reference FIELD --id FIELD --out DIR

    A file called - is stdin.
    """
    from tqdm import tqdm

    if (hypotheses is None) == (hypothesis is None):
        raise click.UsageError("Pass either --hypotheses FILE, or FILE with --hypothesis FIELD.")
    if hypotheses is not None and (file or identifier or keep or format):
        raise click.UsageError("FILE, --id, --keep and --format go with --hypothesis FIELD.")
    if hypothesis is not None and file is None:
        raise click.UsageError("--hypothesis FIELD wants the FILE (or -) that has the field.")
    with tqdm(unit="row", desc="ingest", disable=None) as bar:

        def progress(rows: int, total: int) -> None:
            bar.total = total
            bar.update(rows)

        options: dict[str, Any] = {
            "chunk_rows": chunk_rows,
            "overwrite": overwrite,
            "progress": progress,
        }
        if hypotheses is not None:
            card = ingest_lines(hypotheses, references, out, **options)
        else:
            assert file is not None
            assert hypothesis is not None
            fields = Fields(hypothesis, references, identifier, keep)
            card = ingest_fields(file, fields, out, format=format, **options)
    click.echo(f"{out}: {card.rows} rows in {card.chunks} chunks, run {card.fingerprint}")


if __name__ == "__main__":
    command()
