"""The kernel cache: different code has different kernels, and a second process loads them."""

from __future__ import annotations

import math
import types
from collections import namedtuple
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.compiler import Flags

import banditune as bt
from banditune.core.streams import uniform
from banditune.simulation.bind import bind_function
from banditune.simulation.compilation import compile_kernel
from banditune.simulation.numba_patches import defer_helper_compilation, speed_up_compiler

SCRIPT = """
import sys
import banditune as bt

@bt.kernel.scalar
def helper(step):
    return {body}

@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return helper(step) % 2

policy = bt.define_policy("scripted", choose)
regret = bt.simulate(policy, bt.Mixture([(1.0, 0.0)]), horizon=10, runs=3)
from banditune.simulation.kernel_selection import select_kernel
from banditune.simulation.spec import SimulationSpec
kernel = select_kernel(SimulationSpec(policy, bt.Mixture([(1.0, 0.0)]), 10))[0]
print(regret[0, 0], sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def test_an_edited_helper_misses_the_cache(run_python, tmp_path):
    def run(body):
        process = run_python(SCRIPT.format(body=body), BANDITUNE_CACHE=str(tmp_path / "cache"))
        assert process.returncode == 0, process.stderr
        return process.stdout.split()

    assert run("step") == ["5.0", "0", "1"]
    assert run("step") == ["5.0", "1", "0"]
    assert run("1 + step * 0") == ["10.0", "0", "1"]
    assert run("step") == ["5.0", "1", "0"]


@pytest.mark.slow
def test_versions_of_numba_have_separate_kernels(run_python, tmp_path):
    def run(version=""):
        other = f"import numba; numba.__version__ = {version!r}\n" if version else ""
        process = run_python(other + SCRIPT.format(body="step"), BANDITUNE_CACHE=str(tmp_path / "cache"))
        assert process.returncode == 0, process.stderr
        return process.stdout.split()

    assert run() == ["5.0", "0", "1"]
    assert run("0.0.1") == ["5.0", "0", "1"]
    assert run() == ["5.0", "1", "0"]


@pytest.mark.parametrize("folder", ["/proc/nowhere", pytest.param("/dev/null/cache", marks=pytest.mark.slow)])
def test_a_cache_folder_that_cannot_be_written_is_no_error(run_python, folder):
    process = run_python(SCRIPT.format(body="step"), BANDITUNE_CACHE=folder)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split()[0] == "5.0"


def test_a_cache_on_a_full_disk_is_no_error(run_python, tmp_path):
    """No file may exceed 1 kB, so the kernel cannot be saved."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n" + SCRIPT.format(body="step")
    process = run_python(
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + code, BANDITUNE_CACHE=str(tmp_path / "c")
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.split()[0] == "5.0"


def compute_digest(function, **slots):
    return bind_function(function, slots)[1]


def make_constant_choice(arm):
    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        return arm

    return choose


def test_the_digest_contains_closures():
    assert compute_digest(make_constant_choice(0)) != compute_digest(make_constant_choice(1))
    first, second = make_constant_choice(0), make_constant_choice(0)
    assert first is not second
    assert compute_digest(first) == compute_digest(second)


def test_a_module_imported_in_a_function_can_be_used():
    import banditune as inner

    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        return inner.kernel.draw_arm(state, stream)

    regret = bt.simulate(bt.define_policy("inner", choose), bt.Mixture([(1.0, 0.0)]), horizon=100, runs=50)
    assert 40 < regret.mean() < 60


def test_two_policies_from_one_factory_do_not_share_a_kernel():
    regrets = [
        bt.simulate(bt.define_policy("fixed", make_constant_choice(arm)), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=1)[
            0, 0
        ]
        for arm in (0, 1)
    ]
    assert regrets == [0.0, 10.0]


def test_the_digest_contains_defaults_constants_and_helpers():
    @bt.kernel.scalar
    def first(x, y=1):
        return x + y

    @bt.kernel.scalar
    def second(x, y=2):
        return x + y

    def third(x, y=1):
        return x - y

    assert len({compute_digest(f) for f in (first, second, third)}) == 3
    first_scope, second_scope = ({"math": math, "f": f} for f in (first, second))
    code = (lambda x: f(x)).__code__  # noqa: F821
    assert compute_digest(types.FunctionType(code, first_scope)) != compute_digest(
        types.FunctionType(code, second_scope)
    )


def test_the_digest_contains_the_field_order_of_records():
    Ab, Ba = (namedtuple("State", fields) for fields in ("ab", "ba"))
    code = (lambda x: State(x, x)).__code__  # noqa: F821
    assert compute_digest(types.FunctionType(code, {"State": Ab})) != compute_digest(
        types.FunctionType(code, {"State": Ba})
    )


def test_the_digest_contains_the_content_of_array_defaults():
    def make_function(default):
        def function(x, table=default):
            return x

        return function

    tables = [np.zeros(5000), np.zeros(5000)]
    tables[1][2500] = 1.0
    assert compute_digest(make_function(tables[0])) != compute_digest(make_function(tables[1]))
    assert compute_digest(make_function(make_constant_choice(0))) != compute_digest(
        make_function(make_constant_choice(1))
    )
    first, second = (make_function(make_constant_choice(1)) for _ in range(2))
    assert compute_digest(first) == compute_digest(second)


def test_redefining_a_helper_in_a_session_recompiles():
    scope = {"bt": bt, "__name__": "session"}
    exec(
        "@bt.kernel.scalar\ndef helper(step):\n    return 0\n\n"
        "@bt.kernel.scalar\ndef choose(state, setting, step, params, stream):\n    return helper(step)",
        scope,
    )
    policy = bt.define_policy("session", scope["choose"])
    problem = bt.Mixture([(1.0, 0.0)])
    assert bt.simulate(policy, problem, horizon=10, runs=1)[0, 0] == 0
    exec("@bt.kernel.scalar\ndef helper(step):\n    return 1", scope)
    assert bt.simulate(policy, problem, horizon=10, runs=1)[0, 0] == 10


def compute_source_digests(*sources):
    digests = []
    for source in sources:
        scope: dict = {"__name__": "scripted"}
        exec(source, scope)
        digests.append(compute_digest(scope["f"]))
    return digests


def test_the_digest_ignores_comments_and_line_numbers():
    first, second = compute_source_digests(
        "def f(x):\n    return x + 1\n", "\n\n# why\ndef f(x):  # how\n    return x + 1\n"
    )
    assert first == second


def test_the_digest_ignores_docstrings_but_no_other_strings():
    first, second = compute_source_digests(
        "def f(x):\n    'Add one.'\n    return x + 1\n", "def f(x):\n    'Add 1.'\n    return x + 1\n"
    )
    assert first == second
    for function in (
        "def f(x):\n    return {!r}\n",
        "f = lambda x: {!r}\n",
        "def f(x):\n    'One.'\n    return {!r}\n",
    ):
        first, second = compute_source_digests(function.format("one"), function.format("two"))
        assert first != second


def test_the_digest_contains_the_content_of_arrays():
    def make_reader(table):
        return lambda index: table[index]

    assert compute_digest(make_reader(np.arange(3.0))) != compute_digest(make_reader(np.arange(3.0) + 1))
    assert compile_kernel(make_reader(np.arange(3.0)))(2) == 2.0


def test_a_dict_in_a_closure_is_refused():
    box = {"a": 1}

    def read_dict(x):
        return box["a"] + x

    with pytest.raises(bt.InvalidRequest, match=r"'box', a dict; pass it as an option"):
        bind_function(read_dict)


def test_recursion_and_missing_names_are_refused():
    @bt.kernel.scalar
    def recurse(x):
        return recurse(x - 1)

    with pytest.raises(bt.InvalidRequest, match="must not recurse"):
        bind_function(recurse)

    def misspell(stream):
        return bt.unifrom(stream)

    with pytest.raises(bt.InvalidRequest, match=r"`bt.unifrom`, which does not exist"):
        bind_function(misspell)


def test_the_name_of_a_kernel_ends_with_its_digest():
    copy, expected = bind_function(make_constant_choice(0))
    assert copy.__qualname__.endswith(expected)
    assert len(expected) == 20


def test_the_compilation_of_helpers_is_deferred():
    """With a version of Numba that is built differently it would be False, and compiling would take twice as long."""
    assert defer_helper_compilation()
    assert numba.njit(lambda x: x + 1.0)(2.0) == 3.0


def test_slow_parts_of_the_compiler_are_replaced():
    """With a version of Numba that is built differently it would be False, and compiling would take a fifth longer."""
    assert speed_up_compiler()
    flags = Flags()
    other = Flags()
    other.boundscheck = flags.boundscheck
    assert flags == other, "a default that is set is no difference"
    assert hash(flags) == hash(other)
    other.boundscheck = not flags.boundscheck
    assert flags != other
    assert flags != "flags"


def test_kernels_share_their_compiled_helpers():
    first, second = (
        compile_kernel(function)
        for function in (lambda stream: uniform(stream) + 1.0, lambda stream: uniform(stream) + 2.0)
    )
    assert first is not second
    assert first.py_func.__globals__["uniform"] is second.py_func.__globals__["uniform"]


def make_pair_kernel(factor):
    """Make a kernel with a tuple class of its own, which equals that of other such kernels in name and fields."""

    class Pair(NamedTuple):
        low: float
        high: float

    @bt.kernel.scalar
    def make_pair(x):
        return Pair(x, x + 1.0)

    @bt.kernel.scalar
    def choose_pair(x, pair):
        return Pair(x * factor, x) if x > 1.0 else pair

    return compile_kernel(lambda x: choose_pair(x, make_pair(x)).low)


def test_a_tuple_class_may_be_defined_again_with_the_same_fields():
    first, second = make_pair_kernel(2.0), make_pair_kernel(3.0)
    assert [first(1.0), first(5.0), second(1.0), second(5.0)] == [1.0, 10.0, 1.0, 15.0]


@pytest.mark.slow
def test_the_deferred_compilation_changes_no_number(run_python, tmp_path):
    code = """
import sys
import banditune as bt
from banditune.simulation import compilation
if sys.argv[1] == "plain":
    compilation.defer_helper_compilation = lambda: False
print(bt.simulate(bt.EpsilonGreedy(), bt.Bernoulli(arms=3), [0.3], horizon=60, runs=5).tolist())
"""
    deferred, plain = (run_python(code, how, BANDITUNE_CACHE=str(tmp_path / how)) for how in ("lean", "plain"))
    assert deferred.returncode == plain.returncode == 0, plain.stderr
    assert deferred.stdout == plain.stdout


def test_a_policy_may_print_from_its_compiled_code(run_python, tmp_path):
    code = """
import banditune as bt

@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    print("at", step, params[0])
    return 0

policy = bt.define_policy("talks", choose, parameters=bt.Parameter("x", 0, 1, textbook=0.5))
bt.simulate(policy, bt.Bernoulli(arms=2), horizon=2, runs=1)
"""
    process = run_python(code, BANDITUNE_CACHE=str(tmp_path / "cache"))
    assert process.returncode == 0, process.stderr
    assert process.stdout.split("\n")[:2] == ["at 0 0.5", "at 1 0.5"]
