#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares eigensolvers and QR of cupy and torch with quiver's, on one GPU in one run.

    python3 apps/rival_programs/gpu.py --quiver build/apps/quiver gen:laplace3d,nx=60 graph:300000
    python3 apps/rival_programs/gpu.py --quiver build/apps/quiver --qr 4,8,16,32,64

Each solver computes the smallest eigenvalues to ||r|| <= 1e-8 ||A|| twice; the table has the time of the second
solve. "wrong" counts eigenvalues that differ by more than 1e-6 ||A|| from the exact ones if a formula is known,
else from those of quiver. A missing copy shifts all later eigenvalues, so that they count as wrong too.
graph:N is the Laplacian of a graph that joins each of N random points in 20 clusters with its 10 nearest
neighbours; its number of components, counted by a search of the graph, must be the multiplicity of 0.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time

import cupy
import cupyx.scipy.sparse
import cupyx.scipy.sparse.linalg
import numpy
import scipy.io
import scipy.sparse
import scipy.sparse.csgraph
import scipy.spatial
import torch

CALLS = 2
TOLERANCE = 1e-8


def graph_edges(points, clusters=20, groups=9, neighbours=10):
    """The adjacency matrix of a graph of nearest neighbours with at least `groups` components."""
    random = numpy.random.default_rng(1)
    # Clusters of one group overlap; groups are far apart.
    group = numpy.arange(clusters) % groups
    centres = random.normal(size=(clusters, 3)) + 1000.0 * group[:, None] * numpy.array([1.0, 0.5, 0.25])
    x = centres[random.integers(clusters, size=points)] + random.normal(size=(points, 3))
    _, near = scipy.spatial.cKDTree(x).query(x, neighbours + 1, workers=-1)
    rows = numpy.repeat(numpy.arange(points), neighbours)
    edges = scipy.sparse.coo_matrix((numpy.ones(rows.size), (rows, near[:, 1:].ravel())), shape=(points, points))
    edges = edges.tocsr()
    return edges.maximum(edges.T)


def graph_laplacian(points, path):
    """Writes the Laplacian of graph_edges(points); returns the number of components of the graph."""
    edges = graph_edges(points)
    laplacian = scipy.sparse.csgraph.laplacian(edges).astype(numpy.int32).tocoo()
    scipy.io.mmwrite(path, laplacian, symmetry="symmetric")
    return scipy.sparse.csgraph.connected_components(edges, directed=False)[0]


def quiver_eigs(quiver, spec, k, folder):
    """The report of the last of CALLS calls."""
    path = os.path.join(folder, "quiver.json")
    for _ in range(CALLS):
        subprocess.run(
            [quiver, "eigs", spec, "-k", str(k), "--tol", str(TOLERANCE), "--device", "cuda", "--json", path],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def timed(call):
    seconds = []
    for _ in range(CALLS):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        result = call()
        cupy.cuda.Device().synchronize()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return result, seconds


def residual(matrix, values, vectors):
    difference = matrix @ vectors - vectors * values
    return float(cupy.linalg.norm(difference, axis=0).max())


def cupy_eigsh(matrix, k, norm):
    # The tolerance of cupyx is an absolute residual.
    return cupyx.scipy.sparse.linalg.eigsh(matrix, k=k, which="SA", tol=TOLERANCE * norm)


def torch_lobpcg(matrix, k, norm):
    # The tolerance of torch is relative to the norm of the matrix.
    del norm
    a = torch.sparse_csr_tensor(
        torch.as_tensor(matrix.indptr, device="cuda"),
        torch.as_tensor(matrix.indices, device="cuda"),
        torch.as_tensor(matrix.data, device="cuda"),
        size=matrix.shape,
    )
    values, vectors = torch.lobpcg(a, k=k, largest=False, tol=TOLERANCE, niter=2000, n=k)
    return cupy.asarray(values), cupy.asarray(vectors)


def compare(quiver, spec, folder):
    """Prints a row for each solver and returns the rows."""
    path = os.path.join(folder, "a.mtx")
    components = 0
    k = 10
    if spec.startswith("graph:"):
        k = 16
        components = graph_laplacian(int(spec.removeprefix("graph:")), path)
        given = path
    else:
        subprocess.run([quiver, "gen", spec, "-o", path], check=True, stdout=subprocess.DEVNULL)
        given = spec
    matrix = cupyx.scipy.sparse.csr_matrix(scipy.io.mmread(path).tocsr().astype(numpy.float64))
    mine = quiver_eigs(quiver, given, k, folder)
    norm = mine["norm_estimate"]
    known = mine.get("exact_eigenvalues") or mine["eigenvalues"]
    if components:
        null = sum(abs(value) <= 1e-6 * norm for value in known)
        print(f"| {spec}: {components} components, quiver finds {null} null vectors | | | | | |", flush=True)
    rows = []

    def report(solver, seconds, values, worst):
        wrong = sum(abs(a - b) > 1e-6 * norm for a, b in zip(values, known))
        ratio = seconds / mine["seconds"]["solve"]
        print(f"| {spec} | {solver} | {seconds:.3f} | {ratio:.2f} | {worst:.1e} | {wrong} |", flush=True)
        rows.append({"matrix": spec, "k": k, "solver": solver, "seconds": seconds, "residual": worst, "wrong": wrong,
                     "components": components})

    report("quiver", mine["seconds"]["solve"], mine["eigenvalues"], max(mine["residuals"]) / norm)
    for name, solve in (("cupyx eigsh", cupy_eigsh), ("torch.lobpcg", torch_lobpcg)):
        try:
            (values, vectors), seconds = timed(lambda solve=solve: solve(matrix, k, norm))
        except Exception as error:  # a rival that fails is a result
            print(f"| {spec} | {name} | {type(error).__name__}: {error} | | | |", flush=True)
            continue
        order = cupy.argsort(values)
        values, vectors = values[order], vectors[:, order]
        report(name, seconds[-1], [float(value) for value in values], residual(matrix, values, vectors) / norm)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quiver", default="quiver", help="the executable")
    parser.add_argument("--qr", default="", help="list of widths: times torch.linalg.qr of 10^7 rows of doubles")
    parser.add_argument("--json", default="", help="file for the rows of the table")
    parser.add_argument("specs", nargs="*", help="matrices: gen:..., as quiver gen takes them, or graph:N")
    options = parser.parse_args()
    if options.specs:
        print("| matrix | solver | seconds | over quiver | residual / norm | wrong |\n|---|---|---|---|---|---|")
        with tempfile.TemporaryDirectory() as folder:
            rows = [row for spec in options.specs for row in compare(options.quiver, spec, folder)]
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
    if options.qr:
        print("\n| width | torch.linalg.qr, ms |\n|---|---|")
        for width in map(int, options.qr.split(",")):
            x = torch.randn(10**7, width, dtype=torch.float64, device="cuda")
            _, seconds = timed(lambda x=x: torch.linalg.qr(x, mode="reduced"))
            print(f"| {width} | {1e3 * seconds[-1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
