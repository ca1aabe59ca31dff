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
from banditune.results.over_time_results import RegretOverTime, RegretSeries, StepEstimates
from banditune.results.search_results import SearchPosterior, TrialResult, UnimodalityTest
from banditune.results.store_results import StoredMean, StoreSummary
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning

SCRIPT_NAME = "<script>alert(1)</script>"


FIRST_INSTANCE = 2**40


def make_setup(policy="ucb1", problem="bernoulli", tuner="two-part"):
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


def make_curve(policy="ucb1"):
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
        setup=make_setup(policy),
        refined=True,
    )


def make_tuning(policy="ucb1", **changes):
    """A tuning of the two-part tuner, with a curve and a long tail."""
    rng = np.random.default_rng(0)
    tuned = np.append(rng.gamma(3, 9, 1390), rng.uniform(300, 2000, 10))
    textbook = rng.normal(355, 60, 1400)
    trials = tuple(
        TrialResult.from_regrets(
            [(value,) for value in values], [rng.gamma(3, 12, 1 + 7 * number) for number, _ in enumerate(values)]
        )
        for values in (np.linspace(0.02, 1, 5), *(np.linspace(0.1, 0.4, 6) / k + 0.2 - 0.2 / k for k in range(1, 12)))
    )
    posterior = SearchPosterior(
        mean=45.0,
        low=38.6,
        high=54.1,
        best_intervals={"gamma": (0.1975, 0.2407)},
        regret_gap=1.4,
        near_optimal=(0.216, 0.2222, 0.05),
        second_dip=(),
        misfit=False,
        confidence=0.95,
    )
    tuning = Tuning(
        params={"gamma": 0.2222},
        regret=Estimate.from_sample(tuned),
        textbook_regret=Estimate.from_sample(textbook),
        gain=Estimate.from_sample(textbook - tuned),
        textbook_params={"gamma": 1.0},
        search_runs=1000,
        budget=1000,
        validation_runs=1400,
        trials=trials,
        posterior=posterior,
        precision=None,
        precision_reached=None,
        notices=(bt.results.Notice("14 of 1,400 runs carry 52% of the mean regret.", "skewed-regret"),),
        curves=(make_curve(policy),),
        setup=make_setup(policy),
        distribution=RegretDistribution.from_sample(tuned, FIRST_INSTANCE),
        textbook_distribution=RegretDistribution.from_sample(textbook, FIRST_INSTANCE),
    )
    return replace(tuning, **changes)


def make_notes_tuning():
    """A tuning of an old version by NoTeS: two values a trial, no curve, no posterior, no distribution."""
    pairs = ((1 / 3, 2 / 3), (2 / 9, 4 / 9), (4 / 27, 8 / 27))
    trials = tuple(
        TrialResult.from_regrets([(value,) for value in pair], np.random.default_rng(1).gamma(2, 20, (2, 25)))
        for pair in pairs
    )
    changes = {"distribution": None, "textbook_distribution": None, "curves": (), "posterior": None, "notices": ()}
    return make_tuning(trials=trials, setup=make_setup(tuner="notes"), **changes)


def make_comparison(first_policy="ts", second_policy="ucb1"):
    rng = np.random.default_rng(3)
    best, other_sample = rng.gamma(2, 6, 1000), rng.gamma(2, 9, 1000)
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
            distribution=RegretDistribution.from_sample(sample, FIRST_INSTANCE),
        )
        for name, params, sample in ((first_policy, {"gamma": 0.67}, best), (second_policy, {}, other_sample))
    )
    return Comparison(
        entries=entries,
        best_policy=first_policy,
        budget=500,
        validation_runs=1000,
        setup=replace(make_setup(), policy=None),
    )


def make_over_time(labels=("tuned", "textbook"), steps=(10, 100, 1000), **changes):
    """Regret over time of one policy, tuned and textbook, or of several policies."""
    rng = np.random.default_rng(5)
    samples = [
        np.array([rng.normal(3 + (1 + number) * np.log(step), 2, 200) for step in steps])
        for number in range(len(labels))
    ]
    series = tuple(
        RegretSeries(
            label=label,
            policy="ucb1" if labels == ("tuned", "textbook") else label,
            policy_config={"name": "ucb1", "noise": 0.5},
            params={"gamma": 1.0 if label == "textbook" else 0.2},
            is_textbook=label == "textbook",
            regret=StepEstimates.from_estimates([Estimate.from_sample(row) for row in sample]),
            difference_to_reference=StepEstimates.from_estimates(
                [Estimate.from_sample(row) for row in sample - samples[0]]
            ),
        )
        for label, sample in zip(labels, samples, strict=True)
    )
    result = RegretOverTime(
        series=series,
        steps=tuple(steps),
        reference=labels[0],
        runs=200,
        first_instance=FIRST_INSTANCE,
        unit="run",
        unit_count=200,
        setup=replace(make_setup(tuner="none"), horizon=steps[-1]),
    )
    return replace(result, **changes)


