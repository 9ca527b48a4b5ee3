"""Phase two: decode, compute, merge. Needs a prediction set and nothing else.

    config          the section ``score`` of params.yaml
    metrics/        one file per metric, all of one algebra (``metrics.base``)
    contract        the laws of that algebra, as a check for any metric
    corpus          scores of a few texts in memory
    modules, evaluate_module, reader
                    what is no sum: modules of Hugging Face ``evaluate``
    characters, words, ngrams, pair_ngrams, sentence_bleu, chrf_tokens
                    sacreBLEU's tokenizers, matches and sentence scores, by column
    rouge_library, rouge_tokenizers, sentences, letters
                    who computes ROUGE, what it compares, and what it throws away
    dotted          something of the person's own, by its name
    decode, texts, normalize, columns
                    a block of a chunk → predictions and references as text, and columns beside them
    exact, interval sums that do not depend on the order; the bootstrap
    tally           what is added up over chunks, and how two of them become one
    chunk, pool     one chunk → its scores file and its tally, in this process or in workers
    cluster, worker, dask_backend
                    … or on a Dask cluster: what this process does, and what each worker
    content         the hash of what was scored
    buffers         NumPy ↔ Arrow without pandas
    folder, summary, histogram    what is written
    run             the whole of it

May import neither torch nor transformers nor anything of phase one, nor pandas.
"""
