"""Record the numbers of many requests, and compare with them after a change that must change no number.

    python benchmarks/same_numbers record FILE.json [--device gpu] [--only WORD]
    python benchmarks/same_numbers compare FILE.json [--device gpu] [--only WORD]

Of every request two things are kept. The headline is a few numbers under labels of our own. It must be the same. The
numbers are all those in the result's JSON, without their names, because these may change. Each must come again at least
as often; more may come. Where a number stood is kept only to say so.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import math
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import api  # noqa: E402
import numpy as np  # noqa: E402
from request_list import REQUESTS  # noqa: E402

CHANGING = ("seconds", "versions", "version", "command", "file", "path", "bytes", "size")
"""Keys whose numbers depend on the machine, the time, the folder or the format of a file."""

MANY = 300
"""Of more numbers than this only short hashes are kept."""

SHOWN = 5
"""Differences of a request that are shown, at most."""


def main() -> int:
    """Record or compare; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="same_numbers", description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="gpu: only requests that take a device")
    parser.add_argument("--only", default="", metavar="WORD", help="only requests whose name contains this")
    options = parser.parse_args()
    # What is warned of changes no number, and fills the screen.
    warnings.simplefilter("ignore")
    chosen = [name for name in REQUESTS if options.only in name and (options.device == "cpu" or takes(name, "device"))]
    if not chosen:
        parser.error(f"no request has a name that contains {options.only!r}")
    act = record if options.action == "record" else compare
    return act(options.file, chosen, options.device, options.only)


def takes(name: str, what: str) -> bool:
    """Whether a request wants to be told something."""
    return what in inspect.signature(REQUESTS[name]).parameters


def record(file: Path, chosen: list[str], device: str, _: str) -> int:
    """Write the numbers of the chosen requests; others that the file holds stay."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    failed = []
    for name in chosen:
        start = time.perf_counter()
        try:
            kept[name] = play(name, device)
            print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
        except Exception as error:
            failed.append(name)
            print(f"{name}: FAILED, {type(error).__name__}: {error}", flush=True)
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in REQUESTS if name in kept]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(chosen) - len(failed)} requests recorded, {len(failed)} failed")
    return 1 if failed else 0


def compare(file: Path, chosen: list[str], device: str, only: str) -> int:
    """Run the chosen requests again, and say what differs from the file."""
    kept = json.loads(file.read_text())
    gone = [name for name in kept if name not in REQUESTS and only in name]
    differing = 0
    for name in [*chosen, *gone]:
        if name in gone:
            found = ["recorded, but there is no such request now"]
        elif name not in kept:
            found = ["not recorded"]
        else:
            try:
                found = differences(kept[name], play(name, device))
            except Exception as error:
                found = [f"failed, {type(error).__name__}: {error}"]
        differing += bool(found)
        print(f"{name}: {'DIFFERS' if found else 'same'}", *found[:SHOWN], sep="\n    ", flush=True)
        if len(found) > SHOWN:
            print(f"    and {len(found) - SHOWN} more")
    print(f"{len(chosen) + len(gone) - differing} requests are the same, {differing} differ")
    return 1 if differing else 0


def play(name: str, device: str) -> dict[str, Any]:
    """Run a request in an empty folder, and keep its headline and its numbers."""
    with tempfile.TemporaryDirectory() as folder:
        known = {"folder": Path(folder), "device": device}
        headline, results = REQUESTS[name](**{what: value for what, value in known.items() if takes(name, what)})
        trees = [api.tree_of(result) for result in results]
    # As the file will have it: tuples are lists there.
    return json.loads(json.dumps({"headline": plain(headline), **compact(list(leaves(trees, "")))}))


def plain(value: Any) -> Any:
    """A headline as JSON: floats to the last bit, arrays as a digest."""
    if isinstance(value, dict):
        return {str(label): plain(item) for label, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return {"sha256": digest, "shape": list(array.shape), "sum": float(array.sum()).hex()}
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        return float(value).hex()
    return int(value) if isinstance(value, np.integer) else value


def leaves(tree: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every number of plain JSON, to the last bit, with its path; places in lists are left out of paths."""
    if isinstance(tree, dict):
        for key, item in tree.items():
            if key not in CHANGING:
                yield from leaves(item, f"{path}.{key}")
    elif isinstance(tree, list):
        for item in tree:
            yield from leaves(item, f"{path}[]")
    elif isinstance(tree, float | int) and not isinstance(tree, bool):
        # 10 and 10.0 are the same number.
        yield path, float(tree).hex() if abs(tree) < 2**53 or math.isinf(tree) or isinstance(tree, float) else str(tree)


def compact(found: list[tuple[str, str]]) -> dict[str, Any]:
    """Numbers by path, hashed where there are many."""
    hashed = len(found) > MANY
    numbers: dict[str, list[str]] = {}
    for path, number in found:
        numbers.setdefault(path, []).append(short(number) if hashed else number)
    return {"hashed": hashed, "numbers": {path: " ".join(several) for path, several in numbers.items()}}


def short(number: str) -> str:
    """Eight digits that stand for a number."""
    return hashlib.sha256(number.encode()).hexdigest()[:8]


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What was recorded and did not come again, in sentences."""
    found = list(changes(old["headline"], new["headline"], "headline"))
    missing = counted(old, old["hashed"]) - counted(new, old["hashed"])
    for path, several in old["numbers"].items():
        for number in several.split() if is_kept(path) else ():
            if missing[number] > 0:
                missing[number] -= 1
                found.append(f"{path.lstrip('.[]')}: {'a number' if old['hashed'] else shown(number)} is missing now")
    return found


def changes(old: Any, new: Any, label: str) -> Iterator[str]:
    """Where a headline is another one."""
    if isinstance(old, dict) and isinstance(new, dict) and "sha256" not in old:
        for part, value in old.items():
            yield from changes(value, new.get(part, "not there"), f"{label}, {part}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, pair in enumerate(zip(old, new, strict=True)):
            yield from changes(*pair, f"{label}[{place}]")
    elif old != new:
        yield f"{label}: {shown(old)} is now {shown(new)}"


def counted(kept: dict[str, Any], hashed: bool) -> Counter[str]:
    """How often each number occurs, whatever it is called."""
    every = (number for path, several in kept["numbers"].items() if is_kept(path) for number in several.split())
    return Counter(short(number) if hashed and not kept["hashed"] else number for number in every)


def is_kept(path: str) -> bool:
    """Whether a recorded number must come again: files that were recorded before may hold others."""
    return path.rpartition(".")[2] not in CHANGING


def shown(value: Any) -> str:
    """A recorded value for a reader."""
    if isinstance(value, dict) and "sum" in value:
        return f"an array {value['shape']} with sum {shown(value['sum'])}"
    if isinstance(value, str) and value.removeprefix("-").startswith("0x"):
        return f"{float.fromhex(value):.17g}"
    return f"{value!s:.100}"


if __name__ == "__main__":
    sys.exit(main())
