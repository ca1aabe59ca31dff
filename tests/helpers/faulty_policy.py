"""A policy of a user with faults that an option turns on, so that one kernel serves many tests."""

from __future__ import annotations

from dataclasses import dataclass

import banditune as bt


@bt.kernel.scalar
def choose_faultily(state, setting, step, params, stream):
    """One kernel with several faults, chosen by an option; 0 is none."""
    fault = setting.options[0]
    if fault == 1.0 and state.total[0] + state.total[1] > 5.0:
        return setting.arms
    if fault == 2.0:
        # Python's whole numbers grow beyond 64 bits, and those of compiled code do not.
        return ((step + 7) * 6364136223846793005 * 6364136223846793005 >> 40) % setting.arms
    if fault == 3.0 and 0.2 < params[0] < 0.9:
        return -1
    if fault == 4.0 and state.pulls[0] == 0.0:
        return -1 if step > 2 else 1
    if fault == 5.0:
        highest, best = -1.0, 0
        for arm in range(setting.arms):
            index = state.total[arm] / (state.pulls[arm] + setting.options[1])
            if index > highest:
                highest, best = index, arm
        return best
    if bt.kernel.uniform(stream) < params[0]:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


@dataclass(frozen=True)
class Faulty(bt.EpsilonGreedy):
    """A right policy with fault 0."""

    fault: int = 0

    name = "faulty"
    parameters = (bt.Parameter("epsilon", 0, 1, textbook=0.1, lower_limit=0, upper_limit=1),)
    choose = staticmethod(choose_faultily)

    def options(self, arms, dims, horizon):
        return (float(self.fault), 0.0)
