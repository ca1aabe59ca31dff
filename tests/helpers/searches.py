"""Searches on known curves."""

from __future__ import annotations

import numpy as np

from banditune.core.space import Range, Space

UNIT = Range("gamma", 0.0, 1.0, 1.0, False, "linear")


def run_tuner(tuner, compute_height, budget, noise=0.0, seed=0, among=UNIT):
    """Run a tuner on a known curve. Return its answer and the number of runs."""
    rng = np.random.default_rng(seed)
    one = tuner.max_parameters == 1
    generator = tuner.search(among if one else Space((among,)), budget)
    spent = 0
    try:
        trial = next(generator)
        while True:
            has_sizes = isinstance(trial.size, tuple)
            sizes = trial.size if has_sizes else [trial.size] * len(trial.values)
            spent += sum(sizes)
            regrets = [
                compute_height(value if one else value[0]) + noise * rng.standard_normal(size)
                for value, size in zip(trial.values, sizes, strict=True)
            ]
            trial = generator.send(regrets if has_sizes else np.array(regrets))
    except StopIteration as answer:
        value = getattr(answer.value, "value", answer.value)
        return (value if one else value[0]), spent
