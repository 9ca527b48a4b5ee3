"""Phase one: predictions in chunks, resumable. The only place where torch and models are imported.

``run`` is the whole of it; ``fingerprint`` says which run it is before torch is imported;
``examples`` reads the data set, ``prompt`` makes token ids of it, ``batching`` cuts batches,
``engine`` is the seam behind which ``generate`` runs the model that ``load`` loaded.
"""
