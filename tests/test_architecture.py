"""The architecture: imports point one way, modules are small, and registered things are public."""

from __future__ import annotations

import ast
import inspect
import tomllib

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import describe
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.tuner import Tuner
from banditune.problems import problem_registry
from banditune.registry import collect_policies
from banditune.results.result_record import RECORD_TYPES
from banditune.tuners import tuner_registry
from helpers.paths import ROOT

SOURCE = ROOT / "src" / "banditune"

LAYERS = (
    {"core"},
    {"results", "problems", "simulation.estimators"},
    {"simulation.shortcuts"},
    {"simulation", "simulation.gpu", "simulation.executors", "policies"},
    {"tuners", "exact", "storage", "logs"},
    {"registry"},
    {"study"},
    {"adapters", "deployment", "paper", "reports"},
    {"testing"},
    {"cli"},
    {"__main__"},
)
"""Packages from the lowest to the highest. Each may import itself and lower layers; see `MAY_ALSO` for the others."""

MAY_ALSO = {
    ("policies", "simulation.gpu"): "a policy names its GPU version",
    ("simulation", "simulation.gpu"): "dispatch chooses between CPU and GPU",
    ("simulation", "simulation.executors"): "without an executor, threads are started",
    ("simulation.gpu", "simulation"): "the GPU scheduler builds on specs and kernels",
    ("simulation.executors", "simulation"): "executors run simulators",
    ("results", ""): "records are drawn, reported and deployed through the public API, which loads late",
}
"""Imports within a layer, and the one that points up, with the reason."""

FRONTS = {"", "errors", "executors", "kernel"}
"""Packages that contain only public names of other packages."""

# Arguments of registered functions that cannot be called without any.
NEEDED = {"mixture": [(0.5, 0.4)], "campaigns": [[(1, 2), (3, 4)]]}


def name_module(path):
    """The name of the module in a file, without the name of the package."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MODULES = {name_module(path): path for path in SOURCE.rglob("*.py")}


def list_imports(path):
    """The modules of this package that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "banditune":
            package = node.module.partition(".")[2]
            for alias in node.names:
                full_name = f"{package}.{alias.name}".lstrip(".")
                yield full_name if full_name in MODULES else package
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == "banditune")


IMPORTS = {name: set(list_imports(path)) for name, path in MODULES.items()}


def find_package(module):
    """The entry of `LAYERS` to which a module belongs."""
    known = {package for layer in LAYERS for package in layer}
    words = module.split(".")
    return next((".".join(words[:size]) for size in (2, 1) if ".".join(words[:size]) in known), words[0])


def test_imports_point_one_way():
    level = {package: number for number, layer in enumerate(LAYERS) for package in layer}
    seen = set()
    for module, others in IMPORTS.items():
        home = find_package(module)
        for other in map(find_package, others):
            if home in FRONTS or other == home:
                continue
            seen.add((home, other))
            allowed = level.get(other, 99) < level[home] or (home, other) in MAY_ALSO
            assert allowed, f"{module} imports {other or 'the public API'}"
    assert ("study", "simulation") in seen
    assert set(MAY_ALSO) <= seen, "an exception that is not needed"


def test_no_module_imports_itself_through_others():
    def reach(start):
        reached, todo = set(), [start]
        while todo:
            for other in IMPORTS.get(todo.pop(), ()):
                if other not in reached:
                    reached.add(other)
                    todo.append(other)
        return reached

    assert not [module for module in MODULES if module in reach(module)]


def test_no_two_modules_have_one_name():
    last = [module.rpartition(".")[2] for module, path in MODULES.items() if path.name != "__init__.py"]
    assert len(last) > 200
    assert sorted(set(last)) == sorted(last)


def test_importing_the_package_imports_nothing_heavy(run_python):
    code = """
import sys
import banditune
heavy = {"numba", "scipy", "matplotlib", "numpy", "rich", "typer", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr


def test_the_verbs_work_without_scipy_matplotlib_pandas_rich_and_typer(run_python):
    code = """
