"""States of deployed policies: files that are whole, and hostile files that are refused."""

from __future__ import annotations

import ast
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditune as bt
from banditune.core.atomic_files import write_atomically
from banditune.deployment.deployment_state import OLD_FIELD_NAMES, DeploymentState, parse_state
from helpers.paths import ROOT

MANY_EXAMPLES = settings(max_examples=400, deadline=None)


def make_state(policy=None, **settings):
    """A state with some history, as JSON."""
    deployed = bt.deploy(
        policy or bt.Thompson(prior=(1, 1)), 0.3, **({"horizon": 100, "names": ["a", "b", 3]} | settings)
    )
    for turn in range(12):
        deployed.update(deployed.select_arm(), float(turn % 3 == 0))
    deployed.select_arms(2)
    deployed.retire_arm("b")
    return json.loads(deployed.to_json())


VALID = make_state()

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.just("__import__('os')"),
    st.sampled_from(
        [0, -1, 1, 2**31, 2**32, 2**53 + 1, 1e308, -1e308, 0.5, "ucb1", "ts", "gittins", "optimal", "mean"]
    ),
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
)


def assert_works_or_is_refused(text):
    """A text is refused with a short message, or gives a policy that works. Return whether it works."""
    try:
        deployed = bt.DeployedPolicy.from_json(text)
    except bt.InvalidRequest as error:
        assert len(str(error)) < 2000
        return False
    try:
        arm = deployed.select_arm()
    except bt.SimulationError:
        return True  # a valid error, for example of a mode that is not found
    assert arm in deployed.arms
    deployed.update(arm, 1.0)
    assert math.isfinite(sum(arm.total for arm in deployed.state.arms))
    assert bt.DeployedPolicy.from_json(deployed.to_json()).state == deployed.state
    return True


def iterate_paths(tree, path=()):
    """Every path in a JSON value."""
    yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from iterate_paths(value, (*path, key))


def replace_value(tree, path, value):
    """A JSON value with another value at a path, or without the path where the value is `...`."""
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    if len(path) == 1 and value is ...:
        del copy[path[0]]
    elif len(path) == 1:
        copy[path[0]] = value
    else:
        copy[path[0]] = replace_value(tree[path[0]], path[1:], value)
    return copy


@MANY_EXAMPLES
@given(
    st.lists(
        st.tuples(st.sampled_from(list(iterate_paths(VALID))[1:]), json_values | st.just(...)), min_size=1, max_size=3
    )
)
def test_a_changed_state_is_refused_or_works(changes):
    state = VALID
    for path, value in changes:
        try:
            state = replace_value(state, path, value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change removed the path
    assert_works_or_is_refused(json.dumps(state))


@MANY_EXAMPLES
@given(st.text(max_size=200) | json_values.map(json.dumps))
def test_other_texts_are_refused(text):
    with pytest.raises(bt.InvalidRequest):
        parse_state(text)


@MANY_EXAMPLES
@given(st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 4))
def test_damaged_bytes_are_refused_or_work(tmp_path_factory, position, inserted, deleted):
    content = json.dumps(VALID).encode()
    position %= len(content)
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(content[:position] + inserted + content[position + deleted :])
    try:
        loaded = bt.DeployedPolicy.load(path)
    except bt.InvalidRequest as error:
        assert 0 < len(str(error)) < 2000
    else:
        assert assert_works_or_is_refused(loaded.to_json())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 4, "version of a state must be 1, 2 or 3"),
        (("rewards",), "eval", "rewards"),
        (("rewards",), ["real"], "rewards"),
        (("version",), True, "version"),
        (("format",), "pickle", "format"),
        (("kind",), "Tuning", "this is a Tuning; make a state from a tuning with tuning.deploy()"),
        (("policy",), {"name": "os.system", "prior": "rm"}, "passed again"),
        (("policy", "name"), "gittins", "computes a table"),
        (("policy", "prior"), [1, -1], "prior of ts"),
        (("policy", "extra"), 1, "options of 'ts'"),
        (("params", "gamma"), 4, "0 <= gamma <= 3.16228"),
        (("params",), {}, "parameters of ts"),
        (("horizon",), 10**30, "horizon"),
        (("horizon",), 0, "horizon"),
        (("seed",), -1, "seed"),
        (("stream_position",), [0], "stream_position"),
        (("stream_position",), [2**32, 0], "stream_position"),
        (("pending",), "eval", "pending"),
        (("pending",), ["ignore"], "pending"),
        (("arms",), [], "not retired"),
        (("arms", 0, "name"), "b" * 201, "name of an arm"),
        (("arms", 0, "name"), "3", "different names"),
        (("arms", 0, "pulls"), 1.5, "pulls"),
        (("arms", 0, "pulls"), -1, "pulls"),
        (("arms", 0, "pulls"), 2**60, "pulls"),
        (("arms", 0, "total"), 1e9, "total of an arm"),
        (("arms", 0, "pending_pulls"), -1, "pending_pulls"),
        (("arms", 0, "retired"), 1, "retired"),
        (("arms", 0, "features"), [1.0], "same number of features"),
        (("surprise",), 1, "must have the fields"),
    ],
)
def test_hostile_states_are_refused(path, value, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.DeployedPolicy.from_json(json.dumps(replace_value(VALID, path, value)))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "NaN", '{"format": NaN}', "1e999", '"\\ud800"', "\x00", "{}" * 9],
)
def test_texts_that_break_parsers_are_refused(text):
    with pytest.raises(bt.InvalidRequest):
        bt.DeployedPolicy.from_json(text)


