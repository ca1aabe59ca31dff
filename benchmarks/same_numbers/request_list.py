"""The requests whose numbers are recorded. They say what is asked; `api.py` says how the package is asked for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import api
import numpy as np

REQUESTS: dict[str, Callable[..., api.Answer]] = {}
"""By name: functions that take a `folder`, a `device`, both or nothing. Those with a `device` can run on a GPU."""


def request(name: str) -> Callable[[Any], Any]:
    """Put a function into the list."""

    def keep(function: Any) -> Any:
        if name in REQUESTS:
            raise ValueError(f"there are two requests named {name!r}")
        REQUESTS[name] = function
        return function

    return keep


# ---------------------------------------------------------------- every policy and every problem, played

VALUES = [0.0, 0.3, 1.0]
PLAYED = {
    "ucb1": ("bernoulli", VALUES),
    "ucb1-step": ("bernoulli", VALUES),
    "ts": ("bernoulli", VALUES),
    "gaussian-ts": ("gaussian", VALUES),
    "epsilon-greedy": ("bernoulli", VALUES),
    "explore-then-commit": ("bernoulli", [1, 5, 20]),
    "greedy": ("bernoulli", None),
    "linucb": ("linear", VALUES),
    "lints": ("linear", VALUES),
    "ucb-glm": ("logistic", VALUES),
    "glm-tsl": ("logistic", VALUES),
    "lin-epsilon-greedy": ("linear", VALUES),
    "lin-greedy": ("linear", None),
    "glm-epsilon-greedy": ("logistic", VALUES),
    "glm-greedy": ("logistic", None),
    "gittins": ("two arms", None),
    "optimal": ("two arms", None),
    "optimal-mixture": ("two mixed", None),
    "own": ("bernoulli", VALUES),
    "own two": ("bernoulli", [(0.5, 0.01), (0.1, 0.2)]),
    "own linear": ("linear", VALUES),
}
LOGISTIC = ("ucb-glm", "glm-tsl", "glm-epsilon-greedy", "glm-greedy")


def play(policy: str, problem: str, values: Any, device: str, horizon: int = 120, plain: bool = True) -> api.Answer:
    """Expected and realised regret at several steps, with shared and own noise, by the shortcut and step by step."""
    ask = partial(api.simulate, api.policy(policy), api.problem(problem), values, horizon=horizon, device=device)
    at = [1, 10, horizon // 2, horizon]
    found = {
        "expected": ask(runs=40, checkpoints=at),
        "realised": ask(runs=30, regret="realised", checkpoints=at),
        "own noise": ask(runs=30, common_random_numbers=False, seed=5),
        "realised, own noise": ask(runs=20, common_random_numbers=False, regret="realised", first_instance=7),
    }
    if plain:
        found["step by step"] = ask(runs=40, checkpoints=at, shortcuts=False)
    return found | {"means": found["expected"].mean(axis=1)[:, -1].tolist()}, []


def play_policy(name: str, device: str) -> api.Answer:
    problem, values = PLAYED[name]
    return play(name, problem, values, device, 60 if name in LOGISTIC else 120)


for _name in PLAYED:
    request(f"policy {_name}")(lambda device, name=_name: play_policy(name, device))


@request("policy options")
def play_options(device: str) -> api.Answer:
    found = {
        name: api.simulate(api.policy(name), api.problem(problem), values, horizon=60, runs=30, device=device)
        for name, problem, values in [
            ("ucb1 noise", "bernoulli", VALUES),
            ("ts prior", "bernoulli", VALUES),
            ("linucb theorem", "linear", VALUES),
            ("lints factor", "linear", VALUES),
            ("gittins discount", "two arms", None),
        ]
    }
    return found, []


PROBLEMS = {
    "priors": ("ucb1", "priors"),
    "beta": ("ucb1", "ts prior", "beta"),
    "gaussian": ("ucb1", "gaussian", "gaussian residuals"),
    "linear": ("linucb", "linear features", "linear drawn"),
    "logistic": ("lin-greedy", "logistic", "logistic features"),
    "mixture": ("ucb1", "mixture", "warm-up"),
    "tables": ("ucb1 noise", "one table"),
    "campaigns": ("ucb1", "binary campaigns", "unit campaigns", "real campaigns"),
    "own": ("ucb1 noise", "own"),
    "own features": ("linucb theorem", "own features"),
}


def play_problem(name: str, device: str) -> api.Answer:
    """Instances and regrets on each variant of a problem, by each policy that is named before it."""
    headline: dict[str, Any] = {}
    policies = [
        word for word in PROBLEMS[name] if word in PLAYED or word in ("ucb1 noise", "ts prior", "linucb theorem")
    ]
    for problem in PROBLEMS[name]:
        if problem in policies:
            continue
        headline[f"{problem}: instances"] = api.of_instances(api.draw_instances(api.problem(problem), 20))
        for policy in policies:
            values = None if policy == "lin-greedy" else VALUES
            ask = partial(api.simulate, api.policy(policy), api.problem(problem), values, horizon=60, device=device)
            headline[f"{problem}: {policy}"] = ask(runs=30)
            headline[f"{problem}: {policy}, realised"] = ask(runs=20, regret="realised", common_random_numbers=False)
    return headline, []


for _name in PROBLEMS:
    request(f"problem {_name}")(lambda device, name=_name: play_problem(name, device))


@request("problem whose rewards depend on the step")
def play_by_step(device: str) -> api.Answer:
    ask = partial(api.simulate, api.policy("ucb1 noise"), values=VALUES, runs=30, regret="realised", device=device)
    return {
        "own": ask(api.problem("own by step"), horizon=60),
        "tables in their order": ask(api.problem("tables"), horizon=50, common_random_numbers=False),
    }, []


@request("random streams")
def draw_from_laws(device: str) -> api.Answer:
    """Every step pulls the next arm, and every arm draws from another law."""
    laws = api.problem("streams")
    at = list(range(1, 4 * laws.arms + 1))
    ask = partial(
        api.simulate, api.policy("in turn"), laws, horizon=at[-1], regret="realised", checkpoints=at, device=device
    )
    found = ask(runs=50)
    first = np.diff(found[0, 0], prepend=0)[: 2 * laws.arms]
    return {"all": found, "other seed": ask(runs=20, seed=9), "first": first.tolist()}, []


@request("processes")
def play_in_processes() -> api.Answer:
    ask = partial(api.simulate, api.policy("ucb1"), api.problem("bernoulli"), VALUES, horizon=60, runs=40)
    return {"processes": ask(executor="processes", workers=2), "one thread": ask(workers=1)}, []


# ---------------------------------------------------------------- tune, curve, compare, stress

TUNED = {
    "usual": ("ucb1", "bernoulli", None, {"budget": 400}),
    "precision": ("ts", "bernoulli", None, {"precision": 0.1, "max_runs": 3000, "validate": 100}),
    "range": ("ucb1", "gaussian", None, {"budget": 200, "validate": 80, "ranges": {"gamma": (0, 3)}}),
    "log scale": ("own log", "bernoulli", None, {"budget": 200, "validate": 80}),
    "whole numbers": ("explore-then-commit", "bernoulli", None, {"budget": 200, "validate": 80}),
    "curve": ("ucb1", "bernoulli", None, {"budget": 200, "validate": 80, "include": ("curve",)}),
    "stress": ("ucb1", "bernoulli", None, {"budget": 120, "validate": 60, "include": ("robustness",)}),
    "lower bound": ("ucb1 noise", "two arms", None, {"budget": 120, "validate": 60, "include": ("lower_bound",)}),
    "realised": (
        "ucb1",
        "bernoulli",
        None,
        {
            "budget": 200,
            "validate": 80,
            "regret": "realised",
            "common_random_numbers": False,
            "seed": 4,
            "shortcuts": False,
        },
    ),
    "features": ("lints", "linear", None, {"budget": 150, "validate": 60}),
    "held-out tables": ("ucb1 noise", "tables", None, {"budget": 150, "regret": "realised"}),
    "all tables": ("ucb1 noise", "all tables", None, {"budget": 150, "validate": 60, "regret": "realised"}),
    "campaigns": ("ucb1", "binary campaigns", None, {"budget": 150}),
    "own problem": ("ucb1 noise", "own", None, {"budget": 150, "validate": 60}),
    "notes": ("ucb1", "bernoulli", ("notes", {"precision": 0.05}), {"budget": 300, "validate": 80}),
    "uniform": ("ucb1", "bernoulli", ("uniform", {}), {"budget": 300, "validate": 80}),
    "halving": ("ts", "bernoulli", ("halving", {"precision": 0.2}), {"budget": 300, "validate": 80}),
    "optuna": ("ucb1", "bernoulli", ("optuna", {"trials": 12, "seed": 3}), {"budget": 120, "validate": 60}),
}


def tune(name: str, device: str) -> api.Answer:
    policy, problem, tuner, options = TUNED[name]
    by = api.tuner(tuner[0], **tuner[1]) if tuner else None
    horizon = 50 if problem.endswith("tables") else 120
    found = api.tune(api.policy(policy), api.problem(problem), by, horizon=horizon, device=device, **options)
    return api.of_tuning(found)


for _name in TUNED:
    request(f"tune {_name}")(lambda device, name=_name: tune(name, device))


@request("theory of the ternary search")
def plan_search() -> api.Answer:
    return api.plan_search(), []


@request("curve given")
def draw_given_curve(device: str) -> api.Answer:
    values = [0.0, 0.1, 0.25, 0.5, 1.0]
    found = api.draw_curve(
        api.policy("ucb1"),
        api.problem("bernoulli"),
        values,
        horizon=120,
        runs=80,
        common_random_numbers=False,
        device=device,
    )
    return api.of_curve(found)


@request("curve refined")
def draw_refined_curve(device: str) -> api.Answer:
    found = api.draw_curve(
        api.policy("ts"), api.problem("bernoulli"), horizon=120, runs=80, ranges={"gamma": (0, 2)}, device=device
    )
    return api.of_curve(found)


@request("compare")
def compare_policies(device: str) -> api.Answer:
    several = [api.policy(name) for name in ("ucb1", "ucb1 noise", "ts", "epsilon-greedy", "greedy")]
    options = {"horizon": 120, "budget": 120, "validate": 80, "device": device}
    return api.of_comparison(api.compare(several, api.problem("bernoulli"), **options))


@request("compare with the optimum")
def compare_with_optimum(device: str) -> api.Answer:
    several = [api.policy(name) for name in ("ucb1 noise", "gittins", "optimal")]
    options = {"horizon": 120, "budget": 120, "validate": 80, "regret": "realised", "device": device}
    return api.of_comparison(api.compare(several, api.problem("two arms"), **options))


@request("stress")
def stress_value(device: str) -> api.Answer:
    others = [("other priors", api.problem("priors"))]
    options = {"horizon": 120, "budget": 120, "validate": 60, "others": others, "device": device}
    return api.of_stress(api.stress(api.policy("ucb1"), api.problem("bernoulli"), 0.3, **options))


# ---------------------------------------------------------------- exact computations


@request("exact optimum")
def compute_optima() -> api.Answer:
    answers = {
        name: api.of_optimum(api.compute_optimum(api.problem(name), horizon))
        for name, horizon in (("two arms", 60), ("two arms prior", 40), ("two mixed", 40), ("mixture", 25))
    }
    return joined(answers)


@request("exact regret")
def compute_regrets() -> api.Answer:
    answers = {
        f"{policy} on {problem}": api.of_exact_regret(
            api.compute_regret(api.policy(policy), api.problem(problem), values, 25)
        )
        for policy, problem, values in [
            ("ucb1", "two arms", VALUES),
            ("ts", "two arms prior", [0.5, 1.0]),
            ("epsilon-greedy", "two arms", None),
            ("greedy", "two mixed", None),
        ]
    }
    return joined(answers)


@request("lower bound")
def compute_bounds() -> api.Answer:
    return joined(
        {
            name: api.of_bound(api.compute_bound(api.problem(name), 100, runs=60, seed=2, confidence=0.9))
            for name in ("bernoulli", "priors", "gaussian")
        }
    )


@request("gittins index")
def compute_indices() -> api.Answer:
    return {
        "rounds left": [api.compute_index(s, f, rounds_left=40) for s, f in ((0, 0), (3, 2), (1, 7))],
        "discount": [api.compute_index(s, f, discount=0.95) for s, f in ((0, 0), (3, 2))],
        "prior": api.compute_index(2, 1, rounds_left=20, prior=(0.5, 2)),
    }, []


@request("optimal policy")
def play_optimal_policies() -> api.Answer:
    return {
        name: api.simulate(api.make_optimal(api.problem(name)), api.problem(name), horizon=40, runs=40)
        for name in ("two arms prior", "two mixed")
    }, []


def joined(answers: dict[str, api.Answer]) -> api.Answer:
    """Several answers as one."""
    headline = {f"{name}: {label}": value for name, (part, _) in answers.items() for label, value in part.items()}
    return headline, [result for _, results in answers.values() for result in results]


# ---------------------------------------------------------------- logs


def write_decisions(folder: Path, kind: str) -> Path:
    """A row per decision: 16 campaigns of three arms, with rewards of a kind, and features where it says so."""
    rng = np.random.default_rng(21)
    features = kind in ("linear", "logistic")
    lines = ["campaign,arm,reward" + (",x1,x2" if features else "")]
    theta = rng.normal(size=2)
    for campaign in range(16):
        table = rng.normal(size=(3, 2)).round(3)
        means = rng.beta(2, 3, 3)
        scores = table @ (theta + 0.2 * rng.normal(size=2))
        for step in range(45):
            arm = step % 3
            if kind == "binary":
                reward = int(rng.random() < means[arm])
            elif kind == "unit":
                reward = round(rng.beta(4 * means[arm], 4 * (1 - means[arm])), 4)
            elif kind == "real":
                reward = round(means[arm] + 0.5 * rng.normal(), 4)
            elif kind == "linear":
                reward = round(scores[arm] + 0.5 * rng.normal(), 4)
            else:
                reward = int(rng.random() < 1 / (1 + np.exp(-scores[arm])))
            told = f",{table[arm, 0]},{table[arm, 1]}" if features else ""
            lines.append(f"c{campaign},arm{arm},{reward}{told}")
    path = folder / f"{kind}.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def write_counts(folder: Path) -> Path:
    """A row per arm of a campaign, with a bad row and columns of unusual names."""
    rng = np.random.default_rng(22)
    lines = ["town;who;shown;paid"]
    for town in range(14):
        common = rng.beta(2, 4)
        for arm in ("red", "blue"):
            pulls = int(rng.integers(20, 60))
            paid = rng.binomial(pulls, min(max(common + 0.05 * rng.normal(), 0.01), 0.99))
            lines.append(f"t{town};{arm};{pulls};{paid}")
    path = folder / "counts.csv"
    path.write_text("\n".join([*lines, "t99;red;5;nine"]) + "\n")
    return path


def read_counts(folder: Path) -> Any:
    columns = {"campaign": "town", "arm": "who", "pulls": "shown", "successes": "paid"}
    return api.read_logs(write_counts(folder), skip_bad=True, **columns)


FITTED = {
    "beta-binomial": ("binary", "beta-binomial", {}),
    "one prior for each arm": ("binary", "beta-binomial", {"per_arm": True, "horizon": 90}),
    "unit rewards": ("unit", "beta", {"confidence": 0.8}),
    "gaussian": ("real", "gaussian", {}),
    "linear": ("linear", "linear", {}),
    "linear without intercept": ("linear", "linear", {"intercept": False}),
    "logistic": ("logistic", "logistic", {}),
    "auto": ("binary", "auto", {"arms": 2}),
    "correlated": (None, "correlated", {}),
    "campaigns": (None, "campaigns", {}),
}


def fit(name: str, folder: Path) -> api.Answer:
    kind, model, options = FITTED[name]
    logs = api.read_logs(write_decisions(folder, kind)) if kind else read_counts(folder)
    return api.of_fit(api.fit(logs, model, **options))


for _name in FITTED:
    request(f"fit {_name}")(lambda folder, name=_name: fit(name, folder))


@request("backtest")
def backtest_counts(folder: Path) -> api.Answer:
    return api.of_backtest(api.backtest(api.policy("ucb1"), read_counts(folder), "correlated", budget=120))


@request("backtest with features")
def backtest_features(folder: Path) -> api.Answer:
    logs = api.read_logs(write_decisions(folder, "linear"))
    return api.of_backtest(api.backtest(api.policy("lints"), logs, "linear", budget=80, share=0.6, seed=2, horizon=60))


@request("problem files")
def write_and_read_problems(folder: Path) -> api.Answer:
    headline = {}
    for name in ("priors", "gaussian residuals", "linear features", "mixture", "binary campaigns"):
        path = folder / "problem.toml"
        api.write_problem(api.problem(name), path, 70)
        found, horizon = api.read_problem(path)
        headline[name] = {"horizon": horizon, "instances": api.of_instances(api.draw_instances(found, 10))}
    return headline, []


# ---------------------------------------------------------------- production, other libraries, ledger, paper


@request("deploy thompson sampling")
def deploy_thompson(folder: Path) -> api.Answer:
    live = api.deploy(api.policy("ts prior"), 0.6, horizon=150, arms=3, seed=4, rewards="binary")
    chances = {0: 0.2, 1: 0.5, 2: 0.6, "new": 0.7}
    chosen = api.work(live, chances, 100)
    live = api.restart(live, folder / "state.json")
    api.change_arms(live, "new", 0)
    return api.of_live(live, chosen + api.work(live, chances, 100, seed=1))


@request("deploy with late rewards")
def deploy_with_late_rewards() -> api.Answer:
    chances = {"a": 0.2, "b": 0.5, "c": 0.6}
    answers = {}
    for pending in ("ignore", "mean"):
        live = api.deploy(api.policy("ucb1 noise"), 0.3, horizon=300, names=list(chances), pending=pending)
        chosen = api.work(live, chances, 200, late=15)
        api.drop_pull(live, chosen[-1])
        answers[pending] = api.of_live(live, chosen)
    return joined(answers)


@request("deploy with features")
def deploy_with_features(folder: Path) -> api.Answer:
    live = api.deploy(api.policy("lints factor"), 0.4, horizon=300, features=api.FEATURES, seed=2)
    chances = {arm: (arm + 1) / 10 for arm in range(8)} | {"new": 0.9}
    chosen = api.work(live, chances, 100, late=3)
    api.change_arms(live, "new", 3, [0.5, -0.2, 0.1])
    live = api.restart(live, folder / "state.json")
    return api.of_live(live, chosen + api.work(live, chances, 100, seed=1))


@request("deploy a tuning")
def deploy_tuning(folder: Path) -> api.Answer:
    tuning = api.tune(api.policy("gaussian-ts"), api.problem("gaussian"), horizon=120, budget=100, validate=40)
    live = api.deploy_tuned(api.reload(tuning, folder / "tuned.json"), names=["a", "b", "c", "d"], seed=3)
    return api.of_live(live, api.work(live, {"a": 0.1, "b": 0.3, "c": 0.5, "d": 0.7}, 200))


@request("guests")
def play_guests() -> api.Answer:
    return {
        name: api.simulate(
            api.policy(name), api.problem("bernoulli"), [0.3, 1.0], horizon=40, runs=5, regret="realised", workers=1
        )
        for name in ("mabwiser", "river", "own object")
    }, []


@request("export")
def export_to_libraries() -> api.Answer:
    answers = {}
    for name in ("ucb1", "ucb1-step", "epsilon-greedy", "ts"):
        tuning = api.tune(api.policy(name), api.problem("bernoulli"), horizon=120, budget=60, validate=20)
        answers |= {f"{name}, {to}": api.of_export(api.export(tuning, to)) for to in ("mabwiser", "river")}
    return joined(answers)


@request("ledger")
def tune_with_ledger(folder: Path) -> api.Answer:
    ledger = folder / "study.ledger"
    ask = partial(api.tune, api.policy("ucb1"), api.problem("bernoulli"), horizon=120, validate=60, store=ledger)
    answers = {"first": api.of_tuning(ask(budget=150)), "again": api.of_tuning(ask(budget=150))}
    headline, results = joined(answers)
    kept = api.simulate(
        api.policy("ucb1"), api.problem("bernoulli"), VALUES, horizon=120, runs=40, checkpoints=[60, 120], store=ledger
    )
    code, _ = api.call(folder, "store", "verify", "study.ledger")
    summed, _ = api.call(folder, "store", "export", "study.ledger", "--summary", "-o", "summary.csv")
    summary = api.numbers_in_csv(folder / "summary.csv")
    more = {"regrets": kept, "verified": code, "summed up": summed, "in the summary": len(summary)}
    return headline | more, [*results, summary]


@request("paper")
def reproduce_rows() -> api.Answer:
    return api.of_reproduction(api.reproduce("warm-up ucb1", runs=50, tunings=50))


# ---------------------------------------------------------------- command line

SETTING = "--policy ucb1:noise=0.5 --problem bernoulli --arms 4 --horizon 120 -q"
TUNE = f"tune {SETTING} --budget 120 --validate 60 -o tuned.json"

COMMANDS = {
    "tune": [TUNE],
    "tune more": [
        f"{TUNE} --range gamma=0:2 --seed 3 --no-common-random-numbers --regret realised --curve --robustness"
        " --no-shortcuts"
    ],
    "tune within": [f"tune {SETTING} --precision 20% --max-runs 900 --validate 60 -o out.json"],
    "curve": [f"curve {SETTING} --values 0,0.2,0.5,1 --runs 60 -o out.json --plot curve.svg"],
    "compare": [f"compare {SETTING} --policy ts:prior=1,1 --budget 80 --validate 60 -o out.json"],
    "linear": [
        "tune --policy lints --problem linear --arms 8 --dims 3 --prior 0,1 --horizon 60 --budget 60 --validate 40 "
        "--tuner notes:precision=0.1 -q -o out.json"
    ],
    "fit": [
        "fit binary.csv -q -o problem.toml --save out.json",
        "tune --policy ts --problem problem.toml --budget 60 --validate 40 -q -o tuned.json",
    ],
    "fit counts": [
        "fit counts.csv --campaign town --arm who --pulls shown --successes paid --skip-bad --model correlated "
        "--confidence 0.9 -q --save out.json"
    ],
    "backtest": ["backtest binary.csv --policy ucb1 --budget 80 --share 60% --seed 1 -q -o out.json"],
    "exact optimum": ["exact optimum --problem bernoulli --arms 2 --horizon 30 -o out.json"],
    "exact regret": [
        "exact regret --policy ts:prior=1,1 --problem bernoulli --arms 2 --horizon 20 --values 0.5,1 -o out.json"
    ],
    "exact bound": ["exact bound --problem bernoulli --arms 4 --horizon 60 --runs 40 -o out.json"],
    "exact gittins": ["exact gittins --successes 3 --failures 2 --left 40"],
    "deploy": [
        TUNE,
        "deploy tuned.json -o state.json --names a,b,c,d --seed 2 --pending ignore",
        "deployed select state.json",
        "deployed update state.json b 1",
        "deployed select state.json",
        "deployed add state.json e",
        "deployed retire state.json a",
        "deployed drop state.json b",
        "deployed show state.json",
    ],
    "report": [
        TUNE,
        "report tuned.json -o page.html --markdown page.md --figures figures",
        "export tuned.json --to river",
    ],
    "ledger": [
        f"{TUNE} --store study.ledger",
        "store show study.ledger --json",
        "store verify study.ledger",
        "report study.ledger -o page.html",
    ],
    "paper": ["paper --only warm-up --runs 30 --tunings 20 -q -o paper"],
    "look": ["list", "doctor --device cpu", "explain", "--version", "--help", "tune --help"],
    "refusals": [
        f"tune {SETTING} --no-such-option",
        f"tune {SETTING} --budget few",
        f"tune {SETTING} --budget 0",
        "tune --policy nobody --problem bernoulli --horizon 10",
        "tune --policy ucb1 --problem bernoulli",
        "nothing",
        "report missing.json -o page.html",
        "doctor --device tpu",
    ],
}
WORDS_KEPT = ("deployed select", "exact gittins")
"""Commands that print an answer of a word: it is kept."""


def run_commands(name: str, folder: Path) -> api.Answer:
    """Exit codes, which files there are, and the numbers of the JSON that was written."""
    write_decisions(folder, "binary")
    write_counts(folder)
    before = {path.name for path in folder.iterdir()}
    headline: dict[str, Any] = {"exit codes": []}
    results = []
    for line in COMMANDS[name]:
        code, output = api.call(folder, *line.split())
        headline["exit codes"].append(code)
        if line.startswith(WORDS_KEPT):
            headline.setdefault("answers", []).append(
                output.split()[0] if len(output.split()) == 1 else numbers(output)
            )
        if "--json" in line:
            results.append(json.loads(output))
    headline["files"] = sorted({path.name for path in folder.iterdir()} - before)
    results += [json.loads(path.read_text()) for path in sorted(folder.rglob("*.json"))]
    return headline, results


def numbers(text: str) -> list[float]:
    """The numbers in a sentence."""
    return [float(word.strip(",;:()")) for word in text.split() if api.is_number(word.strip(",;:()"))]


for _name in COMMANDS:
    request(f"command {_name}")(lambda folder, name=_name: run_commands(name, folder))
