#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Injects plausible bugs into a copy of the tree, one at a time, and reports those that no test notices.

    cp -a TREE COPY                                  # with a finished build in COPY/build-ci
    python3 tests/mutations.py --tree COPY --state mutations.json --table mutations.md
    python3 tests/mutations.py --check TREE          # every mutation still fits the sources

mutation_table.py lists the mutations. A mutation is killed if one of its tests fails or exceeds its time limit. It
survives if all of them pass. The state file keeps the results, and a later run continues with the mutations without
a result. --only REGEX selects mutations by name or file, --again repeats those that have a result, --seconds N ends the
run between two mutations. Each test first has to pass without a mutation.

The script changes the sources of the copy. It refuses the tree that it is part of.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import mutation_table

FOLDERS = ("blockvec", "kernels", "solvers", "apps")
BACKUP = ".before_mutation"


def sources(tree):
    """The source files of a tree by name. The table names a file without its folder, so that files may move."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((tree / folder).rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".cuh"):
                found.setdefault(path.name, []).append(path)
    return found


def locate(tree, files, mutation):
    """The path of a mutation's file; None if its name fits no file or several."""
    name = pathlib.PurePosixPath(mutation.file)
    paths = [(path.relative_to(tree).as_posix(), path) for path in files.get(name.name, [])]
    fitting = [path for place, path in paths if place == mutation.file]
    fitting = fitting or [path for place, path in paths if place.endswith("/" + mutation.file)]
    return fitting[0] if len(fitting) == 1 else None


def test_names(tree):
    """The NAME of every quiver_test(NAME ...)."""
    names = set()
    for lists in (tree / "tests").rglob("CMakeLists.txt"):
        names.update(re.findall(r"^quiver_test\((\w+)", lists.read_text(encoding="utf-8"), re.MULTILINE))
    return names


def problems(tree, mutations):
    """The reasons why mutations cannot be applied to a tree, one line each."""
    files = sources(tree)
    tests = test_names(tree)
    found = []
    names = set()
    for mutation in mutations:
        path = locate(tree, files, mutation)
        if path is None:
            found.append(f"{mutation.name}: {mutation.file} is not exactly one file of {', '.join(FOLDERS)}")
        else:
            count = path.read_text(encoding="utf-8").count(mutation.old)
            if count != 1:
                found.append(f"{mutation.name}: its text occurs {count} times in {mutation.file}")
        if mutation.old == mutation.new:
            found.append(f"{mutation.name}: changes nothing")
        if mutation.name in names:
            found.append(f"{mutation.name}: the name is not unique")
        names.add(mutation.name)
        found.extend(f"{mutation.name}: no test {test.target}" for test in mutation.tests if test.target not in tests)
        if not mutation.tests:
            found.append(f"{mutation.name}: names no test")
    return found


class Runner:
    def __init__(self, options):
        self.tree = options.tree.resolve()
        self.build = self.tree / options.build
        self.options = options
        self.environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), OMP_WAIT_POLICY="passive",
                                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def compile(self, tests):
        """Builds the tests. Returns the end of the compiler's output if that fails, else an empty text."""
        targets = sorted({"test_" + test.target for test in tests})
        done = subprocess.run(["cmake", "--build", str(self.build), "-j", str(self.options.jobs), "--target", *targets],
                              capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]

    def passes(self, test):
        """Returns whether a test passes, and the reason if it does not."""
        program = next(self.build.rglob("test_" + test.target))
        command = [str(program), "--gtest_brief=1", "--gtest_color=no", "--gtest_fail_fast", "--gtest_filter=" + test.filter]
        if test.ranks > 1:
            command = ["mpiexec", "--oversubscribe", "--bind-to", "none", "-n", str(test.ranks), *command]
        # timeout(1) sends SIGTERM first, at which mpiexec ends its ranks.
        command = ["timeout", "--kill-after=10", str(self.options.timeout), *command]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              env=self.environment, cwd=self.build)
        if done.returncode in (124, 137):
            return False, f"exceeded {self.options.timeout} s"
        text = done.stdout + done.stderr
        if done.returncode == 0 and not re.search(r"\[  PASSED  \] [1-9]", text):
            return False, "the filter selects no test"
        failed = re.search(r"\[  FAILED  \] ([\w./]+)", text)
        return done.returncode == 0, failed.group(1) if failed else f"exit status {done.returncode}"

    def first_failure(self, tests):
        for test in tests:
            passed, reason = self.passes(test)
            if not passed:
                return f"{test.target}: {reason}"
        return ""

    def restore(self):
        """Undoes mutations, also those of a killed run."""
        for folder in FOLDERS:
            for backup in (self.tree / folder).rglob("*" + BACKUP):
                path = backup.with_name(backup.name[:-len(BACKUP)])
                path.write_text(backup.read_text(encoding="utf-8"), encoding="utf-8")
                backup.unlink()

    def run(self, mutation):
        path = locate(self.tree, sources(self.tree), mutation)
        text = path.read_text(encoding="utf-8")
        backup = path.with_name(path.name + BACKUP)
        backup.write_text(text, encoding="utf-8")
        begin = time.monotonic()
        try:
            path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
            errors = self.compile(mutation.tests)
            outcome, detail = ("did not compile", errors) if errors else ("survived", "")
            if not errors and (failure := self.first_failure(mutation.tests)):
                outcome, detail = "killed", failure
        finally:
            self.restore()
        return {"outcome": outcome, "detail": detail, "seconds": round(time.monotonic() - begin, 1)}


