"""Make the data set one file: ``data/examples.parquet``, and ``data/source`` beside it.

    prepare      the whole job: read, choose rows, convert, write
    roles        which column means what
    source       what a data set is to the rest: batches of rows, of one type per column
    jsonl, delimited, arrow, hub, docstrings    the kinds of data set there are
    stream       a hub data set as it comes; ``spool`` holds the rows that were chosen
    sample       which rows
    texts        one value of a reference or id column as text
    examples     batches as examples, with every row checked
    writer       Parquet, by row group; unique ids
    provenance   ``data/source``: how DVC sees that the person's file changed

Rows count from 0 in every message, as in ``row`` of examples.parquet; lines of files count from 1.
"""
