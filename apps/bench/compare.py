#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the warm speed of two builds of quiver on one machine, in interleaved runs.

    python3 apps/bench/compare.py --before OLD/apps/quiver --after build/apps/quiver --rounds 3 --markdown FILE.md

Every ratio is after / before. Kernels: `quiver bench` of both builds in turn; the ratio is that of the smallest
medians of the rounds. Solves: whole commands with --json, after one call that compiles their kernels; the ratio is
that of the medians of `seconds.solve`. The table states the geometric mean and the worst case of each group.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile

SWEEPS = {
    "dense": [["tsmttsm,tsmm", "--scalar", "s,d,c,z", "--widths", "1,2,4,8,16,32,64"],
              ["tsmttsm,tsmm,tsmm-gram", "--scalar", "d", "--shapes", "20x4,40x8,80x8,200x4,300x16"],
              ["tsmttsm,tsmm", "--scalar", "d", "--widths", "4,8,16", "--rows", "1e4,1e5,1e6"]],
    "sparse": [["spmmv", "--scalar", "d,z", "--widths", "1,2,4,8,12,16,20,32"]],
}
SOLVES = {f"{name} {scalar}": [*words, "--scalar", scalar] for scalar in "sdcz" for name, words in {
    "chebyshev nx=60": ["eigs", "gen:laplace3d,nx=60", "-k", "10"],
    "lanczos nx=60": ["eigs", "gen:laplace3d,nx=60", "-k", "10", "--method", "lanczos"],
    "jd nx=40": ["eigs", "gen:laplace3d,nx=40", "-k", "10", "--method", "jd"],
    "lobpcg nx=40": ["eigs", "gen:laplace3d,nx=40", "-k", "10", "--method", "lobpcg"],
    "cg nx=60": ["solve", "gen:laplace3d,nx=60", "--rhs", "random:8", "--method", "cg"],
    "gmres nx=40": ["solve", "gen:laplace3d,nx=40", "--rhs", "random:8", "--method", "gmres"],
    "minres nx=60": ["solve", "gen:laplace3d,nx=60", "--rhs", "random:8", "--method", "minres"],
}.items()}


