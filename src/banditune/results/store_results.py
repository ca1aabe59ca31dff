"""The content of a store of regrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.result_record import ResultRecord, make_data_frame, register_record


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StoredMean(ResultRecord):
    """The stored regret of one row of parameters after a number of steps.

    Attributes
    ----------
    params : tuple of float
        The parameter values.
    noise_stream : int
        The number of the reward noise; 0 with common random numbers.
    fresh : bool
        Whether the instances are fresh ones, rather than those of searches.
    step : int
        The number of steps after which regret was counted.
    regret : Estimate
        The mean regret.
    distribution : RegretDistribution
        The distribution of the regrets of single runs. It has no numbers of runs.
    """

    params: tuple[float, ...]
    noise_stream: int
    fresh: bool
    step: int
    regret: Estimate
    distribution: RegretDistribution

    def __repr__(self) -> str:
        return f"{self.params}: {self.regret!r}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StoreSummary(ResultRecord):
    """All stored regrets of one setup.

    Attributes
    ----------
    setup_id : int
        The number of the setup in the store.
    policy : str
        The policy with its options, as text.
    problem : str
        The problem with its options, as text.
    horizon : int
        Steps in a run.
    seed : int
        The seed.
    regret_kind : {"expected", "realised"}
        Whether regret compares mean rewards or the rewards that were drawn.
    common_random_numbers : bool
        Whether all parameter values had the same reward noise on an instance.
    shortcut : str
        The name of the faster algorithm that was used; "none" for the plain loop, "warp version" for the warps of a GPU.
    device : {"cpu", "gpu"}
        Where the simulation ran.
    dtype : {"float64", "float32"}
        The floating-point type of the simulation.
    versions : str
        The versions of the packages that wrote the first regrets, as text.
    parameters : tuple of str
        The names of the parameters.
    stored_means : tuple of StoredMean
        The mean regret of each row of parameters, after each number of steps.
    """

    setup_id: int
    policy: str
    problem: str
    horizon: int
    seed: int
    regret_kind: str
    common_random_numbers: bool
    shortcut: str
    device: str
    dtype: str
    versions: str
    parameters: tuple[str, ...]
    stored_means: tuple[StoredMean, ...]

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The numbers of steps after which regret was counted, in order."""
        return tuple(sorted({stored.step for stored in self.stored_means}))

    def select_final(self, *, fresh: bool) -> tuple[StoredMean, ...]:
        """Select the means after the last step.

        Parameters
        ----------
        fresh : bool
            Whether those of fresh instances are selected, or those of searches.
        """
        last = self.checkpoints[-1]
        return tuple(stored for stored in self.stored_means if stored.step == last and stored.fresh == fresh)

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per stored mean.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        columns = {
            name: [stored.params[index] for stored in self.stored_means] for index, name in enumerate(self.parameters)
        }
        columns |= {
            name: [getattr(stored, name) for stored in self.stored_means] for name in ("noise_stream", "fresh", "step")
        }
        columns |= {
            name: [getattr(stored.regret, name) for stored in self.stored_means] for name in ("runs", "mean", "se")
        }
        return make_data_frame(columns)
