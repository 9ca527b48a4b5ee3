"""Predictions made elsewhere become a prediction set that score takes like any other.

    input        one file, or stdin: named, hashed, read again
    lines        plain files, a text a line, side by side
    fields       JSONL, CSV or Parquet, a field for each thing
    examples     what the two have in common: texts in batches
    writer       batches into chunks, sealed
    out          where the set is put
    ingest       the whole job

Part of the base install: may import neither torch nor datasets. The readers of rows are prepare's.
"""
