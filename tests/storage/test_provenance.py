"""The digest of the code and the data that make instances."""

from __future__ import annotations

import numpy as np

import banditune as bt
from banditune.core.problem import Instances
from banditune.storage import provenance
from helpers.stores import constant_reward, parts_that_differ, told


class Halved(bt.Bernoulli):
    """Overrides a method, and calls the one that it overrides."""

    def sample(self, size, rng):
        return Instances(self.factor() * super().sample(size, rng).means)

    def factor(self):
        return 0.5


class Thirded(Halved):
    def factor(self):
        return 1 / 3


def test_methods_that_sample_calls_and_those_that_it_overrides_count(monkeypatch):
    halved = provenance.digest_sampling_code(Halved(arms=3))
    assert provenance.digest_sampling_code(Thirded(arms=3)) != halved
    monkeypatch.setattr(bt.Bernoulli, "sample", lambda self, size, rng: Instances(rng.random((size, self.arms))))
    assert provenance.digest_sampling_code(Halved(arms=3)) != halved


class ByKey(bt.Bernoulli):
    """An instance is a function of its key."""

    is_keyed = True
    late = 0.5

    def sample_keyed(self, keys):
        return Instances(np.random.default_rng(int(keys[0, 0])).random((len(keys), self.arms)) * self.scale())

    def scale(self):
        return self.late


class ByKeyOtherwise(ByKey):
    def scale(self):
        return self.late**2


def test_what_makes_instances_of_keys_counts(monkeypatch):
    assert provenance.digest_sampling_code(ByKey(arms=3)) != provenance.digest_sampling_code(ByKeyOtherwise(arms=3))
    before = provenance.digest_sampling_code(ByKey(arms=3))
    monkeypatch.setattr(ByKey, "late", 0.25)
    assert provenance.digest_sampling_code(ByKey(arms=3)) != before


def test_a_reward_tables_ledgers_from_before_keys_counted_are_still_known():
    table = bt.RewardTable(np.eye(3))
    assert provenance.digest_sampling_code(table) == provenance.digest_sampling_code(SampleOnly())


class SampleOnly(bt.kernel.Problem):
    """Has the same `sample` as a reward table: that of every problem, which refuses."""


def test_a_file_that_sample_reads_counts(tmp_path):
    file = tmp_path / "means.npy"

    def sample(size, rng):
        return np.load(file) * rng.random((size, 2))

    problem = bt.define_problem("from a file", sample, constant_reward, arms=2)
    keys = []
    for means in ([0.5, 0.6], [0.5, 0.7]):
        np.save(file, means)
        keys.append(told(bt.Greedy(), problem))
    assert parts_that_differ(*keys) == {"instances"}
