#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Eigensolvers and QR of cupy and torch beside quiver's, on one GPU in one run.

    python3 apps/rival_programs/gpu.py --quiver build/apps/quiver gen:laplace3d,nx=60 gen:spinSZ,L=20
    python3 apps/rival_programs/gpu.py --quiver build/apps/quiver --qr 4,8,16,32,64

Each solver is asked for the 10 smallest eigenvalues to ||r|| <= 1e-8 ||A|| as far as it lets one ask, called
twice, and the second call counts. "wrong" counts eigenvalues that differ from quiver's list, verified or
exact, by more than 1e-6 ||A||: a copy that is missing shifts all that follow.
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
import scipy.io
import torch

K = 10
CALLS = 2


def quiver_eigs(quiver, spec, folder):
    """Eigenvalues, norm of A, and seconds of every call."""
    path = os.path.join(folder, "quiver.json")
    seconds = []
    for _ in range(CALLS):
        subprocess.run(
            [quiver, "eigs", spec, "-k", str(K), "--tol", "1e-8", "--device", "cuda", "--json", path],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        seconds.append(result["seconds"]["solve"])
    return result["eigenvalues"], result["norm_estimate"], seconds


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


def cupy_eigsh(matrix):
    return cupyx.scipy.sparse.linalg.eigsh(matrix, k=K, which="SA", tol=1e-8)


def torch_lobpcg(matrix):
    shape = matrix.shape
    a = torch.sparse_csr_tensor(
        torch.as_tensor(matrix.indptr, device="cuda"),
        torch.as_tensor(matrix.indices, device="cuda"),
        torch.as_tensor(matrix.data, device="cuda"),
        size=shape,
    )
    values, vectors = torch.lobpcg(a, k=K, largest=False, tol=1e-8, niter=2000, n=K)
    return cupy.asarray(values), cupy.asarray(vectors)


def compare(quiver, spec, folder):
    path = os.path.join(folder, "a.mtx")
    subprocess.run([quiver, "gen", spec, "-o", path], check=True, stdout=subprocess.DEVNULL)
    matrix = cupyx.scipy.sparse.csr_matrix(scipy.io.mmread(path).tocsr())
    known, norm, seconds = quiver_eigs(quiver, spec, folder)
    mine = seconds[-1]
    print(f"| {spec} | quiver | {mine:.3f} | 1.00 | | 0 |", flush=True)
    for name, solve in (("cupyx eigsh", cupy_eigsh), ("torch.lobpcg", torch_lobpcg)):
        try:
            (values, vectors), seconds = timed(lambda solve=solve: solve(matrix))
        except Exception as error:  # a rival that fails is a result
            print(f"| {spec} | {name} | {type(error).__name__}: {error} | | | |", flush=True)
            continue
        order = cupy.argsort(values)
        values, vectors = values[order], vectors[:, order]
        theirs = seconds[-1]
        wrong = sum(abs(float(a) - b) > 1e-6 * norm for a, b in zip(values, known))
        worst = residual(matrix, values, vectors) / norm
        print(f"| {spec} | {name} | {theirs:.3f} | {theirs / mine:.2f} | {worst:.1e} | {wrong} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quiver", default="quiver", help="the executable")
    parser.add_argument("--qr", default="", help="widths: torch.linalg.qr of 10^7 rows of doubles")
    parser.add_argument("specs", nargs="*", help="matrices, as quiver gen takes them")
    options = parser.parse_args()
    if options.specs:
        print("| matrix | solver | seconds | over quiver | residual / norm | wrong |\n|---|---|---|---|---|---|")
        with tempfile.TemporaryDirectory() as folder:
            for spec in options.specs:
                compare(options.quiver, spec, folder)
    if options.qr:
        print("\n| width | torch.linalg.qr, ms |\n|---|---|")
        for width in map(int, options.qr.split(",")):
            x = torch.randn(10**7, width, dtype=torch.float64, device="cuda")
            _, seconds = timed(lambda x=x: torch.linalg.qr(x, mode="reduced"))
            print(f"| {width} | {1e3 * seconds[-1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
