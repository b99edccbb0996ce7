#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processor times of quiver.pca, svd and svds beside scikit-learn, NumPy and SciPy, as Markdown.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=build/python python3 apps/bench/svd_table.py

With arguments (pca, svd, svds, dense) only these tables.

The best of three calls each (one for calls that take long). The error of a variance or value is
relative to the largest one; the exact variances are those of the centred rows in long double.
"""
import sys
import time

import numpy as np
import quiver
import scipy.sparse as sp
import scipy.sparse.linalg
from sklearn.decomposition import PCA

RNG = np.random.default_rng(0)


def processor_time(call, repeats=3):
    """The least processor time of some calls, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        best = min(best, time.process_time() - start)
    return best, result


def exact_variances(x):
    wide = x.astype(np.longdouble)
    wide -= wide[0].copy()
    wide -= wide.mean(axis=0)
    r = np.linalg.qr(wide.astype("d"), mode="r")
    return np.linalg.svd(r, compute_uv=False)**2 / (len(x) - 1)


def pca_table():
    print("| points | quiver.pca: ms | error | PCA covariance_eigh: ms | error | PCA full: ms | error |")
    print("|---|---|---|---|---|---|---|")
    for n, m, char, mean in ((1000000, 8, "d", 0), (1000000, 8, "f", 0), (200000, 64, "d", 0),
                             (200000, 64, "f", 0), (200000, 64, "d", 1e8), (1000000, 8, "f", 1e4)):
        x = (mean + RNG.standard_normal((n, m)) * np.logspace(0, -2, m)).astype(char)
        exact = exact_variances(x)

        def error(variances):
            return np.abs(np.asarray(variances, "d") - exact).max() / exact[0]

        seconds, ours = processor_time(lambda: quiver.pca(x))
        cells = [f"{n:,} x {m} {char}, mean {mean:g}", f"{1e3 * seconds:.0f}",
                 f"{error(ours.explained_variance):.0e}"]
        for solver, repeats in (("covariance_eigh", 3), ("full", 1)):
            seconds, theirs = processor_time(lambda: PCA(m, svd_solver=solver).fit(x), repeats)
            cells += [f"{1e3 * seconds:.0f}", f"{error(theirs.explained_variance_):.0e}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def svd_table():
    print("\n| block | quiver.svd: ms | values only | one_pass | numpy.linalg.svd | difference |")
    print("|---|---|---|---|---|---|")
    for n, m, condition in ((1000000, 8, 1e3), (200000, 64, 1e12)):
        x = RNG.standard_normal((n, m)) * np.logspace(0, -np.log10(condition), m)
        x = np.ascontiguousarray(x @ np.linalg.qr(RNG.standard_normal((m, m)))[0])
        times = [processor_time(lambda: quiver.svd(x)),
                 processor_time(lambda: quiver.svd(x, compute_uv=False)),
                 processor_time(lambda: quiver.svd(x, compute_uv=False, one_pass=True)),
                 processor_time(lambda: np.linalg.svd(x, full_matrices=False), 1)]
        difference = np.abs(times[0][1].s - times[3][1].S).max() / times[3][1].S[0]
        cells = [f"{1e3 * seconds:.0f}" for seconds, _ in times]
        print(f"| {n:,} x {m}, condition {condition:.0e} | " + " | ".join(cells) +
              f" | {difference:.0e} |", flush=True)


def random_rows(n, m, row):
    columns = RNG.integers(m, size=n * row)
    values = RNG.standard_normal(n * row)
    return sp.csr_array((values, (np.repeat(np.arange(n), row), columns)), shape=(n, m))


def svds_table():
    print("\n| matrix | k | quiver.svds: s | SciPy svds: s | products by column | difference | error bound |")
    print("|---|---|---|---|---|---|---|")
    falling = sp.diags_array(np.arange(1, 100001.0)**-0.5)
    for name, a in (("random, 100,000 x 30,000, 8 a row", random_rows(100000, 30000, 8)),
                    ("falling, 100,000 x 30,000, 6 a row",
                     (falling @ random_rows(100000, 30000, 6)).tocsr()),
                    ("random, 5,000 x 80,000, 60 a row", random_rows(5000, 80000, 60))):
        for k in (6, 20):
            ours, (_, s, _, info) = processor_time(
                lambda: quiver.svds(a, k, tol=1e-10, full_output=True), 1)
            theirs, (_, other, _) = processor_time(lambda: sp.linalg.svds(a, k), 1)
            difference = np.abs(np.sort(other)[::-1] - s).max() / s[0]
            print(f"| {name} | {k} | {ours:.2f} | {theirs:.2f} | {info.products} | "
                  f"{difference:.0e} | {info.errors.max() / s[0]:.0e} |", flush=True)


def dense_table():
    """Large dense matrices; the exact values are those from which a matrix is made, or NumPy's."""
    print("\n| matrix | which | quiver.svds: s | SciPy svds: s | numpy.linalg.svd: s | error | error of SciPy "
          "| error bound |")
    print("|---|---|---|---|---|---|---|---|")
    for name, n, m, values in (
            ("random", 3000, 2000, None), ("falling", 3000, 2000, np.arange(1, 2001.0)**-0.5),
            ("four copies", 2000, 3000, np.r_[3, 2, 2, 2, 2, 1.5, 1 / np.arange(2, 1996.0)])):
        a = RNG.standard_normal((n, m))
        if values is not None:
            u, v = (np.linalg.qr(RNG.standard_normal((rows, 2000)))[0] for rows in (n, m))
            a = (u * values) @ v.T
        whole, found = processor_time(lambda: np.linalg.svd(a, full_matrices=False), 1)
        exact = found[1] if values is None else values
        for which, wanted in (("LM", exact[:6]), ("SM", exact[-6:])):
            ours, (_, s, _, info) = processor_time(
                lambda: quiver.svds(a, which=which, full_output=True))
            cells, other = "|", ""
            if which == "LM":
                theirs, (_, values_of_scipy, _) = processor_time(lambda: sp.linalg.svds(a))
                other = f"{np.abs(np.sort(values_of_scipy)[::-1] - wanted).max() / exact[0]:.0e}"
                cells = f"{theirs:.2f} |"
            print(f"| {name}, {n:,} x {m:,} | {which} | {ours:.2f} | {cells} {whole:.2f} | "
                  f"{np.abs(s - wanted).max() / exact[0]:.0e} | {other} | "
                  f"{info.errors.max() / exact[0]:.0e} |", flush=True)


TABLES = {"pca": pca_table, "svd": svd_table, "svds": svds_table, "dense": dense_table}

if __name__ == "__main__":
    for table in sys.argv[1:] or TABLES:
        TABLES[table]()
