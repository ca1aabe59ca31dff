"""Times Thompson sampling on a GPU in both precisions: `python .lab_quick.py [compile]`."""

import sys
import time

import numpy as np

import banditune as bt
from banditune.engine import gpu
from banditune.engine.run import Job, read_only

print(bt.__file__)
job = Job(bt.Thompson(), bt.Bernoulli(10), 10000)
values = read_only(np.linspace(0, 1, 171)[:, None])
only_compile = "compile" in sys.argv[1:]
kinds = [kind for kind in sys.argv[1:] if kind != "compile"] or ["float64", "float32"]
for kind in kinds:
    before = time.perf_counter()
    found = gpu.play(job, values, range(1), precision=kind)
    print(f"{kind}: first call {time.perf_counter() - before:.2f} s", flush=True)
    if only_compile:
        continue
    before = time.perf_counter()
    found = gpu.play(job, values, range(10000), precision=kind)
    taken = time.perf_counter() - before
    means = found[:, :, 0].mean(1)
    shown = " ".join(f"{means[place]:.2f}" for place in (0, 1, 9, 34, 85, 119, 170))
    print(f"{kind}: {taken:.2f} s; means at widths 0, .006, .05, .2, .5, .7, 1: {shown}", flush=True)
