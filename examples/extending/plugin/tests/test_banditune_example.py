"""Run this by pytest, where the package is installed."""

from banditune_example import FirstGood

import banditune as bt


def test_the_policy_keeps_its_contract():
    report = bt.testing.check_policy(FirstGood(tolerance=0.05))
    assert report["plain-python"].detectable == 0
