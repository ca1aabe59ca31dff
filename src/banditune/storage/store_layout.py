"""The layout of a store: SQL statements, the records of setups, series and blocks, and the division of runs into blocks."""

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
"""The version of the tables. A file with a higher one cannot be read."""


APPLICATION_ID = int.from_bytes(b"bndt", "big")
"""The `application_id` that distinguishes a store from other SQLite files."""


LOCK_TIMEOUT = 60.0
"""The number of seconds to wait for another process that writes."""


PAGE_BYTES = 16384
"""The number of bytes in a page of the file. Fifteen complete blocks fill one; in pages of 4,096 bytes, a quarter would be
empty."""


CREATE_TABLES = {
    "setups": """CREATE TABLE setups (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, key TEXT NOT NULL,
versions TEXT NOT NULL)""",
    "series": """CREATE TABLE series (id INTEGER PRIMARY KEY, setup INTEGER NOT NULL REFERENCES setups (id),
params BLOB NOT NULL, noise_stream INTEGER NOT NULL, UNIQUE (setup, params, noise_stream))""",
    "blocks": """CREATE TABLE blocks (series INTEGER NOT NULL REFERENCES series (id), first INTEGER NOT NULL,
count INTEGER NOT NULL, checksum INTEGER NOT NULL, regrets BLOB NOT NULL, UNIQUE (series, first))""",
}


SELECT_BLOCKS = """
SELECT first, count, checksum, regrets FROM blocks WHERE first >= ? AND first < ? AND series =
(SELECT series.id FROM series JOIN setups ON setups.id = setup WHERE digest = ? AND params = ? AND noise_stream = ?)
"""


UPSERT_BLOCK = """
INSERT INTO blocks (series, first, count, checksum, regrets) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (series, first) DO UPDATE SET count = excluded.count, checksum = excluded.checksum, regrets = excluded.regrets
WHERE excluded.count > count
"""


class StoredSetup(NamedTuple):
    """A setup: the text of a key, its digest, and the number of checkpoints.

    `versions` are the package versions of the first writer. They are not part of the key.
    """

    digest: bytes
    key_text: str
    versions: str
    steps: int

    @classmethod
    def from_key_text(cls, key_text: str, versions: str = "{}") -> StoredSetup:
        """Make the setup of a key's text."""
        return cls(
            hashlib.sha256(key_text.encode()).digest(), key_text, versions, len(json.loads(key_text)["checkpoints"])
        )


class StoredSeries(NamedTuple):
    """A row of parameters of a setup, as bytes of float64, and its noise stream: 0 with common random numbers."""

    setup: StoredSetup
    params: bytes
    noise_stream: int

    def compute_checksum(self, first: int, count: int, regrets: bytes) -> int:
        """Compute a checksum of the numbers and their key, so that a block in a wrong place is detected, too."""
        position = np.array([self.noise_stream, first, count], "<i8").tobytes()
        return zlib.crc32(regrets, zlib.crc32(self.setup.digest + self.params + position))


class RegretBlock(NamedTuple):
    """Regrets of a series on neighbouring runs: an array (runs, steps)."""

    series: StoredSeries
    first_instance: int
    regrets: Float32Array


def cut_at_blocks(first: int, regrets: Float32Array) -> Iterator[tuple[int, Float32Array]]:
    """Cut regrets of adjacent runs from `first` on at multiples of `BLOCK_SIZE`."""
    for _, runs in split_by_block(range(first, first + len(regrets))):
        yield runs.start, regrets[runs.start - first : runs.stop - first]


def find_ranges(mask: NDArray[np.bool_], start: int) -> list[range]:
    """Convert a mask of runs, whose first run is `start`, to ranges."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return [range(start + int(a), start + int(b)) for a, b in edges.reshape(-1, 2)]
