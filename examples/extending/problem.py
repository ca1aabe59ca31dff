"""A problem of your own: copy this file, change `sample` and the reward, and run it.

python problem.py
banditune tune --policy ucb1 --problem problem.py:Orders --horizon 1000 --budget 500
"""

from dataclasses import dataclass

import banditune as bt


@bt.kernel.scalar
def draw_order(instance, arm, pull, step, stream):
    """Draw one reward with the mean `instance.means[arm]`, from `stream` alone."""
    price = instance.options[0]
    return price * bt.kernel.bernoulli(stream, instance.means[arm] / price)


@dataclass(frozen=True)
class Orders(bt.kernel.Problem):
    """A visitor orders with a small probability, and then pays a price."""

    arms: int = 5
    price: float = 30.0

    name = "orders"
    rewards = "real"  # or "unit" for rewards in [0, 1], "binary" for 0 and 1
    reward = staticmethod(draw_order)

    def sample(self, size, rng):
        """Draw the mean rewards of `size` instances, from `rng` alone."""
        return bt.kernel.Instances(self.price * rng.beta(2, 38, (size, self.arms)))

    def options(self):
        """Return the numbers that the reward finds in `instance.options`."""
        return (self.price,)


def main() -> None:
    print(bt.testing.check_problem(Orders()))
    print(bt.tune(bt.UCB1(), Orders(), horizon=1000, budget=500))


if __name__ == "__main__":
    main()