def table(mutations, results):
    """The results as Markdown, mutations that survived first."""
    order = ["survived", "did not compile", "killed", "not run"]

    def outcome(mutation):
        return results.get(mutation.name, {}).get("outcome", "not run")

    lines = ["| mutation | file | outcome | noticed by |", "|---|---|---|---|"]
    for mutation in sorted(mutations, key=lambda m: order.index(outcome(m))):
        result = results.get(mutation.name, {})
        detail = result.get("detail", "") if outcome(mutation) == "killed" else ""
        if outcome(mutation) == "survived" and mutation.equivalent:
            detail = "equivalent: " + mutation.equivalent
        lines.append(f"| {mutation.name} | `{mutation.file}` | {outcome(mutation)} | {detail} |")
    return "\n".join(lines) + "\n"


def summary(mutations, results):
    counts = {}
    for mutation in mutations:
        outcome = results.get(mutation.name, {}).get("outcome", "not run")
        if outcome == "survived" and mutation.equivalent:
            outcome = "survived, equivalent"
        counts[outcome] = counts.get(outcome, 0) + 1
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=pathlib.Path, help="the copy of the tree that is mutated")
    parser.add_argument("--check", type=pathlib.Path, help="only check that every mutation fits this tree")
    parser.add_argument("--build", default="build-ci", help="build folder in the copy (build-ci)")
    parser.add_argument("--state", type=pathlib.Path, default=pathlib.Path("mutations.json"))
    parser.add_argument("--table", type=pathlib.Path, help="where to write the results as Markdown")
    parser.add_argument("--only", default="", help="regular expression for names or files")
    parser.add_argument("--again", action="store_true", help="repeat mutations that have a result")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no mutation after so many seconds")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a test")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="OpenMP threads of a test")
    return parser.parse_args()


def main():
    options = arguments()
    mutations = mutation_table.MUTATIONS
    tree = options.check or options.tree
    if tree is None:
        sys.exit("mutations.py: --tree COPY or --check TREE is needed")
    if options.check is None:
        if pathlib.Path(__file__).resolve().is_relative_to(tree.resolve()):
            sys.exit(f"mutations.py: {tree} is the tree of this script; mutate a copy")
        runner = Runner(options)
        runner.restore()
    found = problems(tree, mutations)
    if found or options.check:
        print("\n".join(found) if found else f"{len(mutations)} mutations fit")
        sys.exit(1 if found else 0)
    state = {"results": {}, "passed": []}
    if options.state.exists():
        state = json.loads(options.state.read_text(encoding="utf-8"))
    end = time.monotonic() + options.seconds

    def save():
        options.state.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")

    # Sorted by file, so that restoring a file and its next mutation cost one compilation.
    for mutation in sorted(mutations, key=lambda m: m.file):
        known = mutation.name in state["results"] and not options.again
        if known or not re.search(options.only, mutation.name + " " + mutation.file):
            continue
        if time.monotonic() > end:
            break
        new = [test for test in mutation.tests if list(test) not in state["passed"]]
        if new and (failure := runner.compile(new) or runner.first_failure(new)):
            sys.exit(f"mutations.py: without a mutation: {failure}")
        state["passed"] += [list(test) for test in new]
        state["results"][mutation.name] = runner.run(mutation)
        print(mutation.name, state["results"][mutation.name], flush=True)
        save()
    save()
    print(summary(mutations, state["results"]))
    if options.table:
        options.table.write_text(table(mutations, state["results"]), encoding="utf-8")


if __name__ == "__main__":
    main()
