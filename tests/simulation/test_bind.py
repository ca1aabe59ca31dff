"""The kernel cache: two policies never share a kernel, a second process hits, an edit misses."""

from __future__ import annotations

import math
import types
from collections import namedtuple

import numba
import numpy as np
import pytest

import banditune as bt
from banditune.simulation.bind import bind_function
from banditune.simulation.compilation import compile_kernel
from banditune.simulation.numba_patches import defer_helper_compilation

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


def test_a_policy_in_a_script_caches_and_an_edited_helper_misses(run_python, tmp_path):
    def run(body):
        process = run_python(SCRIPT.format(body=body), BANDITUNE_CACHE=str(tmp_path / "cache"))
        assert process.returncode == 0, process.stderr
        return process.stdout.split()

    assert run("step") == ["5.0", "0", "1"]
    assert run("step") == ["5.0", "1", "0"]
    assert run("step * 0") == ["0.0", "0", "1"]
    assert run("1 + step * 0") == ["10.0", "0", "1"]
    assert run("step") == ["5.0", "1", "0"]


@pytest.mark.slow
def test_versions_of_numba_keep_kernels_apart(run_python, tmp_path):
    def run(version=""):
        other = f"import numba; numba.__version__ = {version!r}\n" if version else ""
        process = run_python(other + SCRIPT.format(body="step"), BANDITUNE_CACHE=str(tmp_path / "cache"))
        assert process.returncode == 0, process.stderr
        return process.stdout.split()

    assert run() == ["5.0", "0", "1"]
    assert run("0.0.1") == ["5.0", "0", "1"]
    assert run() == ["5.0", "1", "0"]


@pytest.mark.parametrize("folder", ["/proc/nowhere", pytest.param("/dev/null/cache", marks=pytest.mark.slow)])
def test_a_cache_folder_that_cannot_be_written_only_costs_time(run_python, folder):
    process = run_python(SCRIPT.format(body="step"), BANDITUNE_CACHE=folder)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split()[0] == "5.0"


def test_a_full_disk_only_costs_time(run_python, tmp_path):
    """No file may grow beyond 1 kB: the kernel cannot be saved."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n" + SCRIPT.format(body="step")
    process = run_python(
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + code, BANDITUNE_CACHE=str(tmp_path / "c")
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.split()[0] == "5.0"


def digest(function, **slots):
    return bind_function(function, slots)[1]


def always(arm):
    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        return arm

    return choose


def test_closures_count():
    assert digest(always(0)) != digest(always(1))
    first, second = always(0), always(0)
    assert first is not second
    assert digest(first) == digest(second)


def test_a_module_imported_in_a_function_can_be_used():
    import banditune as inner

    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        return inner.kernel.draw_arm(state, stream)

    regret = bt.simulate(bt.define_policy("inner", choose), bt.Mixture([(1.0, 0.0)]), horizon=100, runs=50)
    assert 40 < regret.mean() < 60


def test_two_policies_from_one_factory_do_not_share_a_kernel():
    regrets = [
        bt.simulate(bt.define_policy("fixed", always(arm)), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=1)[0, 0]
        for arm in (0, 1)
    ]
    assert regrets == [0.0, 10.0]


def test_defaults_constants_and_helpers_count():
    @bt.kernel.scalar
    def first(x, y=1):
        return x + y

    @bt.kernel.scalar
    def second(x, y=2):
        return x + y

    def third(x, y=1):
        return x - y

    assert len({digest(f) for f in (first, second, third)}) == 3
    one, two = ({"math": math, "f": f} for f in (first, second))
    code = (lambda x: f(x)).__code__  # noqa: F821
    assert digest(types.FunctionType(code, one)) != digest(types.FunctionType(code, two))


def test_the_field_order_of_a_record_counts():
    Ab, Ba = (namedtuple("State", fields) for fields in ("ab", "ba"))
    code = (lambda x: State(x, x)).__code__  # noqa: F821
    assert digest(types.FunctionType(code, {"State": Ab})) != digest(types.FunctionType(code, {"State": Ba}))


def test_array_defaults_count_by_content_and_function_defaults_by_code():
    def with_default(default):
        def taker(x, table=default):
            return x

        return taker

    tables = [np.zeros(5000), np.zeros(5000)]
    tables[1][2500] = 1.0
    assert digest(with_default(tables[0])) != digest(with_default(tables[1]))
    assert digest(with_default(always(0))) != digest(with_default(always(1)))
    first, second = (with_default(always(1)) for _ in range(2))
    assert digest(first) == digest(second)


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


def test_comments_and_line_numbers_do_not_count():
    sources = ("def f(x):\n    return x + 1\n", "\n\n# why\ndef f(x):  # how\n    return x + 1\n")
    found = []
    for source in sources:
        scope: dict = {"__name__": "scripted"}
        exec(source, scope)
        found.append(digest(scope["f"]))
    assert found[0] == found[1]


def test_arrays_count_by_content():
    def at(table):
        return lambda place: table[place]

    assert digest(at(np.arange(3.0))) != digest(at(np.arange(3.0) + 1))
    assert compile_kernel(at(np.arange(3.0)))(2) == 2.0


def test_what_cannot_be_digested_is_refused():
    box = {"a": 1}

    def uses_a_dict(x):
        return box["a"] + x

    with pytest.raises(bt.InvalidRequest, match=r"'box', a dict; pass it as an option"):
        bind_function(uses_a_dict)


def test_recursion_and_missing_names_are_refused():
    @bt.kernel.scalar
    def loops(x):
        return loops(x - 1)

    with pytest.raises(bt.InvalidRequest, match="must not recurse"):
        bind_function(loops)

    def typo(stream):
        return bt.unifrom(stream)

    with pytest.raises(bt.InvalidRequest, match=r"`bt.unifrom`, which does not exist"):
        bind_function(typo)


def test_every_cached_kernel_carries_its_digest_in_its_name():
    copy, told = bind_function(always(0))
    assert copy.__qualname__.endswith(told)
    assert len(told) == 20


def test_helpers_are_left_to_their_kernel_and_other_compiled_code_is_not_touched():
    """A version of Numba that is built differently would say False: compiling would take twice as long."""
    assert defer_helper_compilation()
    assert numba.njit(lambda x: x + 1.0)(2.0) == 3.0


@pytest.mark.slow
def test_kernels_compiled_as_numba_would_give_the_same_numbers(run_python, tmp_path):
    code = """
import sys
import banditune as bt
from banditune.simulation import compilation
if sys.argv[1] == "plain":
    compilation.defer_helper_compilation = lambda: False
print(bt.simulate(bt.EpsilonGreedy(), bt.Bernoulli(arms=3), [0.3], horizon=60, runs=5).tolist())
"""
    lean, plain = (run_python(code, how, BANDITUNE_CACHE=str(tmp_path / how)) for how in ("lean", "plain"))
    assert lean.returncode == plain.returncode == 0, plain.stderr
    assert lean.stdout == plain.stdout


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