def run(words, cache):
    done = subprocess.run(words, env=dict(os.environ, QUIVER_CACHE=cache), capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def bench(binary, words, budget, cache, folder, number):
    """The medians of one run by case. Older builds lack the subcommand `kernels` of bench."""
    file = f"{folder}/bench-{number}.json"
    tail = [*words, "--device", "cuda", "--repeat", "11", "--budget", str(budget), "--json", file]
    _, output = run([binary, "bench", "kernels", *tail], cache)
    if not os.path.exists(file):
        _, output = run([binary, "bench", *tail], cache)
    if not os.path.exists(file):
        raise RuntimeError(output)
    with open(file) as text:
        results = json.load(text)["results"]
    os.remove(file)
    return {case_name(r): r["seconds"]["median"] for r in results if r.get("outcome") == "passed"}


def case_name(result):
    return " ".join(str(result[key]) for key in ("kernel", "scalar", "m", "n", "rows") if key in result)


def solve_seconds(binary, words, cache, folder):
    file = f"{folder}/solve.json"
    status, output = run([binary, *words, "--device", "cuda", "--json", file], cache)
    if status != 0:
        raise RuntimeError(f"{words}: status {status}\n{output}")
    with open(file) as text:
        return json.load(text)["seconds"]["solve"]


def compare_kernels(options, group, folder):
    """Maps each case to its smallest medians (before, after)."""
    least = {}
    for words in SWEEPS[group]:
        for turn in range(options.rounds):
            for place, binary in enumerate((options.before, options.after)):
                cache = f"{options.cache}/{'before' if place == 0 else 'after'}"
                found = bench(binary, words, options.budget, cache, folder, place)
                for case, seconds in found.items():
                    pair = least.setdefault(case, [math.inf, math.inf])
                    pair[place] = min(pair[place], seconds)
            print(group, words[0], words[2:], "round", turn + 1, flush=True)
    return {case: pair for case, pair in least.items() if math.isfinite(sum(pair))}


def compare_solves(options, folder):
    pairs = {}
    for name, words in SOLVES.items():
        if not any(name.endswith(f" {scalar}") for scalar in options.scalars.split(",")):
            continue
        times = ([], [])
        try:
            for turn in range(options.rounds * 2 + 1):
                for place, binary in enumerate((options.before, options.after)):
                    seconds = solve_seconds(binary, words, f"{options.cache}/{'before' if place == 0 else 'after'}", folder)
                    if turn > 0:
                        times[place].append(seconds)
        except RuntimeError as error:
            print(name, error, flush=True)
            continue
        pairs[name] = [statistics.median(t) for t in times]
        print(name, pairs[name], flush=True)
    return pairs


def warm(options, folder):
    """Fills the caches with the kernels of all cases; all commands run at the same time."""
    waiting = []
    for place, binary in (("before", options.before), ("after", options.after)):
        commands = [[binary, *words] for name, words in SOLVES.items()
                    if any(name.endswith(f" {scalar}") for scalar in options.scalars.split(","))]
        if "solves" not in options.groups:
            commands = []
        for group in options.groups.split(","):
            for words in SWEEPS.get(group, []):
                at = words.index("--scalar") + 1
                for scalar in words[at].split(","):
                    tail = [*words[:at], scalar, *words[at + 1:], "--repeat", "3", "--budget", "100"]
                    # Every build accepts only one of the two forms of the command and refuses the other at once.
                    commands += [[binary, "bench", "kernels", *tail], [binary, "bench", *tail]]
        if binary != "none":
            waiting += [subprocess.Popen([*words, "--device", "cuda"], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL,
                                         env=dict(os.environ, QUIVER_CACHE=f"{options.cache}/{place}"))
                        for words in commands]
    for process in waiting:
        process.wait()


def page(groups):
    lines = ["| group | cases | geometric mean of after / before | worst | its seconds before, after | above 1.03 |",
             "|---|---|---|---|---|---|"]
    for group, pairs in groups.items():
        if not pairs:
            continue
        ratios = {case: after / before for case, (before, after) in pairs.items()}
        worst = max(ratios, key=ratios.get)
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        above = sum(ratio > 1.03 for ratio in ratios.values())
        lines.append(f"| {group} | {len(ratios)} | {mean:.4f} | {worst}: {ratios[worst]:.3f} | "
                     f"{pairs[worst][0]:.3e}, {pairs[worst][1]:.3e} | {above} |")
    lines += ["", "Cases above 1.03:", "", "| case | before | after | ratio |", "|---|---|---|---|"]
    for pairs in groups.values():
        for case, (before, after) in sorted(pairs.items(), key=lambda item: -item[1][1] / item[1][0]):
            if after / before > 1.03:
                lines.append(f"| {case} | {before:.3e} | {after:.3e} | {after / before:.3f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--groups", default="dense,sparse,solves")
    parser.add_argument("--scalars", default="s,d,c,z", help="scalars of the solves")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=60, help="seconds of one run of bench")
    parser.add_argument("--cache", default=tempfile.gettempdir() + "/quiver-compare",
                        help="folder of the kernel caches of both builds")
    parser.add_argument("--warm", action="store_true", help="only fill the caches; skips a build given as `none`")
    parser.add_argument("--markdown")
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.warm:
            warm(options, folder)
            return
        groups = {}
        for group in options.groups.split(","):
            groups[group] = compare_solves(options, folder) if group == "solves" else compare_kernels(options, group, folder)
            for path, text in ((options.json, json.dumps(groups, indent=1)), (options.markdown, page(groups))):
                if path:
                    with open(path, "w") as file:
                        file.write(text)
        print(page(groups))


if __name__ == "__main__":
    main()
