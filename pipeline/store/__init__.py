"""The prediction set: the folder between the two phases, and all that phase two needs.

    run.json            the run card: what was asked, how many rows and chunks (``card``)
    chunk-00000.parquet the predictions (``chunk``)
    tokenizer/          what decoding needs
    SHA256SUMS          written last: the seal; ``sha256sum -c SHA256SUMS`` checks it anywhere

``prediction_set`` reads one, at a ``place``: a folder, or a ``url``. ``work`` is the resumable
store in which predict builds one, and ``lock`` says who may. Where it is to stand is a ``target``:
a folder (``publish``), which gets it in one rename, or a URL (``upload``), which gets it chunk by
chunk. May import neither torch nor a model library, and fsspec only where there is a URL.
"""
