"""twophase: predict once on a GPU, score anywhere.

The library behind the commands in ``stages``. It raises the errors of ``pipeline.errors`` and
returns values; it knows no click, prints nothing and never exits.
"""

__version__ = "0.1.0"
