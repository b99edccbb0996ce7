# SPDX-License-Identifier: BSD-3-Clause
"""The link checker finds errors in pages that this test creates."""
import pathlib
import tempfile
import unittest

import links


def problems(pages):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in pages.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return [*links.problems(root), *links.long_readme(root)]


class Links(unittest.TestCase):
    def test_good_links_pass(self):
        page = "# A b\n[x](docs/b.md#what-it-does-x) [y](#a-b) [z](https://nowhere.invalid)\n"
        self.assertEqual([], problems({"README.md": page, "docs/b.md": "## What it does: `x`\n"}))

    def test_a_dead_file_is_found(self):
        self.assertEqual(["README.md:2: docs/b.md: no such file"], problems({"README.md": "text\n[x](docs/b.md)\n"}))

    def test_a_file_that_is_not_on_the_site_is_found(self):
        pages = {"README.md": "[x](examples/a.cpp) [y](kernels/b.hpp)\n", "examples/a.cpp": "", "kernels/b.hpp": ""}
        self.assertEqual(1, len(problems(pages)))

    def test_a_dead_image_is_found(self):
        self.assertEqual(1, len(problems({"README.md": "![x](b.svg)\n"})))

    def test_a_link_may_go_on_over_lines(self):
        self.assertEqual(["README.md:2: gone.md: no such file"], problems({"README.md": "see [some\ntext](gone.md)\n"}))

    def test_a_picture_may_be_a_link(self):
        self.assertEqual(2, len(problems({"README.md": "[![x](gone.svg)](gone.md)\n"})))

    def test_a_dead_anchor_is_found(self):
        pages = {"README.md": "[x](docs/b.md#gone) [y](#gone)\n", "docs/b.md": "# Here\n"}
        self.assertEqual(2, len(problems(pages)))

    def test_a_heading_in_code_is_no_anchor(self):
        self.assertEqual(1, len(problems({"README.md": "```sh\n# gone\n```\n[y](#gone)\n"})))

    def test_a_link_in_code_is_no_link(self):
        self.assertEqual([], problems({"README.md": "`[x](gone.md)`\n\n    [x](gone.md)\n\n```text\n[x](gone.md)\n```\n"}))

    def test_the_second_of_equal_headings_has_a_number(self):
        self.assertEqual([], problems({"README.md": "# A\n# A\n[x](#a) [y](#a-1)\n"}))
        self.assertEqual(1, len(problems({"README.md": "# A\n# A\n[y](#a-2)\n"})))

    def test_a_page_of_results_needs_its_line_in_the_index(self):
        pages = {"docs/results/README.md": "[x](a.md)\n", "docs/results/a.md": "", "docs/results/b.md": ""}
        self.assertEqual(["docs/results/b.md: docs/results/README.md has no link to this page"], problems(pages))

    def test_a_long_readme_fails(self):
        self.assertEqual([], problems({"README.md": "x\n" * 150}))
        self.assertEqual(1, len(problems({"README.md": "x\n" * 151})))

    def test_a_long_line_of_prose_fails(self):
        self.assertEqual([], problems({"README.md": "x" * 120 + "\n|" + "x" * 120 + "\n"}))
        self.assertEqual(1, len(problems({"README.md": "x" * 121 + "\n"})))

    def test_a_tree_without_pages_fails(self):
        self.assertEqual(1, len(problems({"a.txt": ""})))


if __name__ == "__main__":
    unittest.main()
