"""The digest of the code and the data that make instances."""

from __future__ import annotations

import numpy as np

import banditune as bt
from banditune.core.problem import Instances
from banditune.storage import provenance
from helpers.stores import list_differences, pay_mean, serialize_key_of


class HalvedMeans(bt.Bernoulli):
    """Overrides `sample`, and calls the method that it overrides."""

    def sample(self, size, rng):
        return Instances(self.factor() * super().sample(size, rng).means)

    def factor(self):
        return 0.5


class ThirdOfMeans(HalvedMeans):
    def factor(self):
        return 1 / 3


def test_the_digest_contains_methods_that_sample_calls_and_overrides(monkeypatch):
    halved = provenance.digest_sampling_code(HalvedMeans(arms=3))
    assert provenance.digest_sampling_code(ThirdOfMeans(arms=3)) != halved
    monkeypatch.setattr(bt.Bernoulli, "sample", lambda self, size, rng: Instances(rng.random((size, self.arms))))
    assert provenance.digest_sampling_code(HalvedMeans(arms=3)) != halved


class KeyedInstances(bt.Bernoulli):
    """An instance is a function of its key."""

    is_keyed = True
    late = 0.5

    def sample_keyed(self, keys):
        return Instances(np.random.default_rng(int(keys[0, 0])).random((len(keys), self.arms)) * self.scale())

    def scale(self):
        return self.late


class OtherKeyedInstances(KeyedInstances):
    def scale(self):
        return self.late**2


def test_the_digest_contains_what_sample_keyed_uses(monkeypatch):
    assert provenance.digest_sampling_code(KeyedInstances(arms=3)) != provenance.digest_sampling_code(
        OtherKeyedInstances(arms=3)
    )
    before = provenance.digest_sampling_code(KeyedInstances(arms=3))
    monkeypatch.setattr(KeyedInstances, "late", 0.25)
    assert provenance.digest_sampling_code(KeyedInstances(arms=3)) != before


def test_the_digest_of_a_reward_table_is_that_of_its_sample():
    table = bt.RewardTable(np.eye(3))
    assert provenance.digest_sampling_code(table) == provenance.digest_sampling_code(SampleOnly())


class SampleOnly(bt.kernel.Problem):
    """A problem with the `sample` of a reward table, which is that of every problem and refuses."""


def test_the_digest_contains_the_instances_that_sample_reads_from_a_file(tmp_path):
    path = tmp_path / "means.npy"

    def sample(size, rng):
        return np.load(path) * rng.random((size, 2))

    problem = bt.define_problem("from a file", sample, pay_mean, arms=2)
    keys = []
    for means in ([0.5, 0.6], [0.5, 0.7]):
        np.save(path, means)
        keys.append(serialize_key_of(bt.Greedy(), problem))
    assert list_differences(*keys) == {"instances"}
