"""A prediction set looked at: what it holds (``view``), and whether it is sound (``verify``).

    rows         a chunk's rows, checked one by one

Stands beside score and decodes as score does. May import neither torch nor phase one.
"""
