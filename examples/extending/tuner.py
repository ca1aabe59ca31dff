"""A tuner of your own: copy this file, change `search`, and run it.

python tuner.py
banditune tune --policy ucb1 --problem bernoulli --tuner tuner.py:CoarseToFine --horizon 1000 --budget 900
"""

from dataclasses import dataclass

import numpy as np

import banditune as bt


@dataclass(frozen=True)
class CoarseToFine(bt.tuners.Tuner):
    """A grid over the whole range, then a grid around its best value."""

    points: int = 9

    name = "coarse-to-fine"

    def search(self, search_range, budget):
        """Yield trials, receive regrets, and return the best value. The budget counts runs.

        A tuner that draws random numbers has a third argument, `rng`, and draws from nothing else.
        """
        runs = budget // (2 * self.points)
        if runs < 1:
            raise bt.InvalidRequest(f"`budget >= {2 * self.points}` must hold for {self}, but got budget={budget}.")
        units = np.linspace(0, 1, self.points)
        for width in (1 / (self.points - 1), 0):
            values = tuple(search_range.scale_from_unit(unit) for unit in units)
            regrets = yield bt.tuners.Trial(values, runs)  # an array (values, runs)
            best = int(np.argmin(regrets.mean(axis=1)))
            units = np.clip(np.linspace(units[best] - width, units[best] + width, self.points), 0, 1)
        return values[best]


def main() -> None:
    print(bt.testing.check_tuner(CoarseToFine()))
    search = bt.Search(tuner=CoarseToFine())
    print(bt.tune(bt.UCB1(), bt.Bernoulli(arms=5), horizon=1000, budget=900, search=search))


if __name__ == "__main__":
    main()