import sys
for name in ("scipy", "matplotlib", "pandas", "rich", "typer"):
    sys.modules[name] = None
import banditune as bt
search = bt.Search(validate=20)
result = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, budget=20, include=("curve",), search=search)
print(result)
try:
    result.to_pandas()
except bt.errors.MissingDependency as error:
    print(error)
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert "pip install" in process.stdout


def test_every_record_that_users_get_has_a_public_name():
    assert {name: getattr(bt.results, name) for name in RECORD_TYPES} == RECORD_TYPES


@pytest.mark.parametrize("name", [name for name in bt.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring(name):
    public_object = getattr(bt, name)
    assert inspect.getdoc(public_object)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError):
        bt.nothing  # noqa: B018
    assert "tune" in dir(bt)


@pytest.mark.parametrize(
    ("registry", "base_class"),
    [(collect_policies(), Policy), (problem_registry.PROBLEMS, Problem), (tuner_registry.TUNERS, Tuner)],
)
def test_everything_registered_can_be_made_and_described(registry, base_class, tmp_path):
    np.save(tmp_path / "rewards.npy", np.eye(3))
    arguments = NEEDED | {"reward-table": tmp_path / "rewards.npy"}
    assert len(registry) > 4
    for name, make in registry.items():
        record = make(arguments[name]) if name in arguments else make()
        assert isinstance(record, base_class)
        assert record.name == name or name == "warm-up"
        assert describe(record)["name"] == record.name
        assert inspect.getdoc(make).splitlines()[0].endswith((".", ":"))
        assert hash(record) is not None
        with pytest.raises(AttributeError):
            record.name = "other"


WITHOUT_PARAMETERS = {"greedy", "lin-greedy", "glm-greedy", "gittins", "optimal", "optimal-mixture"}


WITH_FOUR = {"finite-horizon-index", "gaussian-finite-horizon-index"}
"""Policies with four parameters."""


@pytest.mark.parametrize("name", collect_policies())
def test_every_parameter_has_bounds_around_its_textbook_value(name):
    parameters = collect_policies()[name]().parameters
    assert len(parameters) == (0 if name in WITHOUT_PARAMETERS else 4 if name in WITH_FOUR else 1)
    for arms, horizon in ((2, 10), (10, 10_000), (100, 1000)):
        for parameter in parameters:
            resolved = parameter.resolve(arms, horizon)
            assert resolved.low <= resolved.textbook <= resolved.high
            assert resolved.scale_from_unit(0.0) == resolved.low
            assert resolved.scale_from_unit(1.0) == pytest.approx(resolved.high)


def list_clock_names(code):
    """What code uses of `time`, under any name, and of `datetime`."""
    nodes = list(ast.walk(ast.parse(code)))
    names = {"time"}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "time"}
            yield from (alias.name for alias in node.names if alias.name == "datetime")
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
            yield from (alias.name if node.module == "time" else "datetime" for alias in node.names)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            yield node.attr


def test_no_wall_clock_is_read():
    """The wall clock can be set back during a study. `monotonic` and `perf_counter` cannot."""
    assert len(MODULES) > 200
    for path in MODULES.values():
        assert set(list_clock_names(path.read_text())) <= {"monotonic", "perf_counter", "process_time", "sleep"}, path


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import time; time.time()", ["time"]),
        ("import time as clock; clock.time_ns()", ["time_ns"]),
        ("from time import time as now, sleep", ["time", "sleep"]),
        ("from datetime import date", ["datetime"]),
        ("import datetime as dates", ["datetime"]),
    ],
)
def test_a_wall_clock_is_detected_under_any_name(code, names):
    assert list(list_clock_names(code)) == names


