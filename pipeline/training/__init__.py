"""The bridge into ``transformers``' Trainer: evaluation whose memory does not grow with the rows.

    recorder    ``Recorder``: what a person attaches to a trainer
    callback    ``EvaluateTrainSet``: the training set, too, every so many steps
    session     what a Recorder puts into its trainer
    evaluation  one evaluation on rank 0, from its first batch to its seal
    step        one batch: the trainer's step, and what is kept of its outputs
    kind        what a trainer's model gives, and which trainers cannot be recorded
    loss        the loss and the best tokens without logits of a whole batch
    reduce      a batch's outputs → token ids and sums per row, on the device
    columns     those of all ranks → columns of a chunk, on the CPU
    texts       the tokenizer of the trainer
    rows        ids and kept columns of the data set's rows
    sample      some rows of a training set
    spool       columns, batch by batch → a sealed prediction set
    scores      a sealed set → the metrics that the trainer logs
    meter       memory around an evaluation
    state       what an evaluation leaves as it was: random numbers, modes, the loop's own state
    ranks       what rank 0 does for all

Stands above phase one and phase two and may import both; neither knows of it.
"""

from pipeline.extras import require_extra

require_extra("pipeline.training", "predict", ["accelerate", "torch", "transformers"])

from pipeline.training.callback import EvaluateTrainSet  # noqa: E402  # the extra is asked first
from pipeline.training.recorder import Recorder  # noqa: E402

__all__ = ["EvaluateTrainSet", "Recorder"]
