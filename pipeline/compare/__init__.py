"""Two or more scored sets, example by example: is the difference more than chance?

    scored        a folder of scores as compare reads it
    join          the rows that the sets share, matched by id
    agreement     the metrics that all sets have, computed alike
    resample      the scores of one set, of its replicates, and of each row
    significance  the difference of two sets: interval and p-value
    changes       the difference of each row: wins, ties, losses, and the largest
    result        what comes out, as it stands in the JSON
    compare       the whole of it
    table         the result as text and as Markdown
    axes          the cells of a grid: models, checkpoints, data sets
    block         the systems of one data set against one of them
    grid          the blocks of all data sets
    grid_result   what comes out, as it stands in the JSON
    grid_table    the result as one table

Stands on ``score`` and the folders that it writes: reads neither predictions nor references. May
import neither torch nor phase one.
"""
