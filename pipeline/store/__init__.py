"""The prediction set: the folder between the two phases, and all that phase two needs.

    run.json            the run card: what was asked, how many rows and chunks (``card``)
    chunk-00000.parquet the predictions (``chunk``)
    tokenizer/          what decoding needs
    SHA256SUMS          written last: the seal; ``sha256sum -c SHA256SUMS`` checks it anywhere

``prediction_set`` reads one; ``work`` is the resumable store in which predict builds one, and
``publish`` puts it at its place; ``lock`` says who may. May import neither torch nor a model
library.
"""
