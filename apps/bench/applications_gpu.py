#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times pca, kmeans, svds and spectral_embedding on a GPU beside torch, cupy and SciPy.

    PYTHONPATH=BUILD/python python3 apps/bench/applications_gpu.py [--scale F] [--only NAME ...]

All programs of a table get the same arrays on the GPU, in the same run. Times are medians of five
calls after a first one (of one call if the first takes more than 3 s), with the device synchronised
before and after. `first call` may wait for kernels to compile. In the tables of pca, svds and embed,
a program that fails has a line with its error.
"""
import argparse
import statistics
import time

import cupy
import cupyx.scipy.sparse
import cupyx.scipy.sparse.linalg
import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph
import scipy.sparse.linalg
import torch

import quiver


def timed(call, repeat=5, budget=6.0):
    """Result, seconds of the first call and the median of the others."""
    def once():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        return result, time.perf_counter() - begin

    result, first = once()
    times = [once()[1] for _ in range(1 if first > budget / 2 else repeat)]
    return result, first, statistics.median(times)


def table(title, programs, error):
    """Prints a line for each program; error(result) compares it with exact values."""
    print(f"\n{title}\n\n| program | ms | first call, ms | error |\n|---|---|---|---|")
    for name, call in programs.items():
        try:
            result, first, median = timed(call)
            print(f"| {name} | {1e3 * median:.3g} | {1e3 * first:.3g} | {error(result):.1e} |",
                  flush=True)
        except Exception as failure:  # one program that fails must not end the comparison
            words = str(failure).splitlines()[0][:90]
            print(f"| {name} | {type(failure).__name__}: {words} | | |", flush=True)


def host(x):
    return x.get() if hasattr(x, "get") else x.cpu().numpy() if hasattr(x, "cpu") else np.asarray(x)


def pca(scale):
    for m, char, mean in [(32, "d", 0.0), (64, "d", 0.0), (32, "f", 0.0), (32, "d", 1e6)]:
        n = int(1e7 * scale)
        rng = cupy.random.default_rng(4)
        x = rng.standard_normal((n, m), dtype=char) * cupy.logspace(0, -2, m, dtype=char) \
            + cupy.asarray(mean, dtype=char)
        centred = np.zeros((m, m))
        middle = host(x[:1000].mean(axis=0, dtype="d"))
        sums = np.zeros(m)
        for part in range(0, n, 1 << 20):  # in double, around a nearby point
            piece = x[part:part + (1 << 20)].astype("d") - cupy.asarray(middle)
            centred += host(piece.T @ piece)
            sums += host(piece.sum(axis=0))
        exact = np.linalg.eigvalsh((centred - np.outer(sums, sums) / n) / (n - 1))[::-1]
        t = torch.as_tensor(x, device="cuda")

        def covariance():
            means = t.mean(dim=0)
            gram = (t.T @ t - n * torch.outer(means, means)) / (n - 1)
            return torch.linalg.eigh(gram)[0].flip(0)

        table(f"PCA, {n:,} x {m} {char}, mean {mean:g}; error of the variances, relative to the "
              "largest", {
                  "quiver.pca": lambda: quiver.pca(x).explained_variance,
                  "torch, covariance and eigh": covariance,
                  "torch.pca_lowrank": lambda: torch.pca_lowrank(t, q=m)[1] ** 2 / (n - 1),
              }, lambda values: np.max(np.abs(host(values).astype("d") - exact)) / exact[0])


def kmeans(scale):
    n, d, k = int(1e7 * scale), 16, 64
    for char in "fd":
        rng = cupy.random.default_rng(5)
        x = rng.standard_normal((n, d), dtype=char)
        t = torch.as_tensor(x, device="cuda")
        start = x[:k].copy()

        def by_torch(steps):
            c = torch.as_tensor(start, device="cuda").clone()
            for _ in range(steps):
                distance = torch.addmm((c * c).sum(1)[None, :], t, c.T, alpha=-2)
                label = distance.argmin(1)
                sums = torch.zeros_like(c).index_add_(0, label, t)
                c = sums / torch.bincount(label, minlength=k)[:, None]
            return c

        def by_quiver(steps):
            return quiver.kmeans(x, k, init=start, max_iter=steps, tol=0).centers

        print(f"\nk-means, {n:,} x {d} {char}, k = {k}: ms of an iteration, from calls of 3 and 13")
        print("\n| program | ms | difference of the centres |\n|---|---|---|")
        expected = host(by_torch(13)).astype("d")
        for name, call in {"quiver.kmeans": by_quiver, "torch": by_torch}.items():
            short, long = timed(lambda: call(3))[2], timed(lambda: call(13))
            error = np.max(np.abs(host(long[0]).astype("d") - expected))
            print(f"| {name} | {100 * (long[2] - short):.3g} | {error:.1e} |", flush=True)


def svds(scale):
    rng = np.random.default_rng(6)
    for rows, columns, per_row in [(300000, 90000, 8), (15000, 240000, 60)]:
        rows, columns = int(rows * scale), int(columns * scale)
        count = rows * per_row
        a = sp.csr_matrix((rng.standard_normal(count),
                           (np.repeat(np.arange(rows), per_row), rng.integers(0, columns, count))),
                          shape=(rows, columns))
        a.sum_duplicates()
        on_device = cupyx.scipy.sparse.csr_matrix(a)
        exact = np.sort(scipy.sparse.linalg.svds(a, 6, return_singular_vectors=False, tol=1e-12))
        table(f"svds, {rows:,} x {columns:,}, {per_row} entries a row, 6 values; error relative to "
              "the largest", {
                  "quiver.svds": lambda: quiver.svds(on_device, 6, tol=1e-10)[1],
                  "cupyx svds": lambda: cupyx.scipy.sparse.linalg.svds(on_device, 6, tol=1e-10)[1],
                  "SciPy svds on the host": lambda: scipy.sparse.linalg.svds(a, 6, tol=1e-10)[1],
              }, lambda s: np.max(np.abs(np.sort(host(s)) - exact)) / exact[-1])


def embed(scale):
    for n, clusters, apart in [(300000, 20, 3.0), (300000, 20, 50.0), (1000000, 20, 3.0)]:
        n = int(n * scale)
        rng = np.random.default_rng(7)
        points = rng.standard_normal((n, 2))
        points[:, 0] += apart * (np.arange(n) % clusters)
        graph = quiver.nearest_neighbours(points, 10).tocsr()
        components = sp.csgraph.connected_components(graph)[0]
        on_device = cupyx.scipy.sparse.csr_matrix(graph)
        degree = np.asarray(graph.sum(axis=1)).ravel()
        scaling = sp.diags_array(1 / np.sqrt(degree))
        normal = (sp.eye_array(n) - scaling @ graph @ scaling).tocsr()
        flipped = cupyx.scipy.sparse.csr_matrix(2 * sp.eye_array(n).tocsr() - normal)
        t = torch.sparse_csr_tensor(normal.indptr, normal.indices, normal.data, normal.shape,
                                    dtype=torch.float64, device="cuda")
        found = []

        def by_quiver():
            result = quiver.spectral_embedding(on_device, 16, drop_first=False)
            found[:] = result.eigenvalues
            return result.eigenvalues

        def by_torch():
            start = torch.randn(n, 16, dtype=torch.float64, device="cuda")
            return torch.lobpcg(t, X=start, largest=False, niter=400, tol=1e-8)[0]

        table(f"Spectral embedding, {n:,} points, {clusters} clusters {apart:g} apart, "
              f"{components} components, 16 vectors; error of the eigenvalues against quiver's", {
                  "quiver.spectral_embedding": by_quiver,
                  "cupyx eigsh": lambda: 2 - cupyx.scipy.sparse.linalg.eigsh(
                      flipped, 16, which="LA", return_eigenvectors=False),
                  "torch.lobpcg": by_torch,
              }, lambda values: np.max(np.abs(np.sort(host(values)) - np.sort(host(found)))))


def main():
    tables = {each.__name__: each for each in (pca, kmeans, svds, embed)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="factor for the number of rows")
    parser.add_argument("--only", nargs="+", choices=tables, default=list(tables))
    options = parser.parse_args()
    print(f"quiver {quiver.__version__}, torch {torch.__version__}, cupy {cupy.__version__}, "
          f"{torch.cuda.get_device_name()}")
    for name in options.only:
        tables[name](options.scale)


if __name__ == "__main__":
    main()
