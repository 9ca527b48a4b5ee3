"""Scores and telemetry as a table and as one page, ``report.html``.

``table`` is what ``make repro`` ends with; ``page`` puts it and the pictures of ``pictures`` into
one file without links to anything. May import neither torch nor either phase.
"""
