"""The layout of a store: SQL statements, the records of setups, series and blocks, and how runs are cut into blocks."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditune.simulation.instances import split_by_block

Float32Array = NDArray[np.float32]


FORMAT_VERSION = 1
"""The version of the tables; a file with a higher one is refused."""


APPLICATION_ID = int.from_bytes(b"bndt", "big")
"""How a ledger is told from other SQLite files: its `application_id`."""


LOCK_TIMEOUT = 60.0
"""Seconds to wait for another process that writes."""


PAGE_BYTES = 16384
"""Bytes in a page of the file: fifteen whole blocks fill one, of the usual 4,096 they would leave a quarter empty."""


CREATE_TABLES = {
    "setups": """CREATE TABLE setups (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, told TEXT NOT NULL,
versions TEXT NOT NULL)""",
    "series": """CREATE TABLE series (id INTEGER PRIMARY KEY, setup INTEGER NOT NULL REFERENCES setups (id),
params BLOB NOT NULL, noise INTEGER NOT NULL, UNIQUE (setup, params, noise))""",
    "blocks": """CREATE TABLE blocks (series INTEGER NOT NULL REFERENCES series (id), first INTEGER NOT NULL,
count INTEGER NOT NULL, checksum INTEGER NOT NULL, regrets BLOB NOT NULL, UNIQUE (series, first))""",
}


SELECT_BLOCKS = """
SELECT first, count, checksum, regrets FROM blocks WHERE first >= ? AND first < ? AND series =
(SELECT series.id FROM series JOIN setups ON setups.id = setup WHERE digest = ? AND params = ? AND noise = ?)
"""


UPSERT_BLOCK = """
INSERT INTO blocks (series, first, count, checksum, regrets) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (series, first) DO UPDATE SET count = excluded.count, checksum = excluded.checksum, regrets = excluded.regrets
WHERE excluded.count > count
"""


class StoredSetup(NamedTuple):
    """What made regrets: the text of an identity, its digest, and the steps after which they were counted.

    `versions` say who wrote first; they are no part of the key.
    """

    digest: bytes
    told: str
    versions: str
    steps: int

    @classmethod
    def of(cls, told: str, versions: str = "{}") -> StoredSetup:
        """The setup of an identity's text."""
        return cls(hashlib.sha256(told.encode()).digest(), told, versions, len(json.loads(told)["at"]))


class StoredSeries(NamedTuple):
    """A row of parameters of a setup, as bytes of float64, and the number of its noise: 0 where noise is shared."""

    setup: StoredSetup
    params: bytes
    noise: int

    def checksum(self, first: int, count: int, regrets: bytes) -> int:
        """Over the numbers and everything that they stand for: a block that ends up in a wrong place is found too."""
        place = np.array([self.noise, first, count], "<i8").tobytes()
        return zlib.crc32(regrets, zlib.crc32(self.setup.digest + self.params + place))


class RegretBlock(NamedTuple):
    """Regrets of a series on neighbouring runs: an array (runs, steps)."""

    series: StoredSeries
    first: int
    regrets: Float32Array


def cut_at_blocks(first: int, regrets: Float32Array) -> Iterator[tuple[int, Float32Array]]:
    """Regrets of neighbouring runs from `first` on, cut at multiples of `BLOCK_SIZE`."""
    for _, runs in split_by_block(range(first, first + len(regrets))):
        yield runs.start, regrets[runs.start - first : runs.stop - first]


def find_ranges(chosen: NDArray[np.bool_], start: int) -> list[range]:
    """The runs, counted from `start`, that are chosen, as ranges."""
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    return [range(start + int(a), start + int(b)) for a, b in edges.reshape(-1, 2)]
