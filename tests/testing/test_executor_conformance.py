"""`check_executor` names the check that a broken executor fails, and passes the package's own."""

from __future__ import annotations

import numpy as np
import pytest

import banditune as bt


def fail(executor, check, *words):
    """Check an executor that fails one check, with all of these words in the message."""
    with executor, pytest.raises(bt.errors.ConformanceError) as error:
        bt.testing.check_executor(executor)
    assert error.value.check == check, str(error.value)
    assert error.value.argument == "executor"
    assert [word for word in words if word not in str(error.value)] == []


@pytest.mark.parametrize("make", [bt.executors.ThreadExecutor, bt.executors.ProcessExecutor])
def test_the_executors_of_the_package_keep_their_contract(make):
    with make(2) as executor:
        found = bt.testing.check_executor(executor)
    assert found.subject == make.__name__
    assert found["same-bits"].runs == 1800
    assert found["workers"].finding.startswith("2 workers")


def test_objects_that_are_no_executors_are_refused():
    with pytest.raises(bt.InvalidRequest, match="must be an executor such as"):
        bt.testing.check_executor("threads")


class Changed(bt.executors.ThreadExecutor):
    """Threads whose sessions change what comes back."""

    def __init__(self, change):
        super().__init__(2)
        self.change = change

    def open_session(self, spec):
        session, change = super().open_session(spec), self.change
        wait = session.wait_for_result
        session.wait_for_result = lambda: change(*wait())
        return session


def test_workers_that_are_no_number_fail():
    class Nobody(bt.executors.ThreadExecutor):
        workers = 0

    fail(Nobody(2), "workers", "`workers` must be a whole number >= 1")


def test_regrets_of_another_precision_fail():
    def round_regrets(ticket, result):
        return ticket, result._replace(regrets=result.regrets.astype(np.float32).astype(float))

    fail(Changed(round_regrets), "same-bits", "must be those of a thread", "regrets differ")


def test_a_ticket_that_is_returned_twice_fails():
    """Smaller tickets are those of simulations; this check begins with 7."""
    change = Changed(lambda ticket, result: (7 if ticket == 8 else ticket, result))
    fail(change, "each-chunk-once", "each ticket must be returned once, but got 7")


class Leaking(bt.executors.ThreadExecutor):
    """Gives what an earlier session left to the next one."""

    def __init__(self):
        super().__init__(1)
        self.last = None

    def open_session(self, spec):
        session, earlier = super().open_session(spec), self.last
        session.stop = lambda: None
        if earlier is not None and earlier.waiting:
            session.wait_for_result = earlier.wait_for_result
        self.last = session
        return session


def test_a_session_that_returns_chunks_of_another_one_fails():
    fail(Leaking(), "stopping", "a session must return only its own chunks, but it returned ticket 10")


class Silent(bt.executors.ThreadExecutor):
    """Has a message of its own for every error."""

    def _load_simulator(self, spec):
        try:
            spec.problem.sample(2, np.random.default_rng(0))
        except ValueError:
            raise bt.SimulationError("something failed") from None
        return super()._load_simulator(spec)


def test_an_error_without_its_message_fails():
    fail(Silent(1), "errors", "must reach the caller", "'something failed'", "there are none")
