"""The key of a regret contains all that made it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.simulation import spec
from banditune.storage import store_keys
from banditune.study.requests import build_spec
from helpers.settings import group_settings
from helpers.stores import PROBLEM, SHORT_RUN, list_differences, serialize_key_of


def test_the_key_is_the_same_in_every_process(run_python):
    code = """
import banditune as bt
from banditune.study.requests import build_spec
from banditune.storage.store_keys import build_key, serialize_key
pairs = (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)), (bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2))
for policy, problem in pairs:
    print(serialize_key(build_key(build_spec(policy, problem, horizon=100))))
"""
    expected = [serialize_key_of(), serialize_key_of(bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2))]
    for seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=seed).stdout.split("\n")[:2] == expected


@pytest.mark.parametrize(
    "other",
    [
        {"policy": bt.UCB1(noise=1)},
        {"policy": bt.Thompson(prior=(1, 1))},
        {"problem": bt.Bernoulli(arms=4)},
        {"problem": bt.Bernoulli(arms=3, prior=(1, 2))},
        {"horizon": 101},
        {"seed": 1},
        {"regret": "realised"},
        {"common_random_numbers": False},
        {"checkpoints": [50, 100]},
        {"shortcuts": False},
    ],
)
def test_another_request_has_another_key(other):
    assert serialize_key_of(**other) != serialize_key_of()


def test_on_a_gpu_the_key_contains_the_warp_version_and_the_precision():
    def build_gpu_key(policy, problem, dtype=None):
        spec = replace(build_spec(policy, problem, horizon=100), device="gpu")
        key = store_keys.build_key(spec, dtype)
        return (
            key["device"],
            key["shortcut"],
            key["dtype"],
            key["code"],
        )

    linear = build_gpu_key(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2))
    assert linear[:3] == ("gpu", "warp version", "float64")
    assert (
        linear[3]["choose"]
        != json.loads(serialize_key_of(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2)))["code"]["choose"]
    )
    single, double = (build_gpu_key(bt.Thompson(prior=(1, 1)), PROBLEM, dtype) for dtype in (None, "float64"))
    assert single[:3] == ("gpu", "thinning", "float32")
    assert double[:3] == ("gpu", "thinning", "float64")
    assert single[3]["advance"] != double[3]["advance"]
    spec = replace(build_spec(bt.Thompson(prior=(1, 1)), PROBLEM, horizon=100), device="gpu")
    assert [store_keys.find_row_dtype(spec, np.array([value])) for value in (0.0, 1e-4, 0.5)] == [
        None,
        "float64",
        None,
    ]


def test_the_key_contains_a_digest_of_large_options():
    features = np.random.default_rng(0).normal(size=(300, 3))
    key = serialize_key_of(bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(features=features))
    assert len(key) < 2000
    assert "300 x 3 " in key
    features[299, 2] += 1e-9
    assert "problem" in list_differences(
        key, serialize_key_of(bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(features=features))
    )


def test_a_shortcut_that_does_not_apply_does_not_change_the_key():
    assert serialize_key_of(bt.EpsilonGreedy(), shortcuts=False) == serialize_key_of(bt.EpsilonGreedy())


SOURCE = """
import numpy as np
import banditune as bt

SCALE = 1.0
TABLE = np.array([0.2, 0.5, 0.9])


@bt.kernel.scalar
def helper(state):
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return helper(state) if step > 3 else step % setting.arms


@bt.kernel.scalar
def reward(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm])


def spread(rng, size):
    return rng.random((size, 3))


def sample(size, rng, low=0.0):
    kind = "a" if size in {1, 2} else "b"
    return SCALE * TABLE * spread(rng, size) + low


policy = bt.define_policy("mine", choose)
problem = bt.define_problem("mine", sample, reward, arms=3)
"""


def load_key(text, folder):
    """The key of the policy and the problem in a source text."""
    path = folder / f"own_{abs(hash(text))}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return serialize_key_of(module.policy, module.problem)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("step > 3", "step > 4", {"code"}),
        ("return bt.kernel.argmax_mean(state)", "return bt.kernel.argmax_mean(state) * 1", {"code"}),
        ("instance.means[arm])", "1.0 * instance.means[arm])", {"code"}),
        ("rng.random((size, 3))", "0.0 + rng.random((size, 3))", {"sampling_code"}),
        ('"a" if', '"c" if', {"sampling_code"}),
        ("SCALE = 1.0", "SCALE = 0.5", {"sampling_code", "instances"}),
        ("0.2, 0.5", "0.1, 0.5", {"sampling_code", "instances"}),
        ("low=0.0", "low=0.01", {"sampling_code", "instances"}),
        ("# nothing", "# a comment", set()),
        ("\n\n\ndef sample", "\n\n\n# a comment\ndef sample", set()),
    ],
)
def test_edited_code_has_another_key(before, after, changed, tmp_path):
    source = SOURCE + "# nothing\n"
    assert before in source
    assert list_differences(load_key(source, tmp_path), load_key(source.replace(before, after), tmp_path)) == changed


def test_the_random_streams_are_those_of_version_1():
    """If this fails because draws were changed on purpose, raise STREAM_VERSION: old stores would return old numbers."""
    assert spec.STREAM_VERSION == 1
    regrets = bt.simulate(
        bt.UCB1(noise=0.5),
        PROBLEM,
        0.3,
        **group_settings(runs=4, seed=5, first_instance=254, shortcuts=False, regret="realised", **SHORT_RUN),
    )
    assert regrets.tolist() == [EXPECTED["ucb1"]]
    for name, policy, problem in (
        ("ts", bt.Thompson(prior=(1, 1)), bt.BetaRewards(arms=3)),
        ("gaussian-ts", bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3)),
        ("lints", bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=4, dims=2)),
    ):
        regrets = bt.simulate(
            policy, problem, 0.5, **group_settings(runs=4, seed=5, first_instance=254, shortcuts=False, **SHORT_RUN)
        )
        assert regrets[0] == pytest.approx(EXPECTED[name], rel=1e-9)


EXPECTED = {
    "ucb1": [2.0, 1.0, 2.0, 5.0],
    "ts": [0.0, 2.2566196687956372, 2.3637648491638323, 3.2614373884465238],
    "gaussian-ts": [28.06252872872615, 4.928348229641875, 4.018052499293468, 4.584072221605365],
    "lints": [0.0, 3.816717406910502, 1.5650152655614327, 3.664964513359629],
}
