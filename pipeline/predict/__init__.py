"""Phase one: predictions in chunks, resumable. The only place where torch and models are imported.

``run`` is the whole of it; ``fingerprint`` says which run it is before torch is imported;
``examples`` reads the data set and ``batching`` cuts batches. ``engine`` is the seam to what knows
models, and ``engines`` says which one a run takes:

* ``generate``, with ``generation`` (the settings), ``decoding``, ``sampling`` and ``stopping``;
* ``forced``, with ``labels``, ``head`` and ``finishing``;
* ``ctc``, with ``audio``.

They share ``load``, with ``placement``, ``adapter`` and ``tokenizer``; ``text`` and ``prompt`` make
token ids of rows.
"""
