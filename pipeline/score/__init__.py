"""Phase two: decode, compute, merge. Needs a prediction set and nothing else.

    config          the section ``score`` of params.yaml
    metrics/        one file per metric, all of one algebra (``metrics.base``)
    characters, words, ngrams, sentence_bleu
                    sacreBLEU's tokenizers, matches and sentence scores, by column
    decode, texts   a block of a chunk → predictions and references as text
    exact, interval sums that do not depend on the order; the bootstrap
    tally           what is added up over chunks, and how two of them become one
    chunk, pool     one chunk → its scores file and its tally, in this process or in workers
    content         the hash of what was scored
    buffers         NumPy ↔ Arrow without pandas
    folder, summary, histogram    what is written
    run             the whole of it

May import neither torch nor transformers nor anything of phase one, nor pandas.
"""
