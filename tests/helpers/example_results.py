"""Results that are made by hand: nothing is simulated."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

import banditune as bt
from banditune.core.descriptions import describe
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.exact_results import ExactOptimum, ExactRegret, LowerBound, LowerBoundEstimates
from banditune.results.search_results import SearchPosterior, TrialResult, UnimodalityTest
from banditune.results.store_results import StoredMean, StoreSummary
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning

EVIL = "<script>alert(1)</script>"


FIRST = 2**40


def setup_for(policy="ucb1", problem="bernoulli", tuner="two-part"):
    versions = {"banditune": "0.1.0", "python": "3.11.7"}
    options = {"name": problem, "arms": 10, "prior": [[1.0, 1.0]], "names": []}
    return StudySetup(
        policy={"name": policy, "noise": 0.5},
        problem=options,
        horizon=10_000,
        seed=0,
        regret_kind="expected",
        common_random_numbers=True,
        shortcut=True,
        versions=versions,
        tuner={"name": tuner},
    )


def a_curve(policy="ucb1"):
    values = np.linspace(0, 1, 33)
    mean = 40 + 400 * (values - 0.22) ** 2
    shape = UnimodalityTest(rejected=False, statistic=-0.35, critical_value=4.24, false_alarm_rate=0.01, second_dip=())
    best = Estimate.from_sample(np.random.default_rng(2).gamma(2, 20, 500))
    return Curve(
        parameter="gamma",
        values=values,
        mean=mean,
        se=0.05 * mean,
        runs=1000,
        best_value=0.22,
        best_regret=best,
        textbook=1.0,
        log_scale=False,
        unimodality=shape,
        setup=setup_for(policy),
        refined=True,
    )


def a_tuning(policy="ucb1", **changes):
    """A tuning as the two-part tuner leaves it, with a curve and a long tail; nothing is simulated."""
    rng = np.random.default_rng(0)
    tuned = np.append(rng.gamma(3, 9, 1390), rng.uniform(300, 2000, 10))
    theory = rng.normal(355, 60, 1400)
    trials = tuple(
        TrialResult.from_regrets(values, [rng.gamma(3, 12, 1 + 7 * place) for place, _ in enumerate(values)])
        for values in (np.linspace(0.02, 1, 5), *(np.linspace(0.1, 0.4, 6) / k + 0.2 - 0.2 / k for k in range(1, 12)))
    )
    belief = SearchPosterior(
        mean=45.0,
        low=38.6,
        high=54.1,
        best_low=0.1975,
        best_high=0.2407,
        regret_gap=1.4,
        near_optimal=(0.216, 0.2222, 0.05),
        second_dip=(),
        misfit=False,
        confidence=0.95,
    )
    made = Tuning(
        params={"gamma": 0.2222},
        regret=Estimate.from_sample(tuned),
        textbook_regret=Estimate.from_sample(theory),
        gain=Estimate.from_sample(theory - tuned),
        textbook_params={"gamma": 1.0},
        search_runs=1000,
        budget=1000,
        validation_runs=1400,
        trials=trials,
        posterior=belief,
        precision=None,
        precision_reached=None,
        notices=(bt.results.Notice("14 of 1,400 runs carry 52% of the mean regret.", "skewed-regret"),),
        curve=a_curve(policy),
        setup=setup_for(policy),
        distribution=RegretDistribution.from_sample(tuned, FIRST),
        textbook_distribution=RegretDistribution.from_sample(theory, FIRST),
    )
    return replace(made, **changes)


def notes_tuning():
    """A tuning from before spreads were kept: two values a trial, no curve, no belief."""
    pairs = ((1 / 3, 2 / 3), (2 / 9, 4 / 9), (4 / 27, 8 / 27))
    trials = tuple(TrialResult.from_regrets(pair, np.random.default_rng(1).gamma(2, 20, (2, 25))) for pair in pairs)
    changes = {"distribution": None, "textbook_distribution": None, "curve": None, "posterior": None, "notices": ()}
    return a_tuning(trials=trials, setup=setup_for(tuner="notes"), **changes)


def a_comparison(first="ts", second="ucb1"):
    rng = np.random.default_rng(3)
    best, other = rng.gamma(2, 6, 1000), rng.gamma(2, 9, 1000)
    entries = tuple(
        ComparisonEntry(
            policy=name,
            policy_config={"name": name},
            params=params,
            is_tuned=bool(params),
            regret=Estimate.from_sample(sample),
            difference_to_best=Estimate.from_sample(sample - best),
            textbook_regret=Estimate.from_sample(2 * sample),
            search_runs=500,
            distribution=RegretDistribution.from_sample(sample, FIRST),
        )
        for name, params, sample in ((first, {"gamma": 0.67}, best), (second, {}, other))
    )
    return Comparison(
        entries=entries, best_policy=first, budget=500, validation_runs=1000, setup=replace(setup_for(), policy=None)
    )


def an_account(policy="ucb1"):
    """What a ledger may hold of a setup: a search of many values, few runs of one, two values on fresh instances."""
    rng = np.random.default_rng(4)
    sizes = [(value / 10, False, 350) for value in range(10)] + [(0.95, False, 3), (0.2, True, 400), (0.9, True, 400)]
    tallies = []
    for value, fresh, runs in sizes:
        sample = rng.gamma(2, 10 + 30 * value, runs)
        tallies.append(
            StoredMean(
                params=(value,),
                noise_stream=0,
                fresh=fresh,
                step=1000,
                regret=Estimate.from_sample(sample),
                distribution=RegretDistribution.from_sample(sample, FIRST),
            )
        )
    return StoreSummary(
        setup_id=1,
        policy=policy,
        problem="bernoulli(arms=10)",
        horizon=1000,
        seed=0,
        regret_kind="expected",
        common_random_numbers=True,
        shortcut="plain",
        device="cpu",
        dtype="float64",
        versions="banditune 0.1.0",
        parameters=("gamma",),
        stored_means=tuple(tallies),
    )


def computed_setup(policy=None):
    options = {"name": policy} if policy else None
    return replace(setup_for(), policy=options, problem=describe(bt.Bernoulli(arms=2)), tuner=None, horizon=60)


def an_optimum():
    return ExactOptimum(reward=37.5, oracle_reward=40.0, regret=2.5, setup=computed_setup())


def exact_regrets(policy="ucb1", values=(1.0, 0.0, 0.1, 0.2, 0.3, 0.6), **changes):
    values = np.array(values)
    floor = LowerBound(regret=2.5, is_exact=True, confidence=1.0, method="dynamic programming")
    made = ExactRegret(
        parameter="gamma",
        values=values,
        regret=2.6 + 5 * (values - 0.2) ** 2,
        textbook=1.0,
        setup=computed_setup(policy),
        lower_bound=floor,
    )
    return replace(made, **changes)


def a_bound(**changes):
    floor = LowerBound(regret=4.5, is_exact=False, confidence=0.95, method="together")
    kinds = ("belief", "together", "one arm")
    means, errors = np.array([2.4, 4.53, 3.9]), np.array([0.15, 0.02, 0.0])
    return replace(
        LowerBoundEstimates(
            kinds=kinds,
            mean=means,
            se=errors,
            runs=(1000, 200, 0),
            lower_bound=floor,
            setup=computed_setup(),
            confidence=0.95,
        ),
        **changes,
    )


def flat_tuning(level):
    """Every run loses the same: no interval, no tail."""
    same = np.full(50, float(level))
    trials = (TrialResult.from_regrets((0.5, 1.0), np.full((2, 3), float(level))),)
    changes = {
        "regret": Estimate.from_sample(same),
        "textbook_regret": Estimate.from_sample(same),
        "gain": Estimate.from_sample(0 * same),
    }
    spreads = {
        "distribution": RegretDistribution.from_sample(same, FIRST),
        "textbook_distribution": RegretDistribution.from_sample(same, FIRST),
    }
    return a_tuning(trials=trials, curve=None, posterior=None, **changes, **spreads)


EVERY = {
    "tuning": a_tuning,
    "tuning without curve, belief and spread": notes_tuning,
    "curve": a_curve,
    "comparison": a_comparison,
    "account of a ledger": an_account,
    "exact regrets": exact_regrets,
    "exact regret of one value": lambda: exact_regrets(values=(0.5,), lower_bound=None),
    "exact regret without a parameter": lambda: exact_regrets("gittins", (0.0,), parameter="value", textbook=0.0),
    "bound": a_bound,
    "nothing lost": lambda: flat_tuning(0),
    "rewards above the best arm's": lambda: flat_tuning(-3),
    "curve of one value": lambda: replace(a_curve(), values=np.ones(1), mean=np.ones(1), se=np.zeros(1)),
}


class Balance(HTMLParser):
    """Whether all that is opened is closed, in order."""

    VOID = ("meta", "input", "br")

    def __init__(self):
        super().__init__()
        self.open = []
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
