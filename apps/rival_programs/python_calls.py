#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times whole calls of the Python package and of cupyx and torch, on one GPU in one process.

    PYTHONPATH=build/python python3 apps/rival_programs/python_calls.py [--markdown FILE]

Eigenvalues: the matrix is a CSR matrix of cupyx in device memory. Every solver computes the smallest eigenvalues to
||r|| <= 1e-8 ||A||. Times are those of the whole first and second call from Python. `wrong` counts eigenvalues that
differ by more than 1e-6 ||A|| from a formula (laplace3d), otherwise from those of `quiver.eigsh` with tol=1e-12. The
script uses the largest row sum of |A| as ||A||. For the graph it prints the number of components, counted by a search,
and the number of null vectors found.
Products: medians of 21 calls on tensors of torch, and their bandwidth as a percentage of that of a copy.
Overhead: calls on tensors of 10^4 x 8 and 1 x 8 doubles, enqueued one after another. The time of a call on one row
is the overhead from Python to the kernel.
"""
import argparse
import math
import os
import statistics
import sys
import time

started = time.perf_counter()
import quiver

import_seconds = time.perf_counter() - started

import cupy
import cupyx.scipy.sparse
import cupyx.scipy.sparse.linalg
import numpy
import scipy.sparse
import scipy.sparse.csgraph
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu import graph_edges, residual

TOLERANCE = 1e-8


def laplace3d(nx):
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(nx, nx))
    one = scipy.sparse.eye_array(nx)
    product = scipy.sparse.kron
    matrix = product(product(line, one), one) + product(product(one, line), one) + product(product(one, one), line)
    one_way = 2 - 2 * numpy.cos(numpy.arange(1, 12) * math.pi / (nx + 1))
    return matrix, numpy.sort((one_way[:, None, None] + one_way[:, None] + one_way).ravel())


def spin_chain(sites):
    """A Heisenberg ring, restricted to states with as many spins up as down."""
    states = numpy.arange(1 << sites, dtype=numpy.int64)
    states = states[numpy.bitwise_count(states) == sites // 2]
    rows, columns, diagonal = [], [], numpy.zeros(states.size)
    for site in range(sites):
        pair = (1 << site) | (1 << ((site + 1) % sites))
        differ = numpy.isin(states & pair, (0, pair), invert=True)
        diagonal += numpy.where(differ, -0.25, 0.25)
        rows.append(numpy.flatnonzero(differ))
        columns.append(numpy.searchsorted(states, states[differ] ^ pair))
    rows, columns = numpy.concatenate(rows), numpy.concatenate(columns)
    flips = scipy.sparse.coo_array((numpy.full(rows.size, 0.5), (rows, columns)), shape=(states.size, states.size))
    return flips.tocsr() + scipy.sparse.diags_array(diagonal), None


def graph(points):
    edges = graph_edges(points)
    components = scipy.sparse.csgraph.connected_components(edges, directed=False)[0]
    return scipy.sparse.csgraph.laplacian(edges.astype(numpy.float64)), components


def by_quiver(matrix, k, norm, tolerance=TOLERANCE):
    return quiver.eigsh(matrix, k=k, which="SA", tol=tolerance)


def by_cupyx(matrix, k, norm):
    # The tolerance of cupyx is an absolute residual.
    return cupyx.scipy.sparse.linalg.eigsh(matrix, k=k, which="SA", tol=TOLERANCE * norm)


def by_torch(matrix, k, norm):
    a = torch.sparse_csr_tensor(*(torch.as_tensor(x, device="cuda") for x in (matrix.indptr, matrix.indices, matrix.data)),
                                size=matrix.shape)
    values, vectors = torch.lobpcg(a, k=k, largest=False, tol=TOLERANCE, niter=2000, n=k)
    return cupy.asarray(values), cupy.asarray(vectors)


def seconds_of(call):
    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    result = call()
    cupy.cuda.Device().synchronize()
    return result, time.perf_counter() - begin


def eigenvalues(out):
    out("| matrix | solver | first call, s | second call, s | over quiver | residual / norm | wrong |\n|---|---|---|---|---|---|---|")
    for name, k, make in (("laplace3d, nx=100", 10, lambda: laplace3d(100)),
                          ("graph of 300,000 points", 16, lambda: graph(300_000)),
                          ("Heisenberg ring of 22 spins", 10, lambda: spin_chain(22))):
        host, known = make()
        matrix = cupyx.scipy.sparse.csr_matrix(host.tocsr().astype(numpy.float64))
        norm = float(abs(matrix).sum(axis=1).max())
        mine = None
        for solver, solve in (("quiver.eigsh", by_quiver), ("cupyx eigsh", by_cupyx), ("torch.lobpcg", by_torch)):
            try:
                (values, vectors), first = seconds_of(lambda: solve(matrix, k, norm))
                (values, vectors), second = seconds_of(lambda: solve(matrix, k, norm))
            except Exception as error:  # a rival that fails is a result
                out(f"| {name} | {solver} | {type(error).__name__}: {str(error)[:80]} | | | | |")
                continue
            values = cupy.asarray(values)
            order = cupy.argsort(values)
            values, vectors = values[order], cupy.asarray(vectors)[:, order]
            if mine is None:
                mine = second
                reference = by_quiver(matrix, k, norm, 1e-12)[0].get()
                if isinstance(known, int):
                    null = int((abs(reference) <= 1e-9 * norm).sum())
                    out(f"| {name}: {known} components, {null} null vectors found by quiver | | | | | | |")
                elif known is not None:
                    reference = known[:k]
            wrong = int((abs(values.get() - reference) > 1e-6 * norm).sum())
            worst = residual(matrix, values, vectors) / norm
            out(f"| {name} | {solver} | {first:.3f} | {second:.3f} | {second / mine:.2f} | {worst:.1e} | {wrong} of {k} |")


def median(call, times=21):
    call()
    found = []
    for _ in range(times):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return statistics.median(found)


def products(out):
    out("\n| product, float64 | quiver, ms | torch, ms | quiver, GB/s | of a copy |\n|---|---|---|---|---|")
    rows = 10_000_000
    for width in (4, 8, 16, 32):
        a, b = (torch.randn(rows, width, dtype=torch.float64, device="cuda") for _ in "ab")
        c = torch.randn(width, width, dtype=torch.float64, device="cuda")
        y = torch.empty_like(a)
        copy = 2 * a.nbytes / median(lambda: y.copy_(a))
        for name, mine, other in (("A^T B", lambda: quiver.tsmttsm(a, b), lambda: a.T @ b),
                                  ("X C", lambda: quiver.tsmm(a, c, out=y), lambda: torch.matmul(a, c, out=y))):
            ours, theirs = median(mine), median(other)
            error = float((mine() - other()).abs().max())
            assert error < 1e-6 * rows, (name, width, error)
            speed = 2 * a.nbytes / ours
            out(f"| {name}, 10^7 x {width} | {1e3 * ours:.3f} | {1e3 * theirs:.3f} | {speed / 1e9:.0f} | {100 * speed / copy:.0f}% |")


def each_of_many(call, times=500):
    """Seconds of one of many calls that are enqueued one after another."""
    call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / times


def overhead(out):
    out("\n| call on rows x 8 doubles, us | host, 10,000 rows | host, 1 row | GPU, 10,000 rows | GPU, 1 row |\n|---|---|---|---|---|")
    names = ("quiver.tsmttsm", "torch, A.T @ B", "quiver.tsmm", "torch, A @ C")
    found = {name: [] for name in names}
    for place in ("cpu", "cuda"):
        for rows in (10_000, 1):
            a, b = (torch.randn(rows, 8, dtype=torch.float64, device=place) for _ in "ab")
            c = torch.randn(8, 8, dtype=torch.float64, device=place)
            calls = (lambda: quiver.tsmttsm(a, b), lambda: a.T @ b, lambda: quiver.tsmm(a, c), lambda: a @ c)
            for name, call in zip(names, calls):
                found[name].append(statistics.median(each_of_many(call) for _ in range(9)))
    for name in names:
        out(f"| {name} | " + " | ".join(f"{1e6 * seconds:.1f}" for seconds in found[name]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", default="", help="file for the tables")
    options = parser.parse_args()
    lines = []

    def out(line):
        print(line, flush=True)
        lines.append(line)

    small = cupyx.scipy.sparse.csr_matrix(laplace3d(20)[0].tocsr())
    first, second = (seconds_of(lambda: quiver.eigsh(small, k=4, which="SA"))[1] for _ in range(2))
    out(f"import quiver: {import_seconds:.2f} s; eigsh of 8,000 rows: first call of the process {first:.2f} s, second {second:.2f} s\n")
    eigenvalues(out)
    products(out)
    overhead(out)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
