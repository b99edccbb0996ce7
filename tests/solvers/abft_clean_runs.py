#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs solves without injected faults under --abft correct: none may raise an alarm.

  python3 tests/solvers/abft_clean_runs.py --quiver build/apps/quiver --runs 1000 --jobs 8 --device cuda
  python3 tests/solvers/abft_clean_runs.py --quiver build/apps/quiver --data FOLDER --runs 200

Iterates over generated matrices (and, with --data, the matrices of FILES in FOLDER), scalars, methods,
ends of the spectrum and seeds. Exit status 0: every run has a result, and none has an alarm.
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

GENERATED = {
    "gen:laplace1d,nx=4000": "sdcz",
    "gen:laplace2d,nx=60": "sdcz",
    "gen:laplace3d,nx=17": "sdcz",
    "gen:spinSZ,L=14": "sdcz",
    "gen:spin,L=11": "sdcz",
    "gen:graphene,W=48": "sdcz",
    "gen:anderson,L=14": "sdcz",
    "gen:hubbard,L=6,n=3": "sdcz",
    "gen:topi,nx=10,ny=10,nz=4": "cz",
}
FILES = {
    "1138_bus": "dz", "bcsstk09": "dz", "bcsstk13": "dz", "bcsstk33_lap": "sd", "brack2_lap": "sd",
    "fe_4elt2_lap": "sdcz", "lund_a": "dz", "lund_b": "dz", "mhd1280b": "cz", "mhd4800b": "dz",
    "wathen7400": "sdcz",
}
METHODS = ("lanczos", "chebyshev", "lobpcg", "jd")
COUNTS = ("alarms", "rounding", "faults", "failed")


def cases(data):
    matrices = dict(GENERATED)
    if data:
        matrices.update({str(data / f"{name}.mtx.gz"): s for name, s in FILES.items()})
    for seed in itertools.count(1):
        for method, which, scalar in itertools.product(METHODS, ("largest", "smallest"), "sdcz"):
            for matrix, scalars in matrices.items():
                if scalar in scalars:
                    yield matrix, scalar, method, which, seed


def solve(case, options):
    matrix, scalar, method, which, seed = case
    tolerance = "1e-4" if scalar in "sc" else "1e-7"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        command = [options.quiver, "eigs", matrix, "-k", "4", "--scalar", scalar, "--which", which,
                   "--method", method, "--tol", tolerance, "--max-iterations", "60", "--seed",
                   str(seed), "--abft", "correct", "--device", options.device, "--json", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        counts = json.loads(out.read_text())["abft"] if out.exists() else None
    return case, done.returncode, counts, done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quiver", required=True, help="path of the quiver command")
    parser.add_argument("--data", type=pathlib.Path, help="folder of the files NAME.mtx.gz")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="number of concurrent runs")
    parser.add_argument("--device", default="host", choices=("host", "cuda"))
    options = parser.parse_args()
    total = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        chosen = itertools.islice(cases(options.data), options.runs)
        for case, status, counts, words in pool.map(lambda c: solve(c, options), chosen):
            # Status 1 is allowed: 60 iterations may be too few for convergence.
            if counts is None or status > 1:
                total["without a result"] += 1
                print(*case, f"status {status}: {words[:200]}", flush=True)
                continue
            total.update({key: counts[key] for key in ("checked", "basis_checks", *COUNTS)})
            total["converged"] += status == 0
            total["solves"] += 1
            if any(counts[key] for key in COUNTS):
                print(*case, {key: counts[key] for key in COUNTS}, flush=True)
    print(", ".join(f"{key} {total[key]}" for key in
                    ("solves", "converged", "without a result", "checked", "basis_checks", *COUNTS)))
    return int(total["solves"] == 0 or total["without a result"] > 0 or
               any(total[key] for key in COUNTS))


if __name__ == "__main__":
    sys.exit(main())
