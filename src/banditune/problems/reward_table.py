"""Tables with the rewards of all arms at all steps, without an assumption about their distribution."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.checks import check_names, convert_to_array, decode_utf8
from banditune.core.descriptions import make_undescribed_field
from banditune.core.errors import InvalidRequest
from banditune.core.option_types import Names, Option, default_option
from banditune.core.problem import Instances
from banditune.core.request_errors import make_argument_error, make_name_error
from banditune.core.scalar import scalar
from banditune.core.streams import TABLE_STREAM, philox
from banditune.problems.data_set import DataSet, check_population

OPTIONS_HEADER = 3
"""The numbers before the tables in the options: the number of tables, the number of rows, and whether rows are drawn."""


BOOLEAN_WORDS = {"true": True, "false": False}
"""The spelling of `shuffled` on the command line."""


@scalar
def select_table(tables, key0, key1):
    """Return the number of an instance's table, a function of its key."""
    word, _, _, _ = philox(0, 0, 0, TABLE_STREAM, key0, key1)
    return (word * int(tables)) >> 32


@scalar
def read_table_reward(instance, arm, pull, step, stream):
    """Return the arm's reward in the row of this step, or in a row drawn for this step and all arms."""
    tables, rows = instance.options[0], int(instance.options[1])
    row = int(step)
    if instance.options[2] > 0.0:
        word, _, _, _ = philox(row, 1, 0, TABLE_STREAM + (stream.cursor[3] & ~255), stream.key0, stream.key1)
        row = (word * rows) >> 32
    position = (select_table(tables, stream.key0, stream.key1) * rows + row) * len(instance.means) + arm
    return instance.options[OPTIONS_HEADER + position]


@dataclass(frozen=True)
class RewardTable(DataSet):
    """Tables of known rewards of all arms at all steps. An instance is one of them, with equal probabilities.

    The best arm of a table is the one with the highest sum. If rows are used in order, regret is realised regret, because
    rewards are known and means are not. Tables are a sample from a population, and errors are over tables. Of four or more,
    a search uses a third, and its answer is validated on the others. With a single table, errors are over new orders of its
    rows.

    Parameters
    ----------
    tables : array of float
        Rewards of shape (tables, steps, arms), or (steps, arms) for a single table. Two arms or more.
    shuffled : bool, optional
        Whether every step draws a row, with replacement, instead of using the rows in order. The default is True for a
        single table and False for several.
    names : sequence of str
        Names of the arms, one per arm. None by default.
    population : bool
        Whether these tables are the whole population. If so, nothing is held out, and errors are over runs.
    _option_values : None
        It is computed from `tables` and must be left out.

    Raises
    ------
    InvalidRequest
        If the tables have different shapes, or have values that are not finite numbers.

    Examples
    --------
    >>> import banditune as bt
    >>> problem = bt.RewardTable([(1, 0), (0, 1), (1, 1)])
    >>> problem.arms, problem.rows, problem.shuffled
    (2, 3, True)
    """

    tables: Any = field(repr=False, metadata={"described": False})
    shuffled: Any = None
    names: Option[Names] = default_option(())
    population: Any = field(default=False, metadata={"described": lambda problem: problem.population})
    arms: int = field(default=0, init=False)
    rows: int = field(default=0, init=False)
    digest: str = field(default="", init=False)
    rewards: str = field(default="real", init=False, metadata={"described": False})
    _option_values: Any = make_undescribed_field()

    name = "reward-table"
    unit_name = "table"
    is_keyed = True
    reward = staticmethod(read_table_reward)

    def __post_init__(self) -> None:
        tables = _check_tables(self.tables)
        count, rows, arms = tables.shape
        shuffled = count == 1 if self.shuffled is None else _check_shuffled(self.shuffled)
        numbers = np.concatenate([[count, rows, shuffled], tables.ravel()]).astype(np.float64)
        unit = float(tables.min()) >= 0 and float(tables.max()) <= 1
        binary = unit and bool((tables % 1 == 0).all())
        for name, value in (
            ("tables", None),
            ("shuffled", shuffled),
            ("names", check_names(self.names, arms)),
            ("population", check_population(self.population)),
            ("arms", arms),
            ("rows", rows),
            ("digest", hashlib.sha256(numbers.tobytes()).hexdigest()[:16]),
            ("rewards", "binary" if binary else "unit" if unit else "real"),
            ("_option_values", numbers),
        ):
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return hash((self.digest, self.names, self.population))

    def __eq__(self, other: object) -> bool:
        own_key = (self.digest, self.names, self.population)
        return isinstance(other, RewardTable) and own_key == (other.digest, other.names, other.population)

    @property
    def max_horizon(self) -> int | None:
        return None if self.shuffled else self.rows

    @property
    def has_step_dependent_means(self) -> bool:
        """Whether rows are used in order. If every step draws its row, the step only selects random numbers."""
        return not self.shuffled if self.reward is read_table_reward else super().has_step_dependent_means

    @property
    def required_regret(self) -> str | None:
        return None if self.shuffled else "realised"

    @property
    def noise(self) -> float:
        """The standard deviation of an arm's rewards within a table, over all arms and tables."""
        return math.sqrt(self._option_values[OPTIONS_HEADER:].reshape(-1, self.rows, self.arms).var(axis=1).mean())

    def sample_keyed(self, keys: IntArray) -> Instances:
        means = self._option_values[OPTIONS_HEADER:].reshape(-1, self.rows, self.arms).mean(axis=1)
        return Instances(means[[select_table(len(means), int(key0), int(key1)) for key0, key1 in keys]])

    def options(self) -> Sequence[float]:
        options: Sequence[float] = self._option_values
        return options

    @property
    def unit_count(self) -> int:
        return int(self._option_values[0])

    def select_units(self, positions: Sequence[int]) -> RewardTable:
        tables = self._option_values[OPTIONS_HEADER:].reshape(-1, self.rows, self.arms)[list(positions)]
        return RewardTable(tables, self.shuffled, self.names)

    def draw_units(self, keys: IntArray, rng: np.random.Generator) -> IntArray:
        return np.array([select_table(self.unit_count, int(key0), int(key1)) for key0, key1 in keys])


