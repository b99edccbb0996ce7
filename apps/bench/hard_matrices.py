#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs `quiver eigs` with its default method on ill-conditioned, graded and clustered matrices and compares every result
with SciPy.

    python3 apps/bench/hard_matrices.py --quiver build/apps/quiver --random 300 --data FOLDER --markdown FILE.md

--random N makes N random problems: kind of matrix, size, condition, scalar, wanted eigenvalues and number of ranks are
drawn from --seed. --data adds every NAME.mtx.gz of a folder that has a NAME.eigs.json with its `smallest` and `largest`
eigenvalues. A case passes if the command converges within --seconds, and every eigenvalue that it reports is the wanted
one within the stated tolerance and the stated digits. For each case that fails, the script prints the command that
repeats it; --only INDEX --keep FOLDER also keeps the matrix. Long runs can be made in pieces: --first and --random
choose the random cases, and --records FILE appends each case to a file; the table then has all cases of the file.
"""

import argparse
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.io
import scipy.sparse as sparse

EPS = {"s": 2.0**-23, "c": 2.0**-23, "d": 2.0**-52, "z": 2.0**-52}


def second_difference(n):
    return sparse.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def laplace2d(nx, ny):
    return (sparse.kron(second_difference(nx), sparse.eye_array(ny)) +
            sparse.kron(sparse.eye_array(nx), second_difference(ny))).tocsr()


def with_spectrum(values, random, is_complex):
    """A dense matrix with these eigenvalues and random eigenvectors."""
    n = len(values)
    q = random.standard_normal((n, n))
    if is_complex:
        q = q + 1j * random.standard_normal((n, n))
    q = np.linalg.qr(q)[0]
    a = (q * values) @ q.conj().T
    return sparse.csr_array((a + a.conj().T) / 2)


# Each kind takes the rows, the decades of the condition number, a random generator, and whether the matrix is complex.

def beam(n, decades, random, is_complex):
    d = second_difference(n)
    return (d @ d).tocsr()


def plate(n, decades, random, is_complex):
    nx = max(2, int(np.sqrt(n)))
    d = laplace2d(nx, max(1, n // nx))
    return (d @ d).tocsr()


def contrast(n, decades, random, is_complex):
    """Diffusion on a square with coefficients of two sizes."""
    nx = max(2, int(np.sqrt(n)))
    size = nx * nx
    k = 10.0**(decades * (random.random(size) < 0.5))
    rows, columns, values = [], [], []
    for step in (1, nx):
        i = np.arange(size)
        i = i[(i % nx < nx - 1) if step == 1 else (i < size - nx)]
        weight = 2 / (1 / k[i] + 1 / k[i + step])
        for at, to, sign in ((i, i, 1), (i + step, i + step, 1), (i, i + step, -1), (i + step, i, -1)):
            rows.append(at)
            columns.append(to)
            values.append(sign * weight)
    a = sparse.coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(size, size))
    return (a.tocsr() + sparse.eye_array(size)).tocsr()


def penalties(n, decades, random, is_complex):
    """A Laplacian with penalties for a tenth of the rows."""
    penalty = np.where(random.random(n) < 0.1, 10.0**decades, 0)
    return (second_difference(n) + sparse.diags_array(penalty)).tocsr()


def log_spaced(n, decades, random, is_complex):
    return with_spectrum(np.logspace(0, decades, n), random, is_complex)


def log_diagonal(n, decades, random, is_complex):
    return sparse.diags_array(random.permutation(np.logspace(0, decades, n))).tocsr()


def graded(n, decades, random, is_complex):
    """D T D with a tridiagonal T of condition about 10 and a graded diagonal D."""
    d = sparse.diags_array(np.logspace(0, decades / 2, n))
    return (d @ (second_difference(n) + 0.5 * sparse.eye_array(n)) @ d).tocsr()


def both_signs(n, decades, random, is_complex):
    values = np.logspace(0, decades, n) * random.choice([-1, 1], n)
    return with_spectrum(values, random, is_complex)


def hilbert(n, decades, random, is_complex):
    i = np.arange(n)
    return sparse.csr_array(1.0 / (i[:, None] + i[None, :] + 1))


def clusters(n, decades, random, is_complex):
    """Eigenvalues with many copies."""
    return with_spectrum(10.0**random.integers(0, int(decades) + 1, n), random, is_complex)


def landau(n, decades, random, is_complex):
    """A lattice in a magnetic field: nearly degenerate levels."""
    nx = max(2, int(np.sqrt(n)))
    flux = 2 * np.pi / random.integers(4, 20)
    hop = sparse.diags_array(np.ones(nx - 1), offsets=1, shape=(nx, nx))
    phase = sparse.diags_array(np.exp(1j * flux * np.arange(nx)))
    upper = sparse.kron(hop, sparse.eye_array(nx)) + sparse.kron(phase, hop)
    return (4 * sparse.eye_array(nx * nx) - upper - upper.conj().T).tocsr()


def stiffness(n, decades, random, is_complex):
    """A chain of elements of random stiffness, displacement and rotation at each node."""
    nodes = max(2, n // 2)
    rows, columns, values = [], [], []
    for e in range(nodes - 1):
        length = 10.0**random.uniform(-1, 0)
        k = 10.0**random.uniform(0, decades / 2) / length**3
        local = k * np.array([[12, 6 * length, -12, 6 * length], [6 * length, 4 * length**2, -6 * length, 2 * length**2],
                              [-12, -6 * length, 12, -6 * length],
                              [6 * length, 2 * length**2, -6 * length, 4 * length**2]])
        at = np.arange(2 * e, 2 * e + 4)
        rows.append(np.repeat(at, 4))
        columns.append(np.tile(at, 4))
        values.append(local.ravel())
    size = 2 * nodes
    a = sparse.coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(size, size))
    return (a.tocsr() + sparse.diags_array(np.r_[1e3, 1e3, np.zeros(size - 2)])).tocsr()


KINDS = [beam, plate, contrast, penalties, log_spaced, log_diagonal, graded, both_signs, hilbert, clusters, landau,
         stiffness]
DENSE = [log_spaced, both_signs, hilbert, clusters]


class Case:
    """A matrix file, the options of the command, and the expected values."""

    def __init__(self, name, path, options, scalar, ranks, select, norm):
        self.name, self.path, self.options, self.scalar = name, path, options, scalar
        self.ranks, self.select, self.norm = ranks, select, norm


def write_matrix(path, a):
    lower = sparse.coo_array(sparse.tril(a))
    symmetry = "hermitian" if np.iscomplexobj(a.data) else "symmetric"
    scipy.io.mmwrite(path, lower, symmetry=symmetry, precision=17)


def wanted(which, k, spectrum):
    """The wanted eigenvalues of an ascending spectrum, ascending."""
    if which == "smallest":
        return spectrum[:k]
    if which == "largest":
        return spectrum[-k:]
    if which == "both-ends":
        return np.r_[spectrum[:k // 2], spectrum[len(spectrum) - (k - k // 2):]]
    target = 0.0 if which in ("smallest-magnitude", "largest-magnitude") else float(which.split(":")[1])
    order = np.argsort(np.abs(spectrum - target), kind="stable")
    return np.sort(spectrum[order[-k:] if which == "largest-magnitude" else order[:k]])


def random_case(index, seed, folder, smallest, largest):
    random = np.random.default_rng([seed, index])
    kind = KINDS[index % len(KINDS)]
    scalar = str(random.choice(list("ddzzsc")))
    is_complex = scalar in "zc"
    decades = random.uniform(1, 14)
    most = min(largest, 700 if kind in DENSE else largest)
    n = int(np.exp(random.uniform(np.log(min(smallest, most)), np.log(most))))
    a = kind(n, decades, random, is_complex)
    n = a.shape[0]
    if is_complex and not np.iscomplexobj(a.data):
        phase = sparse.diags_array(np.exp(2j * np.pi * random.random(n)))
        a = (phase @ a @ phase.conj()).tocsr()
        a = ((a + a.conj().T) / 2).tocsr()
    if np.iscomplexobj(a.data) and not is_complex:
        scalar = {"d": "z", "s": "c"}[scalar]
    if scalar in "sc":
        a = a.astype(np.complex64 if scalar == "c" else np.float32).astype(complex if scalar == "c" else float)
    spectrum = np.linalg.eigvalsh(a.toarray())
    path = os.path.join(folder, f"{index}_{kind.__name__}.mtx")
    write_matrix(path, a)
    few = int(random.integers(1, 1 + min(n, 20)))
    k = n if random.random() < 0.08 else int(random.integers(1, n + 1)) if random.random() < 0.2 else few
    which = str(random.choice(["smallest", "largest", "both-ends", "largest-magnitude", "smallest-magnitude", "target",
                               "window"]))
    options = ["--scalar", scalar]
    if which == "window":
        first = int(random.integers(0, n))
        last = min(n - 1, first + few)
        low, high = spectrum[first], spectrum[last]
        margin = 0.1 * max(high - low, 1e-6 * max(abs(spectrum[0]), abs(spectrum[-1])))
        options += [f"--window={low - margin:.17g}:{high + margin:.17g}"]
        select = (low - margin, high + margin)
    else:
        if which == "target":
            at = int(random.integers(0, n))
            which = f"target:{spectrum[at] * (1 + 0.01 * random.standard_normal()):.17g}"
        options += ["--which", which, "-k", str(k)]
        select = (which, k)
    ranks = 2 if random.random() < 0.3 and n >= 2 else 1
    name = f"{kind.__name__} n={n} cond=1e{decades:.0f}"
    norm = max(abs(spectrum[0]), abs(spectrum[-1]))
    return Case(name, path, options, scalar, ranks, (select, spectrum), norm)


def data_cases(folder, most_data_rows):
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".eigs.json"):
            continue
        name = file[:-len(".eigs.json")]
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            known = json.load(stream)
        ends = {which: np.array(known[which]) for which in ("smallest", "largest") if which in known}
        norm = max(np.max(np.abs(values)) for values in ends.values())
        path = os.path.join(folder, name + ".mtx.gz")
        wishes = [(["--which", which, "-k", str(len(values))], (which, len(values)), values)
                  for which, values in ends.items()]
        if known["n"] <= most_data_rows:
            spectrum = np.linalg.eigvalsh(scipy.io.mmread(path).toarray())
            middle = len(spectrum) // 2
            # Keep the limits off the eigenvalues, because the computed spectrum has rounding errors.
            low, high = spectrum[middle] - 1e-7 * norm, spectrum[middle + 10] + 1e-7 * norm
            wishes.append((["--which", f"target:{low:.17g}", "-k", "10"], (f"target:{low:.17g}", 10), spectrum))
            wishes.append(([f"--window={low:.17g}:{high:.17g}"], (low, high), spectrum))
            for which, k in (("both-ends", 10), ("smallest-magnitude", 5), ("smallest", len(spectrum) // 2)):
                wishes.append((["--which", which, "-k", str(k)], (which, k), spectrum))
        for wish, select, values in wishes:
            for ranks in (1, 2):
                yield Case(name, path, wish, "d", ranks, (select, values), norm)


def judge(case, report):
    """What is wrong with a report; empty if nothing."""
    if not report["converged"]:
        return "not converged: " + report["message"]
    values = np.array(report["eigenvalues"], dtype=float)
    select, spectrum = case.select
    # The tolerance, and the rounding errors of LAPACK and of the command.
    slack = (report["tolerance"] + 50 * EPS[case.scalar]) * case.norm
    if isinstance(select[0], str):
        expected = wanted(*select, spectrum)
        if len(values) != len(expected):
            return f"{len(values)} eigenvalues, not {len(expected)}"
        target = select[0].split(":")
        if len(target) == 2 or select[0].endswith("magnitude"):
            centre = float(target[1]) if len(target) == 2 else 0.0
            off = np.abs(np.sort(np.abs(values - centre)) - np.sort(np.abs(expected - centre)))
        else:
            off = np.abs(values - expected)
        if np.max(off, initial=0) > slack:
            return f"an eigenvalue is off by {np.max(off):.2g}, {np.max(off) / case.norm:.2g} of the norm"
    else:
        low, high = select
        least = np.sum((spectrum > low + slack) & (spectrum < high - slack))
        most = np.sum((spectrum > low - slack) & (spectrum < high + slack))
        if not least <= len(values) <= most:
            return f"{len(values)} eigenvalues in the window, not {least} to {most}"
    nearest = spectrum[np.argmin(np.abs(spectrum[None, :] - values[:, None]), axis=1)]
    for value, digits, exact in zip(values, report.get("digits") or [], nearest):
        if abs(value - exact) > abs(value) * 10.0**-digits + 50 * 2.0**-52 * case.norm:
            return f"{value:.17g} is said to have {digits} digits, but {exact:.17g} is exact"
    if np.max(np.abs(nearest - values), initial=0) > slack:
        return "a reported value is not an eigenvalue"
    return ""


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(case, quiver, mpiexec, limit, clock):
    """Runs a case. Its record has the wall seconds, the processor seconds per rank, and what is wrong."""
    tail = ["eigs", case.path, *case.options, "--device", "host"]
    command = [*(shlex.split(mpiexec) + [str(case.ranks)] if case.ranks > 1 else []), quiver, *tail]
    environment = dict(os.environ, OMP_NUM_THREADS=str(max(1, 2 // case.ranks)) if clock == "wall" else "1")
    record = {"name": case.name, "options": shlex.join(case.options), "ranks": case.ranks,
              "command": shlex.join(command), "method": "", "stated": False, "wrong": ""}
    wall, cpu = time.monotonic(), processor_seconds()
    most = int(12 * limit)
    # --clock cpu kills a process by its processor time, because the wall time of a busy machine says nothing.
    settings = ({"timeout": most} if clock == "wall" else
                {"timeout": 20 * most, "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most))})
    try:
        done = subprocess.run([*command, "--json", "-"], env=environment, capture_output=True, text=True, check=False,
                              **settings)
    except subprocess.TimeoutExpired:
        done = None
    record["wall"] = time.monotonic() - wall
    record["cpu"] = (processor_seconds() - cpu) / case.ranks
    if done is None or record["cpu"] > 0.9 * most:
        record["wrong"] = f"no answer after {record[clock]:.0f} s"
    elif done.returncode not in (0, 1):
        record["wrong"] = f"status {done.returncode}: {done.stderr.strip()[-300:]}"
    else:
        report = json.loads(done.stdout)
        record["method"] = report["method"]
        # The result is not verified, or has a larger tolerance than requested, and says so.
        record["stated"] = report["tolerance_raised"] or report["multiplicity"] != "verified"
        record["wrong"] = judge(case, report)
        if not record["wrong"] and record[clock] > limit:
            record["wrong"] = f"took {record[clock]:.1f} s"
    return record


def processor():
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor()


def table(records, clock):
    """Markdown lines: a row for each kind of matrix, then a row for all."""
    lines = ["| matrix | cases | right and verified | right at a stated tolerance | failed | median s | largest s | "
             "methods |", "|---|---|---|---|---|---|---|---|"]
    kinds = dict.fromkeys(record["name"].split()[0] for record in records)
    for kind in [*kinds, ""]:
        cases = [record for record in records if not kind or record["name"].split()[0] == kind]
        right = [record for record in cases if not record["wrong"]]
        seconds = [record[clock] for record in cases] or [0]
        methods = [record["method"] or "none" for record in cases]
        words = ", ".join(f"{method} {methods.count(method)}" for method in sorted(set(methods)))
        stated = sum(record["stated"] for record in right)
        lines.append(f"| {kind or 'all'} | {len(cases)} | {len(right) - stated} | {stated} | "
                     f"{len(cases) - len(right)} | {statistics.median(seconds):.2f} | {max(seconds):.2f} | {words} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quiver", default="build/apps/quiver")
    parser.add_argument("--mpiexec", default="mpiexec --oversubscribe -n", help="the number of ranks follows")
    parser.add_argument("--data", help="folder of NAME.mtx.gz and NAME.eigs.json")
    parser.add_argument("--data-rows", type=int, default=2100,
                        help="matrices of --data with at most this many rows also get targets, a window, both ends and "
                             "half of all eigenvalues")
    parser.add_argument("--random", type=int, default=300, help="number of random cases")
    parser.add_argument("--first", type=int, default=0, help="index of the first random case")
    parser.add_argument("--records", help="file with the cases of earlier runs; appends the new ones")
    parser.add_argument("--smallest", type=int, default=3, help="least rows of random matrices")
    parser.add_argument("--largest", type=int, default=2000, help="most rows of random matrices")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5, help="limit of a case")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: limits and reports the processor time of a rank with one thread, for busy machines")
    parser.add_argument("--only", type=int, help="one random case, by its index")
    parser.add_argument("--keep", help="folder for the matrices; otherwise they are removed")
    parser.add_argument("--markdown", help="also write the results to this file")
    options = parser.parse_args()
    this = (f"python3 {sys.argv[0]} --seed {options.seed} --smallest {options.smallest} --largest {options.largest} "
            f"--quiver {options.quiver}")
    records = []
    if options.records and os.path.exists(options.records):
        with open(options.records, encoding="utf-8") as stream:
            records = [json.loads(line) for line in stream]

    def take(case, again):
        record = run(case, options.quiver, options.mpiexec, options.seconds, options.clock)
        record["command"] = again or record["command"]
        records.append(record)
        if options.records:
            with open(options.records, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")
        if record["wrong"]:
            print(f"FAILED {case.name}, {record['options']}, {case.ranks} ranks: {record['wrong']}\n"
                  f"    {record['command']}", flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        indices = range(options.first, options.first + options.random) if options.only is None else [options.only]
        for index in indices:
            case = random_case(index, options.seed, folder, options.smallest, options.largest)
            take(case, f"{this} --only {index} --keep FOLDER")
            if options.only is not None:
                print("command:", shlex.join(["quiver", "eigs", case.path, *case.options]))
            if not options.keep:
                os.remove(case.path)
        for case in data_cases(options.data, options.data_rows) if options.data and options.only is None else []:
            take(case, "")

    lines = table(records, options.clock)
    print("\n".join(lines))
    failures = [record for record in records if record["wrong"]]
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as stream:
            stream.write("\n".join([f"Processor: {processor()}.", "", *lines, ""]))
            for record in failures:
                stream.write(f"\n- {record['name']}: {record['wrong']}: `{record['command']}`")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
