"""Phase two: decode, compute, merge. Needs a prediction set and nothing else.

    config          the section ``score`` of params.yaml
    metrics/        one file per metric, all of one algebra (``metrics.base``)
    contract        the laws of that algebra, as a check for any metric
    corpus          scores of a few texts in memory
    modules, reader what is no sum: modules of Hugging Face ``evaluate``
    characters, words, ngrams, sentence_bleu, chrf_tokens
                    sacreBLEU's tokenizers, matches and sentence scores, by column
    rouge_tokenizers, sentences, letters
                    what ROUGE compares, and what it throws away
    dotted          something of the person's own, by its name
    decode, texts, normalize, columns
                    a block of a chunk → predictions and references as text, and columns beside them
    exact, interval sums that do not depend on the order; the bootstrap
    tally           what is added up over chunks, and how two of them become one
    chunk, pool     one chunk → its scores file and its tally, in this process or in workers
    content         the hash of what was scored
    buffers         NumPy ↔ Arrow without pandas
    folder, summary, histogram    what is written
    run             the whole of it

May import neither torch nor transformers nor anything of phase one, nor pandas.
"""
