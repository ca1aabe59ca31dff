"""A policy for banditune, as a package."""

from dataclasses import dataclass

import banditune as bt


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    """Choose the first arm whose mean is within a tolerance of the best, or explore."""
    if bt.kernel.uniform(stream) < params[0]:
        return bt.kernel.draw_arm(state, stream)
    best = bt.kernel.argmax_mean(state)
    if state.pulls[best] == 0.0:
        return best
    for arm in range(setting.arms):
        if state.total[arm] / state.pulls[arm] >= state.total[best] / state.pulls[best] - setting.options[0]:
            return arm
    return best


@dataclass(frozen=True)
class FirstGood(bt.EpsilonGreedy):
    """Epsilon-greedy that takes the first arm whose mean is nearly the best."""

    tolerance: float = 0.01

    name = "first-good"
    parameters = (bt.Parameter("epsilon", 0, 1, textbook=0.1, lower_limit=0, upper_limit=1),)
    choose = staticmethod(choose)

    def options(self, arms, dims, horizon):
        """Return the numbers that `choose` finds in `setting.options`."""
        return (self.tolerance,)
