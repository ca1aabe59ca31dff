"""A policy of your own in one function: copy this file, change `choose`, and run it.

python policy.py
banditune tune --policy policy.py:decaying --problem bernoulli --arms 5 --horizon 1000 --budget 500
"""

import banditune as bt


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    """Explore with probability scale / step, else choose the arm with the highest mean reward."""
    probability = min(1.0, params[0] / (step + 1))
    if bt.kernel.uniform(stream) < probability:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


decaying = bt.define_policy(
    "decaying-epsilon",
    choose,
    # The range that is searched, and the textbook value, with which results compare.
    parameters=bt.Parameter("scale", 0.1, lambda arms, horizon: 10 * arms, lambda arms, horizon: 5 * arms, scale="log"),
)


def main() -> None:
    problem = bt.Bernoulli(arms=5)
    print(bt.testing.check_policy(decaying, problem))
    print(bt.tune(decaying, problem, horizon=1000, budget=500))


if __name__ == "__main__":
    main()
