"""One thin click command per DVC stage; ``stages.main`` is the ``twophase`` command over them."""
