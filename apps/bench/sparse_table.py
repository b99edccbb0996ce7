#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times Y = A X for fourteen kinds of matrices and prints tables of speeds relative to a rival.

    python3 apps/bench/sparse_table.py --quiver build/apps/quiver --device cuda --rivals cusparse --json FILE.json

Each number of the first table is the speed of quiver divided by that of the fastest rival, from the medians of `quiver
bench kernels spmmv`. The second table has the speed in % of a product that reads the entries and X once and writes Y once
at the measured bandwidth. --scale multiplies the numbers of rows. Results in FILE are not measured again.
"""

import argparse
import json
import math
import os
import subprocess

WIDTHS = [1, 2, 3, 4, 5, 6, 8, 11, 12, 16, 20, 24, 32]
SAMPLED_WIDTHS = [1, 2, 3, 5, 8, 11, 16, 32]


def matrices(scale):
    side = lambda rows: max(4, round((rows * scale) ** (1 / 3)))
    irregular = lambda kind, rows: f"gen:irregular,kind={kind},n={round(rows * scale)}"
    chain = 24 if scale >= 1 else max(8, 24 + 2 * round(math.log(scale, 16)))
    return {
        "grid, 7 points": f"gen:laplace3d,nx={side(4.1e6)}",
        "grid, 27 points": f"gen:elements,nx={side(1.4e6)},unknowns=1",
        "elements, 3 unknowns": f"gen:elements,nx={side(1.4e5)},unknowns=3",
        "spin chain": f"gen:spinSZ,L={chain}",
        "Hubbard": f"gen:hubbard,L={12 if scale >= 1 else 8},n={6 if scale >= 1 else 4}",
        "lattice": f"gen:anderson,L={side(2e6)}",
        "web": irregular("web", 2e6),
        "social": irregular("social", 1e6),
        "road": irregular("road", 4e6),
        "neighbours": irregular("neighbours", 1e6),
        "random": irregular("random", 1e6),
        "band": irregular("band", 4e5),
        "dense rows": irregular("dense-rows", 1e6),
        "empty rows": irregular("empty-rows", 4e6),
    }


def measure(arguments, matrix, scalar, widths):
    file = f"{arguments.json}.part"
    if os.path.exists(file):
        os.remove(file)
    command = [arguments.quiver, "bench", "kernels", "spmmv", "--device", arguments.device, "--matrix", matrix,
               "--scalar", scalar, "--widths", ",".join(map(str, widths)), "--rivals", arguments.rivals,
               "--repeat", str(arguments.repeat), "--budget", str(arguments.budget),
               "--cache-bytes", str(arguments.cache_bytes), "--json", file]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode > 1:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    with open(file) as stream:
        results = json.load(stream)
    os.remove(file)
    return results["results"]


def cells_of(results, widths):
    """The ratios to the fastest rival and the percentages, or what went wrong, in the order of the widths."""
    ratios, percents = [], []
    for width in widths:
        ours = [r for r in results if r["n"] == width and r["library"] == "quiver"]
        others = [r["seconds"]["median"] for r in results
                  if r["n"] == width and r["library"] != "quiver" and r["outcome"] == "passed"]
        if not ours or ours[0]["outcome"] != "passed":
            ratios.append(ours[0]["outcome"] if ours else "not run")
            percents.append("")
            continue
        ratios.append(min(others) / ours[0]["seconds"]["median"] if others else "")
        percents.append(ours[0]["roofline_percent"] or "")
    return ratios, percents


def table(title, rows, widths, form):
    lines = ["", f"| {title} | " + " | ".join(map(str, widths)) + " |", "|---" * (len(widths) + 1) + "|"]
    for name, cells in rows.items():
        lines.append(f"| {name} | " + " | ".join(c if isinstance(c, str) else format(c, form) for c in cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quiver", required=True, help="the command")
    parser.add_argument("--device", default="host", help="host or cuda")
    parser.add_argument("--rivals", default="eigen", help="as for quiver bench kernels")
    parser.add_argument("--scalars", default="d", help="some of s, d, c, z; d gets all widths, the others a sample")
    parser.add_argument("--scale", type=float, default=1, help="factor on the numbers of rows")
    parser.add_argument("--repeat", type=int, default=10, help="samples of each case")
    parser.add_argument("--budget", type=int, default=60, help="seconds for each matrix and scalar")
    parser.add_argument("--cache-bytes", type=float, default=0, help="as for quiver bench kernels")
    parser.add_argument("--json", required=True, help="file for all results; completed if it exists")
    arguments = parser.parse_args()
    stored = {}
    if os.path.exists(arguments.json):
        with open(arguments.json) as stream:
            stored = json.load(stream)
    for scalar in arguments.scalars.split(","):
        widths = WIDTHS if scalar == "d" else SAMPLED_WIDTHS
        ratios, percents = {}, {}
        for name, matrix in matrices(arguments.scale).items():
            key = f"{matrix} {scalar}"
            if key not in stored:
                stored[key] = measure(arguments, matrix, scalar, widths)
                with open(arguments.json + ".new", "w") as stream:
                    json.dump(stored, stream)
                os.replace(arguments.json + ".new", arguments.json)
            ratios[name], percents[name] = cells_of(stored[key], widths)
        print(table(f"{scalar}, speed over rival", ratios, widths, ".2f"))
        print(table(f"{scalar}, % of least traffic", percents, widths, ".0f"))
        wide = [c for cells in ratios.values() for c, w in zip(cells, widths) if w > 1 and not isinstance(c, str)]
        if wide:
            print(f"\nGeometric mean for more than one column: {math.exp(sum(map(math.log, wide)) / len(wide)):.2f}, "
                  f"least {min(wide):.2f}", flush=True)


if __name__ == "__main__":
    main()