def make_store_summary(policy="ucb1"):
    """A summary of a store: a search of many values, few runs of one, two values on fresh instances."""
    rng = np.random.default_rng(4)
    value_runs = [(value / 10, False, 350) for value in range(10)] + [
        (0.95, False, 3),
        (0.2, True, 400),
        (0.9, True, 400),
    ]
    means = []
    for value, fresh, runs in value_runs:
        sample = rng.gamma(2, 10 + 30 * value, runs)
        means.append(
            StoredMean(
                params=(value,),
                noise_stream=0,
                fresh=fresh,
                step=1000,
                regret=Estimate.from_sample(sample),
                distribution=RegretDistribution.from_sample(sample, FIRST_INSTANCE),
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
        stored_means=tuple(means),
    )


def make_exact_setup(policy=None):
    options = {"name": policy} if policy else None
    return replace(make_setup(), policy=options, problem=describe(bt.Bernoulli(arms=2)), tuner=None, horizon=60)


def make_optimum():
    return ExactOptimum(reward=37.5, oracle_reward=40.0, regret=2.5, setup=make_exact_setup())


def make_exact_regrets(policy="ucb1", values=(1.0, 0.0, 0.1, 0.2, 0.3, 0.6), **changes):
    values = np.array(values)
    lower_bound = LowerBound(regret=2.5, is_exact=True, confidence=1.0, method="dynamic programming")
    result = ExactRegret(
        parameter="gamma",
        values=values,
        regret=2.6 + 5 * (values - 0.2) ** 2,
        textbook=1.0,
        setup=make_exact_setup(policy),
        lower_bound=lower_bound,
    )
    return replace(result, **changes)


def make_lower_bound(**changes):
    lower_bound = LowerBound(regret=4.5, is_exact=False, confidence=0.95, method="coupled")
    kinds = ("posterior mean", "coupled", "one arm")
    means, errors = np.array([2.4, 4.53, 3.9]), np.array([0.15, 0.02, 0.0])
    return replace(
        LowerBoundEstimates(
            kinds=kinds,
            mean=means,
            se=errors,
            runs=(1000, 200, 0),
            lower_bound=lower_bound,
            setup=make_exact_setup(),
            confidence=0.95,
        ),
        **changes,
    )


def make_constant_tuning(level):
    """A tuning whose runs all have the same regret: no interval, no tail."""
    sample = np.full(50, float(level))
    trials = (TrialResult.from_regrets([(0.5,), (1.0,)], np.full((2, 3), float(level))),)
    changes = {
        "regret": Estimate.from_sample(sample),
        "textbook_regret": Estimate.from_sample(sample),
        "gain": Estimate.from_sample(0 * sample),
    }
    distributions = {
        "distribution": RegretDistribution.from_sample(sample, FIRST_INSTANCE),
        "textbook_distribution": RegretDistribution.from_sample(sample, FIRST_INSTANCE),
    }
    return make_tuning(trials=trials, curves=(), posterior=None, **changes, **distributions)


RESULTS = {
    "tuning": make_tuning,
    "tuning without curve, posterior and distribution": make_notes_tuning,
    "curve": make_curve,
    "comparison": make_comparison,
    "regret over time": make_over_time,
    "regret over time of one series": lambda: make_over_time(("ts",), (1,)),
    "summary of a store": make_store_summary,
    "exact regrets": make_exact_regrets,
    "exact regret of one value": lambda: make_exact_regrets(values=(0.5,), lower_bound=None),
    "exact regret without a parameter": lambda: make_exact_regrets("gittins", (0.0,), parameter="value", textbook=0.0),
    "bound": make_lower_bound,
    "no regret": lambda: make_constant_tuning(0),
    "rewards above the best arm's": lambda: make_constant_tuning(-3),
    "curve of one value": lambda: replace(make_curve(), values=np.ones(1), mean=np.ones(1), se=np.zeros(1)),
}


class TagChecker(HTMLParser):
    """Checks that all tags are closed in order."""

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
