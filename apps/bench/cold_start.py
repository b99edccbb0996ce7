#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times the first call of quiver with an empty kernel cache against the second one, for every method and scalar.

    python3 apps/bench/cold_start.py --quiver build/apps/quiver --cores 16 --markdown FILE.md

A call is a whole process. The first call starts with an empty QUIVER_CACHE (the kernel pack of the build remains), the
second call with the kernels that the first has stored there. The table has the seconds of both, bold if they differ
by more than --limit. --cores limits a process to that many cores. --others adds a table of calls with another k,
other block sizes and another matrix: each starts with the kernels of one call with k = 10 and is run twice.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

EIGEN = ["chebyshev", "lanczos", "jd", "lobpcg", "filter"]
LINEAR = ["cg", "gmres", "minres", "bicgstab"]


def command(quiver, method, scalar, folder, nx, k=10, extra=()):
    matrix = f"gen:laplace3d,nx={nx}"
    tail = ["--scalar", scalar, "--device", "cuda", *extra]
    if method == "qr":
        return [quiver, "qr", f"{folder}/{scalar}.h5", "-o", f"{folder}/q.h5", *tail]
    if method in LINEAR:
        return [quiver, "solve", matrix, "--rhs", "random:8", "--method", method, *tail]
    if method == "filter":
        # A small matrix, because a window with few of the eigenvalues of a large matrix takes long.
        return [quiver, "eigs", "gen:laplace3d,nx=20", "--window=-0.05:0.15", "--method", method, *tail]
    return [quiver, "eigs", matrix, "-k", str(k), "--method", method, *tail]


def seconds(arguments, cache, cores):
    environment = dict(os.environ, QUIVER_CACHE=cache)
    if cores:
        arguments = ["taskset", "-c", cores, *arguments]
        environment["OMP_NUM_THREADS"] = str(len(range_of(cores)))
    begin = time.monotonic()
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    elapsed = time.monotonic() - begin
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return elapsed


def range_of(cores):
    first, _, last = cores.partition("-")
    return range(int(first), int(last or first) + 1)


def first_and_second(arguments, cores, cache=None):
    with tempfile.TemporaryDirectory() as empty:
        return [seconds(arguments, cache or empty, cores) for _ in range(2)]


def measure(options, folder, report):
    cores = f"{options.first_core}-{options.first_core + options.cores - 1}" if options.cores else None
    table = {}
    for scalar in options.scalars.split(","):
        if "qr" in options.methods:
            vectors = [options.quiver, "eigs", f"gen:laplace3d,nx={options.nx}", "-k", "8", "--vectors",
                       f"{folder}/{scalar}.h5", "--scalar", scalar, "--device", "cuda"]
            seconds(vectors, f"{folder}/kept", None)
        for method in options.methods.split(","):
            try:
                cell = first_and_second(command(options.quiver, method, scalar, folder, options.nx), cores)
            except RuntimeError as error:
                cell = str(error)
            table.setdefault(method, {})[scalar] = cell
            report(method, scalar, cell)
    return table


def other_calls(options, folder, report):
    """After one call, times calls that differ in k, block or matrix, twice each."""
    cores = f"{options.first_core}-{options.first_core + options.cores - 1}" if options.cores else None
    table = {}
    for method in [m for m in options.methods.split(",") if m in ("chebyshev", "lanczos", "jd", "lobpcg")]:
        cache = f"{folder}/other-{method}"
        seconds(command(options.quiver, method, "d", folder, options.nx), cache, cores)
        for name, k, extra, nx in [("k=7", 7, (), options.nx), ("k=17", 17, (), options.nx),
                                   ("block 3", 10, ("--block", "3"), options.nx),
                                   ("block 5", 10, ("--block", "5"), options.nx), ("nx=48", 10, (), 48)]:
            arguments = command(options.quiver, method, "d", folder, nx, k, extra)
            try:
                cell = first_and_second(arguments, cores, cache)
            except RuntimeError as error:
                cell = str(error)
            table.setdefault(method, {})[name] = cell
            report(method, name, cell)
    return table


def text(cell, limit):
    if isinstance(cell, str):
        return "failed"
    shown = f"{cell[0]:.2f} / {cell[1]:.2f}"
    return f"**{shown}**" if cell[0] - cell[1] > limit else shown


def markdown(table, limit):
    columns = list(next(iter(table.values())))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(text(row[c], limit) for c in columns) + " |" for name, row in table.items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quiver", default="build/apps/quiver")
    parser.add_argument("--methods", default=",".join(EIGEN + LINEAR + ["qr"]))
    parser.add_argument("--scalars", default="s,d,c,z")
    parser.add_argument("--nx", type=int, default=60)
    parser.add_argument("--cores", type=int, default=0, help="number of cores of a process; 0: all")
    parser.add_argument("--first-core", type=int, default=0, help="number of the first core of --cores")
    parser.add_argument("--limit", type=float, default=1,
                        help="difference in seconds above which a cell is bold (0.5 for --others)")
    parser.add_argument("--others", action="store_true", help="also calls with other k, block and matrix")
    parser.add_argument("--markdown", help="a file for the table; otherwise it is printed")
    parser.add_argument("--json", help="a file for the seconds")
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    try:
        report = lambda *cell: print(*cell, flush=True)
        tables = {"first": measure(options, folder, report)}
        pages = [markdown(tables["first"], options.limit)]
        if options.others:
            tables["others"] = other_calls(options, folder, report)
            pages.append(markdown(tables["others"], 0.5))
    finally:
        shutil.rmtree(folder)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(tables, file, indent=1)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write("\n".join(pages))
    else:
        print("\n".join(pages))


if __name__ == "__main__":
    main()
