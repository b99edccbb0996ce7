#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times Y = A X from Python for the fourteen matrices of sparse_table.py: quiver, SciPy and, if it is installed, PETSc.

    OMP_NUM_THREADS=1 PYTHONPATH=BUILD/python python3 apps/bench/sparse_peers.py --quiver BUILD/apps/quiver --scale 0.1

All programs get the same CSR arrays and the same X and take samples in turn, in one process. A sample has several
calls if one takes less than 1 ms; the times are medians. SciPy's `A @ X`, which allocates Y, is compared with that of
quiver; PETSc, which writes to a block that exists, with `quiver.spmm(A, X, out=Y)`. PETSc's blocks are column-major.
SciPy and PETSc use one core. Before the samples, each result is compared with sums in long double, for another X. The
last table has the time of `quiver.SparseMatrix(A)`.
"""

import argparse
import math
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import scipy.io
import scipy.sparse as sp

import quiver
from sparse_table import matrices, table

try:
    import petsc4py
    petsc4py.init([])
    from petsc4py import PETSc
except ImportError:
    PETSc = None

WIDTHS = [1, 2, 4, 8, 16]


def by_quiver(a, x):
    matrix = quiver.SparseMatrix(a)
    return lambda: matrix @ x


def by_quiver_in_place(a, x):
    matrix = quiver.SparseMatrix(a)
    y = np.empty((a.shape[0], *x.shape[1:]))
    return lambda: quiver.spmm(matrix, x, out=y)


def by_scipy(a, x):
    return lambda: a @ x


def by_petsc(a, x):
    matrix = PETSc.Mat().createAIJWithArrays(a.shape, (a.indptr, a.indices, a.data), comm=PETSc.COMM_SELF)
    if x.ndim == 1:
        vector, result = (PETSc.Vec().createWithArray(each, comm=PETSc.COMM_SELF) for each in (x, np.zeros(len(x))))
        return lambda: matrix.mult(vector, result) or result.getArray()
    block = PETSc.Mat().createDense(x.shape, array=np.asfortranarray(x), comm=PETSc.COMM_SELF)
    block.assemble()
    product = matrix.matMult(block)
    return lambda: matrix.matMult(block, result=product).getDenseArray()


def read(command, spec):
    """The generated matrix in SciPy's CSR format, with ascending columns."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "matrix.mtx")
        subprocess.run([command, "gen", spec, "-o", file], check=True, capture_output=True)
        a = sp.csr_matrix(scipy.io.mmread(file))
    a.sum_duplicates()
    return a


def check(name, a, x, y, rng):
    """Compares some rows with sums in long double; the bound is that of any order of the sums."""
    lengths = np.diff(a.indptr)
    for row in [int(np.argmax(lengths)), *rng.integers(0, a.shape[0], 200)]:
        entries = slice(a.indptr[row], a.indptr[row + 1])
        terms = a.data[entries].astype(np.longdouble) * x[a.indices[entries]].T
        bound = (lengths[row] + 1) * np.finfo(float).eps * np.abs(terms).sum(axis=-1)
        if not np.all(np.abs(terms.sum(axis=-1) - y[row]) <= bound):
            raise SystemExit(f"{name}: row {row} is wrong")


def medians(calls, rounds, least=1e-3):
    """Seconds of a call of each program, in samples that take turns."""
    def seconds(call, many):
        begin = time.perf_counter()
        for _ in range(many):
            call()
        return (time.perf_counter() - begin) / many

    many = {name: max(1, math.ceil(least / max(seconds(call, 2), 1e-9))) for name, call in calls.items()}
    samples = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(seconds(call, many[name]))
    return {name: statistics.median(times) for name, times in samples.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quiver", required=True, help="the command, which generates the matrices")
    parser.add_argument("--scale", type=float, default=1, help="factor on the numbers of rows")
    parser.add_argument("--rounds", type=int, default=9, help="samples of each product")
    parser.add_argument("--only", nargs="+", help="some of the matrices")
    options = parser.parse_args()
    programs = {"quiver": by_quiver, "SciPy": by_scipy}
    peers = {"SciPy": "quiver"}
    if PETSc:
        programs |= {"quiver, out=Y": by_quiver_in_place, "PETSc": by_petsc}
        peers["PETSc"] = "quiver, out=Y"
    print(f"quiver {quiver.__version__} with OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}, SciPy "
          f"{scipy.__version__}, PETSc {PETSc.Sys.getVersion() if PETSc else 'not installed'}")
    rng = np.random.default_rng(8)
    ratios = {name: {} for name in peers}
    times, set_up = {}, {}
    for kind, spec in matrices(options.scale).items():
        if options.only and kind not in options.only:
            continue
        a = read(options.quiver, spec)
        set_up[kind] = [1e3 * medians({"": lambda: quiver.SparseMatrix(a)}, 5)[""]]
        times[kind] = []
        for width in WIDTHS:
            x, other = (rng.standard_normal((a.shape[1], width) if width > 1 else a.shape[1]) for _ in range(2))
            for name, program in programs.items():
                check(name, a, other, program(a, other)(), rng)
            found = medians({name: program(a, x) for name, program in programs.items()}, options.rounds)
            times[kind].append(1e3 * found["quiver"])
            for name, own in peers.items():
                ratios[name].setdefault(kind, []).append(found[name] / found[own])
        set_up[kind].append(set_up[kind][0] / times[kind][WIDTHS.index(8)])
    for name, rows in ratios.items():
        print(table(f"speed over {name}", rows, WIDTHS, ".2f"))
        wide = [ratio for row in rows.values() for ratio in row[1:]]
        print(f"\nGeometric mean for more than one column: {statistics.geometric_mean(wide):.2f}, "
              f"least {min(wide):.2f}")
    print(table("quiver, ms", times, WIDTHS, ".3g"))
    print(table("set-up", set_up, ["ms", "products with 8 columns"], ".3g"), flush=True)


if __name__ == "__main__":
    main()
