"""A metric on the validation set and on the training set over the epochs, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def values(history: list[dict[str, Any]], key: str) -> tuple[list[float], list[float]]:
    """The epochs at which ``trainer.state.log_history`` has ``key``, and its values there."""
    found = [entry for entry in history if key in entry]
    return [entry["epoch"] for entry in found], [entry[key] for entry in found]


def draw(history: list[dict[str, Any]], metric: str, title: str, path: Path) -> None:
    """``eval_<metric>`` beside ``eval_train_<metric>``, as a PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
    for key, label in (
        (f"eval_{metric}", "validation set"),
        (f"eval_train_{metric}", "training set"),
    ):
        axes.plot(*values(history, key), "o-", markersize=4, label=label)
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(title)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