def test_the_lowest_allowed_versions_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [
        *project["dependencies"],
        *(each for some in project["optional-dependencies"].values() for each in some),
    ]
    bounds = dict(each.partition(";")[0].split(">=") for each in requirements if not each.startswith("banditune["))
    lines = (ROOT / "tests" / "lowest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert len(bounds) > 10
    for name, bound in bounds.items():
        name = name.partition("[")[0]
        assert parse_version(tested.get(name, "0")) == parse_version(bound), name


def parse_version(version):
    """A version as three numbers."""
    parts = [int(part) for part in version.split(".")]
    return [*parts, 0, 0][:3]


KERNEL_MARKS = {"scalar", "noinline", "noinline_on_gpu", "optimize_separately", "bit_packed", "njit", "jit"}
MAX_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS, MAX_PARAMETERS_OF_VERBS = 400, 60, 8, 10


def count_code_lines(node, text):
    """Lines of a function or a module without docstrings and blank lines."""
    skipped = set()
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(body, list):
            for statement in body:
                if (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                ):
                    skipped |= set(range(statement.lineno, statement.end_lineno + 1))
    lines = text.splitlines()
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", len(lines))
    return sum(1 for number in range(first, last + 1) if number not in skipped and lines[number - 1].strip())


def list_functions(path):
    """Functions of a module that are no kernels, with their numbers of parameters and decorators."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            marks = {getattr(getattr(mark, "func", mark), "id", "") for mark in node.decorator_list}
            marks |= {getattr(getattr(mark, "func", mark), "attr", "") for mark in node.decorator_list}
            if not marks & KERNEL_MARKS:
                names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                yield node, len([argument for argument in names if argument.arg not in ("self", "cls")]), marks


def test_modules_have_at_most_400_lines():
    sizes = {name: count_code_lines(ast.parse(path.read_text()), path.read_text()) for name, path in MODULES.items()}
    long = {name: size for name, size in sizes.items() if size > MAX_LINES}
    assert not long


def test_functions_are_short_and_take_few_parameters():
    verbs = {
        "backtest",
        "compare",
        "curve",
        "deploy",
        "read_logs",
        "regret_over_time",
        "robustness",
        "simulate",
        "tune",
    }
    seen = 0
    for name, path in MODULES.items():
        text = path.read_text()
        for node, parameters, marks in list_functions(path):
            seen += 1
            size = count_code_lines(node, text)
            assert size <= MAX_FUNCTION_LINES, f"{name}.{node.name}: {size} lines"
            # The options of a command are its interface: Typer reads them from the signature.
            if "command" in marks or (name, node.name) in MANY_PARAMETERS:
                continue
            limit = MAX_PARAMETERS_OF_VERBS if node.name in verbs else MAX_PARAMETERS
            assert parameters <= limit, f"{name}.{node.name}: {parameters} parameters"
    assert seen > 1500


COMPILED = (
    ("deployment.step_kernel", "run_agent_step"),
    ("exact.coupled_bound", "minimise_slack_sums"),
    ("exact.gittins", "fill_index_triangle"),
    ("exact.one_arm_bound", "fill_stopping_values"),
    ("exact.one_arm_bound_gaussian", "fill_stopping_levels"),
    ("exact.policy_transitions", "advance_states"),
    ("simulation.gpu.cuda_kernels", "simulate_by_threads"),
    ("simulation.gpu.cuda_kernels", "simulate_by_warps"),
    ("simulation.loop", "simulate_block"),
    ("simulation.mean_test", "draw_rewards"),
)
MANY_PARAMETERS = {
    **dict.fromkeys(COMPILED, "a kernel: compiled code takes arrays and numbers, no records"),
    ("cli.runner", "run_and_print"): "one parameter for each output of a result",
}
"""Functions beyond a limit, with the reason."""


def test_everything_that_is_registered_is_public():
    for registry, namespace in (
        (collect_policies(), bt.policies),
        (problem_registry.PROBLEMS, bt.problems),
        (tuner_registry.TUNERS, bt.tuners),
    ):
        assert len(registry) > 4
        for name, make in registry.items():
            assert make.__name__ in dir(namespace), name