def test_numbers_that_are_not_finite_are_refused():
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        with pytest.raises(bt.InvalidRequest, match="finite"):
            bt.DeployedPolicy.from_json(
                json.dumps(replace_value(VALID, ("arms", 0, "total"), "?")).replace('"?"', word)
            )


def test_a_file_that_is_too_long_or_missing_is_refused(tmp_path):
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(bt.InvalidRequest, match="shorter"):
        bt.DeployedPolicy.load(path)
    with pytest.raises(bt.InvalidRequest, match="cannot be read"):
        bt.DeployedPolicy.load(tmp_path / "missing.json")
    with pytest.raises(bt.InvalidRequest, match="cannot be read"):
        bt.DeployedPolicy.load(tmp_path)


def test_the_memory_of_a_state_is_bounded():
    arms = [dict(VALID["arms"][0], name=number, features=[0.1] * 600) for number in range(400)]
    hostile = replace_value(
        replace_value(VALID, ("arms",), arms), ("policy",), {"name": "glm-tsl", "prior": [0, 1], "factor": None}
    )
    with pytest.raises(bt.InvalidRequest, match="must fit into"):
        bt.DeployedPolicy.from_json(json.dumps(hostile))


def test_a_state_is_the_same_after_json():
    text = json.dumps(VALID)
    state = parse_state(text)
    assert isinstance(state, DeploymentState)
    assert json.loads(state.to_json()) == VALID
    assert parse_state(state.to_json()) == state


def test_states_of_version_1_without_rewards_are_read():
    data = json.loads(bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=10, arms=2).to_json())
    del data["rewards"]
    with pytest.raises(bt.InvalidRequest, match="must have the fields"):
        bt.DeployedPolicy.from_json(json.dumps(data))
    deployed = bt.DeployedPolicy.from_json(json.dumps(rename_fields(data) | {"version": 1}))
    deployed.update(0, 5.0)
    assert json.loads(deployed.to_json())["version"] == 3


def rename_fields(tree):
    """A state with the field names of versions 1 and 2."""
    if isinstance(tree, list):
        return [rename_fields(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {OLD_FIELD_NAMES.get(key, key): rename_fields(value) for key, value in tree.items()}


def test_states_of_version_2_are_read():
    old = rename_fields(VALID) | {"version": 2}
    assert {"drawn", "searched"} < set(old)
    assert "waiting" in old["arms"][0]
    assert json.loads(parse_state(json.dumps(old)).to_json()) == VALID
    del old["searched"]
    assert parse_state(json.dumps(old)).searched_ranges == {}
    for mixed in (old | {"version": 3}, VALID | {"version": 2}, old | {"stream_position": [0, 0]}):
        with pytest.raises(bt.InvalidRequest, match="must have the fields"):
            parse_state(json.dumps(mixed))


def test_a_failed_save_keeps_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    deployed = bt.DeployedPolicy.from_json(json.dumps(VALID))
    deployed.save(path)
    before = path.read_bytes()
    deployed.select_arm()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(bt.InvalidRequest, match="No space"):
        deployed.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    write_atomically(path, before)
    assert bt.DeployedPolicy.load(path).state == parse_state(before.decode())


def test_the_code_of_states_runs_and_unpickles_nothing():
    paths = list((ROOT / "src" / "banditune" / "deployment").glob("*.py"))
    assert len(paths) > 5
    for path in paths:
        used = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert not used & {"pickle", "eval", "exec", "compile", "__import__", "marshal", "shelve", "importlib"}, path


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", {}),
        ("policy", {"name": ["ucb1"]}),
        ("policy", {"name": "ucb1", "width": 3}),
        ("policy", {"name": "ucb1", "noise": "x"}),
        ("problem", {"name": "bernoulli", "arms": "x"}),
        ("problem", {"name": "bernoulli", "arms": 3, "names": 5}),
        ("problem", {"name": "mixture", "means": [3]}),
        ("problem", {"name": "mixture", "means": "abc"}),
    ],
)
def test_a_damaged_tuning_is_not_deployed(field, value):
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=20, budget=20, search=bt.Search(validate=5))
    data = json.loads(tuning.to_json())
    data["setup"][field] = value
    with pytest.raises(bt.InvalidRequest):
        bt.results.from_json(json.dumps(data)).deploy()


def test_a_policy_that_could_not_be_loaded_is_not_deployed():
    with pytest.raises(bt.InvalidRequest, match="at most"):
        bt.deploy(bt.LinUCB(prior=(0, 1), noise=0.5), 0.5, horizon=100, features=np.ones((2, 1500)))
    deployed = bt.deploy(bt.UCB1(noise=0.5), 0.5, horizon=100, arms=2)
    with pytest.raises(bt.InvalidRequest, match="the arm must be one of"):
        deployed.update(True, 1)
    assert bt.tune(
        bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=20, search=bt.Search(validate=5)
    ).deploy(names=np.array(["a", "b"])).arms == ("a", "b")
