"""A user's script, which type checkers read in strict mode."""

from __future__ import annotations

import banditune as bt

policy = bt.UCB1(noise=0.5)
problem = bt.Bernoulli(arms=3, prior=(1, 1))
result = bt.tune(
    policy,
    problem,
    horizon=1000,
    precision=0.02,
    include=("curve", "lower_bound"),
    search=bt.Search(ranges={"gamma": (0, 3)}, validate=100),
    simulation=bt.Simulation(regret="realised"),
    run=bt.Run(workers=2, device="cpu"),
)
gamma: float = result.params["gamma"]
mean: float = result.regret.mean
notes: tuple[str, ...] = tuple(str(notice) for notice in result.notices)
reached: bool | None = result.precision_reached
curve: bt.results.Curve | None = result.curve
best: str = bt.compare([policy, bt.Thompson()], problem, horizon=100).best_policy
regrets = bt.simulate(policy, problem, [0.1, 0.2], horizon=100, runs=10)
total: float = float(regrets.mean())
over_time: bt.results.RegretOverTime = bt.regret_over_time(
    [policy, bt.Thompson()], problem, horizon=100, labels=["a", "b"]
)
last: float = bt.regret_over_time(result, run=bt.Run(device="cpu")).get_regret("tuned").mean
bt.plot([over_time, over_time], labels=["a", "b", "c", "d"], xscale="log", size="column")
latex: str = result.to_latex(caption="Regret", label="tab:regret")
live: bt.DeployedPolicy = bt.deploy(policy, {"gamma": gamma}, horizon=1000, arms=3)