def _check_tables(tables: Any) -> FloatArray:
    """Check tables of finite numbers; return them as (tables, steps, arms)."""
    array = convert_to_array(tables)
    if not array.size:
        check_table_lengths(tables)
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or 0 in array.shape or array.shape[2] < 2:
        raise make_argument_error(
            "tables",
            "wrong-shape",
            "must have a number for every step and arm, as (steps, arms) or (tables, steps, arms), two arms or "
            f"more, but got shape {np.shape(array)}.",
        )
    if not np.isfinite(array).all():
        table, row, arm = map(int, np.argwhere(~np.isfinite(array))[0])
        raise InvalidRequest(
            f"rewards must be finite numbers, but arm {arm} has another value in row {row} of table {table}. If only the "
            "reward of the arm that was chosen is known, the table is a log: fit a problem to it.",
            argument="tables",
            code="bad-data",
        )
    if array.shape[1] >= 2**31 or len(array) >= 2**31:
        raise InvalidRequest(
            f"tables must have below 2^31 rows, but the shape is {array.shape}.", argument="tables", code="too-large"
        )
    return array


def check_table_lengths(tables: Any) -> None:
    """Raise an error with their positions if two tables differ in length. Other checks handle other types."""
    arrays = [convert_to_array(table) for table in tables] if isinstance(tables, list | tuple) else []
    if not arrays or any(table.ndim != 2 for table in arrays):
        return
    for position, table in enumerate(arrays):
        for axis, counted in enumerate(("rows", "arms")):
            first, length = arrays[0].shape[axis], table.shape[axis]
            if first != length:
                raise InvalidRequest(
                    f"all tables must have as many {counted}, but table 0 has {first:,} and table {position} has "
                    f"{length:,}.",
                    argument="tables",
                    code="wrong-shape",
                )


def _check_shuffled(shuffled: Any) -> bool:
    """Check `shuffled`."""
    if not isinstance(shuffled, bool | np.bool_):
        raise make_argument_error(
            "shuffled",
            "wrong-type",
            "must be True, so that every step draws a row, or False, so that rows are used in order, but got "
            f"{shuffled!r:.60}; leave it out to draw from a single table and to use several in order.",
        )
    return bool(shuffled)


def read_reward_table(file: Any, shuffled: Any = None, column: Any = None, population: Any = False) -> RewardTable:
    """Read a table of rewards of all arms at all steps from a file with a column per arm.

    Parameters
    ----------
    file : str or Path
        A .csv or .npy file.
    shuffled : bool
        Whether a step draws a row at random. Otherwise step t has the rewards of row t.
    column : str, optional
        The column that separates several tables.
    population : bool
        Whether the tables are the whole population. Otherwise they are a sample.

    Returns
    -------
    RewardTable
        The problem.
    """
    path = Path(str(file))
    shuffle = BOOLEAN_WORDS.get(str(shuffled).lower(), shuffled)
    if path.suffix == ".npy":
        return RewardTable(_load_array(path), shuffle, population=population)
    names, cells = _read_cells(path)
    if column is None:
        return RewardTable(_parse_numbers(path, names, cells), shuffle, names, population)
    if str(column) not in names:
        raise make_name_error("the column of the tables", names, column, argument="column")
    position = names.index(str(column))
    groups: dict[str, list[list[str]]] = {}
    for row in cells:
        groups.setdefault(row[position], []).append(row[:position] + row[position + 1 :])
    if len({len(group) for group in groups.values()}) > 1:
        sizes = sorted({len(group) for group in groups.values()})
        raise InvalidRequest(
            f"all tables must have as many rows, but in {str(path)!r} they have {sizes[0]} to {sizes[-1]}.",
            argument="file",
            code="wrong-shape",
        )
    names = names[:position] + names[position + 1 :]
    return RewardTable([_parse_numbers(path, names, group) for group in groups.values()], shuffle, names, population)


def _load_array(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"{str(path)!r} must be an array in a .npy file, but cannot be read: {error}.",
            argument="file",
            code="file-format",
        ) from error


def _read_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    import csv

    try:
        rows = [row for row in csv.reader(io.StringIO(decode_utf8(path.read_bytes(), path), newline="")) if row]
    except (OSError, csv.Error) as error:
        raise InvalidRequest(
            f"a table of rewards must be a .csv or .npy file, but {str(path)!r} cannot be read.",
            argument="file",
            code="cannot-read",
        ) from error
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidRequest(
            f"{str(path)!r} must have a line of names, and rows with the same number of numbers.",
            argument="file",
            code="bad-data",
        )
    names = [name.strip() for name in rows[0]]
    if all(_is_number(name) for name in names):
        raise InvalidRequest(
            f"the first line of {str(path)!r} must have the names of the arms, but it has numbers; add a line of names.",
            argument="file",
            code="bad-data",
        )
    return names, rows[1:]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_numbers(path: Path, names: Sequence[str], rows: list[list[str]]) -> FloatArray:
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise InvalidRequest(
            f"every cell of {str(path)!r} must be a number, but: {error}. The columns are {', '.join(names)}; name the one "
            "that separates tables with column=NAME.",
            argument="file",
            code="bad-data",
        ) from error
