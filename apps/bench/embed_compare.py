#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares quiver.spectral_embedding with scikit-learn (which it needs) and SciPy's eigsh.

    OMP_NUM_THREADS=1 PYTHONPATH=BUILD/python python3 apps/bench/embed_compare.py

Each graph joins points to their 10 nearest neighbours. A call is one in a fresh process; it gets
the adjacency matrix in CSR arrays and returns 16 vectors. The table has the processor time of the
call, the number of null vectors among 16 found against those that exist, and the largest error of
an eigenvalue, relative to the norm 2 and against the smallest found by any program at each place.
"""
import argparse
import multiprocessing
import time
import warnings

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.sparse.csgraph import connected_components, laplacian

VECTORS = 16
#: name: points, clusters, distance of the clusters in units of their radius, dimensions
GRAPHS = {"1 cluster": (20000, 1, 0, 2), "20 clusters that touch": (20000, 20, 2, 2),
          "9 clusters apart": (20000, 9, 50, 2), "200 clusters apart": (20000, 200, 50, 2),
          "1 cluster in 8 dimensions": (20000, 1, 0, 8), "12 clusters apart": (60000, 12, 50, 2)}


def graph_of(points, clusters, distance, dimensions, scale):
    import quiver

    rng = np.random.default_rng(5)
    n = max(int(points * scale), 20 * clusters)
    points = rng.standard_normal((n, dimensions))
    cluster = np.arange(n) % clusters
    points[:, 0] += distance * (cluster % 20)
    points[:, 1] += distance * (cluster // 20)
    return quiver.nearest_neighbours(points, 10)


def by_quiver(a, **options):
    import quiver

    result = quiver.spectral_embedding(a, VECTORS, drop_first=False, **options)
    return result.vectors


def by_scikit_learn(a, solver):
    from sklearn.manifold import spectral_embedding

    return spectral_embedding(a, n_components=VECTORS, drop_first=False, eigen_solver=solver,
                              random_state=0)


def by_scipy(a, **options):
    matrix, root = laplacian(a, normed=True, return_diag=True)
    rng = np.random.default_rng(1)
    _, u = scipy.sparse.linalg.eigsh(matrix.tocsc(), VECTORS, rng=rng, **options)
    return u / root[:, None]


PROGRAMS = {
    "quiver, auto": lambda a: by_quiver(a),
    "quiver, lobpcg": lambda a: by_quiver(a, method="lobpcg"),
    "scikit-learn, arpack": lambda a: by_scikit_learn(a, "arpack"),
    "scikit-learn, lobpcg": lambda a: by_scikit_learn(a, "lobpcg"),
    "scipy eigsh, SA": lambda a: by_scipy(a, which="SA"),
    "scipy eigsh, sigma=-1e-3": lambda a: by_scipy(a, sigma=-1e-3),
}


def call(program, a, pipe):
    warnings.simplefilter("ignore")
    try:
        PROGRAMS[program](sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(100, 100)).tocsr())
    except Exception:  # imports and libraries are loaded; the small graph need not be solved
        pass
    begin = time.process_time()
    try:
        x = np.asarray(PROGRAMS[program](a))
    except Exception as error:
        pipe.send((time.process_time() - begin, f"{type(error).__name__}: {str(error)[:60]}"))
        return
    seconds = time.process_time() - begin
    matrix, root = laplacian(a, normed=True, return_diag=True)
    u, _ = np.linalg.qr(root[:, None] * x)
    pipe.send((seconds, np.linalg.eigvalsh(u.T @ (matrix @ u))))


def measure(program, a, limit):
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=call, args=(program, a, there))
    process.start()
    answer = here.recv() if here.poll(limit) else (None, f"none in {limit} s")
    process.terminate()
    process.join()
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=float, default=1, help="factor of the numbers of points")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a call")
    parser.add_argument("--only", default="", help="graphs whose name has this text")
    options = parser.parse_args()
    graphs = {name: graph for name, graph in GRAPHS.items() if options.only in name}
    print("| graph | components | program | processor s | null vectors | largest error |")
    print("|---|---|---|---|---|---|")
    for name, graph in graphs.items():
        a = graph_of(*graph, options.scale)
        components = connected_components(a)[0]
        answers = {program: measure(program, a, options.limit) for program in PROGRAMS}
        values = [w for _, w in answers.values() if not isinstance(w, str)]
        best = np.min(values, axis=0)
        for program, (seconds, w) in answers.items():
            row = [f"{name}, {a.shape[0]} points", str(components), program]
            if isinstance(w, str):
                row += ["" if seconds is None else f"{seconds:.2f}", w, ""]
            else:
                row += [f"{seconds:.2f}", f"{(abs(w) < 1e-9).sum()} of {min(components, VECTORS)}",
                        f"{np.max(w - best) / 2:.0e}"]
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
