# SPDX-License-Identifier: BSD-3-Clause
"""The check of the table of mutations finds errors in trees that this test creates."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mutations  # noqa: E402
from mutation_table import Mutation, Test  # noqa: E402

TREE = {"solvers/a/x.cpp": "one two two\n", "kernels/x.cpp": "three\n", "kernels/host/y.cpp": "four\n",
        "tests/CMakeLists.txt": "quiver_test(here SOURCES x_test.cpp)\n"}


def problems(*entries):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in TREE.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return mutations.problems(root, entries)


def mutation(file, old, new="new", name="a", tests=(Test("here"),)):
    return Mutation(name, file, old, new, tests)


class Check(unittest.TestCase):
    def test_a_mutation_that_fits_passes(self):
        self.assertEqual([], problems(mutation("a/x.cpp", "one"), mutation("y.cpp", "four", name="b")))

    def test_a_file_may_be_named_from_the_root(self):
        self.assertEqual([], problems(mutation("kernels/x.cpp", "three")))

    def test_a_text_must_occur_once(self):
        self.assertEqual(1, len(problems(mutation("a/x.cpp", "two"))))
        self.assertEqual(1, len(problems(mutation("a/x.cpp", "gone"))))

    def test_a_file_must_be_one(self):
        self.assertEqual(1, len(problems(mutation("x.cpp", "one"))))
        self.assertEqual(1, len(problems(mutation("z.cpp", "one"))))

    def test_a_mutation_must_change_something(self):
        self.assertEqual(1, len(problems(mutation("a/x.cpp", "one", "one"))))

    def test_names_are_unique(self):
        self.assertEqual(1, len(problems(mutation("a/x.cpp", "one"), mutation("y.cpp", "four"))))

    def test_tests_must_exist(self):
        self.assertEqual(1, len(problems(mutation("a/x.cpp", "one", tests=(Test("gone"),)))))
        self.assertEqual(1, len(problems(mutation("a/x.cpp", "one", tests=()))))


class Table(unittest.TestCase):
    def test_what_falls_short_is_first(self):
        entries = [mutation("x", "1", name="killed"), mutation("x", "1", name="alive"), mutation("x", "1", name="new")]
        results = {"killed": {"outcome": "killed", "detail": "t"}, "alive": {"outcome": "survived", "detail": ""}}
        lines = mutations.table(entries, results).splitlines()[2:]
        self.assertEqual(["alive", "killed", "new"], [line.split(" | ")[0][2:] for line in lines])


if __name__ == "__main__":
    unittest.main()
