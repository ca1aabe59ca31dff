"""Observed failures by kinds of policies: their cost, reach and decay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from banditune.core.arrays import FloatArray

FailureShape = tuple[float, float, float]
"""(height, reach, decay): at the width g, the mean cost of failures is height * exp(-(g / reach)^decay)."""


OBSERVED_FAILURES: dict[str, tuple[FailureShape, ...]] = {
    "ucb1": (
        (0.108, 0.0562, 1.51), (0.0176, 0.252, 3.2), (0.409, 0.131, 1.6), (0.0665, 0.0469, 1.41), (1.23, 0.17, 1.59),
        (2.86, 0.0417, 1.05), (0.471, 0.142, 1.59), (0.0998, 0.07, 1.54), (0.731, 0.035, 1.05),
        (0.00563, 0.0683, 1.51), (0.62, 0.121, 1.76), (0.0114, 0.225, 2.67), (0.84, 0.129, 1.65),
        (0.0223, 0.085, 1.56), (1.09, 0.143, 1.55), (0.0152, 0.0921, 2.08), (0.0349, 0.0978, 1.56),
        (1.12, 0.241, 1.54), (0.395, 0.141, 2.06), (1.0, 0.182, 1.89), (0.658, 0.132, 1.98), (0.248, 0.05, 1.56),
        (1.61, 0.0533, 1.18), (2.49, 0.0952, 1.32), (6.11, 0.0857, 1.31), (12.0, 0.0835, 1.37), (1.55, 1.3, 1.5),
        (0.913, 2.37, 1.36), (0.352, 0.121, 1.6), (4.59, 0.1, 1.54), (2.89, 0.117, 1.99), (0.0749, 0.179, 2.67),
        (1.17, 0.0967, 1.5), (0.0489, 0.0904, 1.52), (0.128, 0.149, 1.94),
    ),
    "thompson": (
        (3.73, 0.195, 0.883), (4.51, 0.35, 1.98), (3.38, 0.299, 1.51), (1.99, 0.31, 1.57), (14.8, 0.2, 1.22),
        (2.17, 0.231, 1.4), (0.00343, 0.0771, 1.27), (0.0758, 0.218, 1.47), (1.99, 0.248, 1.51), (11.9, 0.327, 1.82),
        (5.3, 0.223, 1.94), (11.9, 0.277, 2.19), (3.48, 0.223, 2.15), (2.03, 0.184, 1.5), (1.4, 0.343, 1.35),
        (20.8, 0.227, 1.41), (21.2, 0.226, 1.39), (7.01, 0.281, 1.49), (20.5, 0.221, 1.27), (0.108, 0.189, 1.19),
        (22.9, 0.338, 2.16), (4.21, 0.291, 1.44), (8.09, 0.264, 1.58), (6.42, 0.252, 1.27), (52.2, 0.214, 1.36),
    ),
    "epsilon-greedy": (
        (0.0853, 0.0407, 1.32), (0.0703, 0.0167, 1.18), (0.0231, 0.0221, 1.15), (0.144, 0.031, 0.87),
        (0.0505, 0.0277, 1.39), (0.048, 0.0289, 1.49), (0.128, 0.0267, 1.16),
    ),
    "linear and logistic": (
        (11.3, 0.03, 0.886), (7.22, 0.0354, 0.83), (4.3, 0.0386, 0.959), (13.8, 0.036, 0.848), (16.8, 0.0319, 0.815),
        (1.23, 0.0896, 0.942), (23.2, 0.0226, 0.54), (5.84, 0.0477, 0.8), (5.24, 0.0381, 0.866),
        (54.4, 0.0397, 0.812), (71.1, 0.0215, 0.755), (25.7, 0.0334, 0.84), (27.0, 0.0305, 0.832),
        (23.2, 0.0463, 0.835), (49.6, 0.0326, 0.77), (22.3, 0.0311, 0.855), (51.2, 0.0212, 0.808),
        (21.8, 0.0266, 0.948), (17.3, 0.0297, 0.805), (41.0, 0.0262, 0.922), (43.9, 0.0203, 0.852),
        (5.8, 0.0609, 0.91), (2.74, 0.0307, 0.877),
    ),
}  # fmt: skip
"""Failures of each kind of policy, on random problems and on those of the benchmarks.

They were fitted by `python benchmarks/random_problems.py shapes`.

Policies with very rare failures, or with failures of another shape, are left out.
"""


KERNEL_WIDTHS = (1.5, 0.45, 0.3)
"""The standard deviations of the logarithms of failures on other problems around the observed ones."""


def compute_failure_density(failures: Sequence[FailureShape]) -> FloatArray:
    """Estimate the density of failures up to a constant: a Gaussian around each observed one; kinds have equal weights."""
    x = np.log(np.array(failures))
    densities = []
    for kind in OBSERVED_FAILURES.values():
        distances = (
            np.subtract.outer(x[:, axis], np.log(kind)[:, axis]) / KERNEL_WIDTHS[axis]
            for axis in range(len(KERNEL_WIDTHS))
        )
        densities.append(np.exp(-0.5 * sum(distance**2 for distance in distances)).mean(axis=1))
    return np.asarray(np.mean(densities, axis=0), np.float64)
