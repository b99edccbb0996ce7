#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a JSON report of `quiver modes`: frequencies, the effective mass up to each mode, shapes.

    quiver modes gen:hexahedra,support=clamped -k 20 --json report.json --vtk modes.vtk
    python3 apps/modes_plot.py report.json -o modes.svg           needs matplotlib
    python3 apps/modes_plot.py report.json --shapes modes.vtk -o modes.svg

With --shapes, the first four modes that are not rigid are drawn as the surface of the deformed mesh.
"""
import argparse
import array
import json
import pathlib
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

FACES = ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
COLOURS = ("#1f6f5c", "#b5651d", "#3b5b92", "#8fbcae", "#dcb48c", "#9fb1d1")


class Vtk:
    """The points, cells and vectors of a file that `quiver modes --vtk` wrote."""

    def __init__(self, path):
        self._data = pathlib.Path(path).read_bytes()
        self._at = 0
        self.cells, self.vectors = [], []
        while self._at < len(self._data):
            words = self._line().split()
            if not words:
                continue
            if words[0] == "POINTS":
                self.points = self._triples("f", int(words[1]))
            elif words[0] == "CELLS":
                self.cells = self._cells(int(words[1]), int(words[2]))
            elif words[0] == "CELL_TYPES":
                self._at += 4 * int(words[1])
            elif words[0] == "VECTORS":
                self.vectors.append(self._triples("f", len(self.points)))

    def _line(self):
        end = self._data.find(b"\n", self._at)
        end = len(self._data) if end < 0 else end
        line = self._data[self._at:end].decode("ascii", "replace")
        self._at = end + 1
        return line

    def _numbers(self, kind, count):
        numbers = array.array(kind)
        numbers.frombytes(self._data[self._at:self._at + 4 * count])
        self._at += 4 * count
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers

    def _triples(self, kind, count):
        numbers = self._numbers(kind, 3 * count)
        return [tuple(numbers[3 * i:3 * i + 3]) for i in range(count)]

    def _cells(self, count, length):
        numbers, cells, at = self._numbers("i", length), [], 0
        for _ in range(count):
            cells.append(tuple(numbers[at + 1:at + 1 + numbers[at]]))
            at += 1 + numbers[at]
        return [cell for cell in cells if len(cell) == 8]

    def surface(self):
        """The faces that belong to one cell only."""
        found = {}
        for cell in self.cells:
            for face in FACES:
                nodes = tuple(cell[i] for i in face)
                found.setdefault(frozenset(nodes), []).append(nodes)
        return [faces[0] for faces in found.values() if len(faces) == 1]


def draw_frequencies(axis, report):
    frequencies = report["frequencies"]
    axis.bar(range(1, len(frequencies) + 1), frequencies, color=COLOURS[0])
    axis.set_xlabel("mode")
    axis.set_ylabel(f"frequency in {report['unit']}")
    axis.set_title(f"{len(frequencies)} modes, {report['rigid']} rigid", loc="left", fontsize=10)


def draw_masses(axis, report):
    count = len(report["frequencies"])
    for direction, colour in zip(report["directions"], COLOURS):
        total, share = 0.0, []
        for mass in direction["effective_masses"]:
            total += mass
            share.append(100 * total / direction["total_mass"])
        axis.step(range(1, count + 1), share, where="post", color=colour, label=direction["name"])
    axis.set_xlabel("mode")
    axis.set_ylabel("effective mass in %")
    axis.set_ylim(0, 105)
    axis.legend(frameon=False, ncols=2, fontsize=8)
    axis.set_title("up to each mode", loc="left", fontsize=10)


def draw_shape(axis, vtk, mode, title):
    lows = [min(point[d] for point in vtk.points) for d in range(3)]
    highs = [max(point[d] for point in vtk.points) for d in range(3)]
    size = max(high - low for low, high in zip(lows, highs))
    moved = [tuple(x + 0.12 * size * u for x, u in zip(point, shift))
             for point, shift in zip(vtk.points, vtk.vectors[mode])]
    faces = vtk.surface()
    if faces:
        axis.add_collection3d(Poly3DCollection([[moved[i] for i in face] for face in faces],
                                               facecolor="#8fbcae", edgecolor="#1f6f5c",
                                               linewidth=0.3, rasterized=True))
    else:
        axis.scatter(*zip(*moved), s=2, color=COLOURS[0])
    for set_limits, low, high in zip((axis.set_xlim, axis.set_ylim, axis.set_zlim), lows, highs):
        middle = 0.5 * (low + high)
        set_limits(middle - 0.5 * size, middle + 0.5 * size)
    axis.set_axis_off()
    axis.set_box_aspect((1, 1, 1), zoom=2.2)
    axis.set_title(title, fontsize=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report")
    parser.add_argument("-o", "--output", default="modes.svg")
    parser.add_argument("--shapes", help="the file of quiver modes --vtk of the same run")
    options = parser.parse_args()
    report = json.loads(pathlib.Path(options.report).read_text(encoding="utf-8"))
    if report.get("command") != "modes":
        sys.exit(f"modes_plot.py: {options.report} is not a report of quiver modes")
    plt.rcParams.update({"svg.hashsalt": "quiver", "svg.fonttype": "none", "font.size": 9})
    rows = 2 if options.shapes else 1
    figure = plt.figure(figsize=(9.6, 3.4 + 1.9 * (rows - 1)))
    grid = figure.add_gridspec(rows, 4, height_ratios=(3.4, 1.9)[:rows])
    axes = [figure.add_subplot(grid[0, :2])]
    draw_frequencies(axes[0], report)
    if report["directions"]:
        axes.append(figure.add_subplot(grid[0, 2:]))
        draw_masses(axes[1], report)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    if options.shapes:
        vtk = Vtk(options.shapes)
        if len(vtk.vectors) != len(report["frequencies"]):
            sys.exit(f"modes_plot.py: {options.shapes} has {len(vtk.vectors)} modes, "
                     f"{options.report} has {len(report['frequencies'])}")
        elastic = [i for i, f in enumerate(report["frequencies"]) if f != 0][:4]
        for column, mode in enumerate(elastic):
            draw_shape(figure.add_subplot(grid[1, column], projection="3d"), vtk, mode,
                       f"mode {mode + 1}: {report['frequencies'][mode]:.4g} {report['unit']}")
    figure.tight_layout()
    metadata = {"Date": None} if options.output.endswith("svg") else None
    figure.savefig(options.output, metadata=metadata, dpi=200)


if __name__ == "__main__":
    main()
