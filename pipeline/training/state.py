"""What an evaluation in the middle of training leaves as it was.

An evaluation draws random numbers: the loader of its rows takes a seed for workers that it may
not even have, and sampling takes many. So it changes which rows and which dropout masks come next,
and with them the trained weights.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def random_state_kept(device: Any) -> Iterator[None]:
    """Restore the random number generators of Python, NumPy and torch (CPU and ``device``)."""
    import torch

    of_device = getattr(torch, device.type, None) if device.type != "cpu" else None
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    # MPS is one device, and its functions take none.
    where = () if device.type == "mps" else (device,)
    ours = None if of_device is None else of_device.get_rng_state(*where)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        if of_device is not None:
            of_device.set_rng_state(ours, *where)


@contextmanager
def modes_kept(model: Any) -> Iterator[None]:
    """Restore train or eval mode, module by module."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def loaders_kept(accelerator: Any) -> Iterator[None]:
    """On an error, let ``accelerate`` forget the data loader that was not read to its end.

    Else it would take that one for the loader of the training loop, which goes on.
    """
    state = accelerator.gradient_state
    begun = list(state.dataloader_references)
    try:
        yield
    except BaseException:
        for loader in [entry for entry in state.dataloader_references if entry not in begun]:
            state._remove_dataloader(loader)
        raise


@contextmanager
def attributes_kept(thing: Any, **values: Any) -> Iterator[None]:
    """Set attributes of ``thing``, and put back what was there, or nothing."""
    before = {name: vars(thing)[name] for name in values if name in vars(thing)}
    for name, value in values.items():
        setattr(thing, name, value)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                setattr(thing, name, before[name])
            else:
                delattr(thing, name)
