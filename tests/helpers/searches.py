"""Searches on known curves."""

from __future__ import annotations

import numpy as np

from banditune.core.space import Range

UNIT = Range("gamma", 0.0, 1.0, 1.0, False, "linear")


def search(tuner, height, budget, noise=0.0, seed=0, among=UNIT):
    """Run a tuner on a known curve; returns its answer and what it spent."""
    rng = np.random.default_rng(seed)
    generator = tuner.search(among, budget)
    spent = 0
    try:
        trial = next(generator)
        while True:
            each = isinstance(trial.size, tuple)
            sizes = trial.size if each else [trial.size] * len(trial.values)
            spent += sum(sizes)
            told = [
                height(value) + noise * rng.standard_normal(size)
                for value, size in zip(trial.values, sizes, strict=True)
            ]
            trial = generator.send(told if each else np.array(told))
    except StopIteration as answer:
        return getattr(answer.value, "value", answer.value), spent
