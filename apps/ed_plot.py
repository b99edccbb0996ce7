#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a JSON report of `quiver ed`: the energy levels, and the densities if there are any.

    quiver ed terms.txt -k 20 --density --json report.json
    python3 apps/ed_plot.py report.json -o energies.svg      needs matplotlib

The length of a level grows with its number of states.
"""
import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt


def draw_levels(axis, report):
    for level in report["levels"]:
        length = 0.25 * level["states"]
        axis.hlines(level["energy"], -length / 2, length / 2, color="#1f6f5c", linewidth=1.5)
    axis.set_xticks([])
    axis.set_ylabel("energy")
    axis.set_title(f"{len(report['energies'])} of {report['states']} energies", loc="left",
                   fontsize=10)


def draw_density(axis, part, title, shift):
    energies = [energy - shift for energy in part["energies"]]
    axis.plot(energies, part["density"], color="#1f6f5c", linewidth=1.2)
    low = [value - error for value, error in zip(part["density"], part["errors"])]
    high = [value + error for value, error in zip(part["density"], part["errors"])]
    axis.fill_between(energies, low, high, color="#1f6f5c", alpha=0.25, linewidth=0)
    axis.set_xlabel("energy above the ground state" if shift else "energy")
    axis.set_ylim(bottom=0)
    axis.set_title(title, loc="left", fontsize=10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report")
    parser.add_argument("-o", "--output", default="energies.svg")
    options = parser.parse_args()
    report = json.loads(pathlib.Path(options.report).read_text(encoding="utf-8"))
    if report.get("command") != "ed":
        sys.exit(f"ed_plot.py: {options.report} is not a report of quiver ed")
    parts = []
    if report["levels"]:
        parts.append(lambda axis: draw_levels(axis, report))
    if report["density"]:
        parts.append(lambda axis: draw_density(axis, report["density"], "density of states", 0))
    if report["probe"]:
        parts.append(lambda axis: draw_density(axis, report["probe"], "spectral function",
                                               report["energies"][0]))
    plt.rcParams.update({"svg.hashsalt": "quiver", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(1, len(parts), figsize=(3.6 * len(parts), 3.6), squeeze=False)
    for axis, draw in zip(axes[0], parts):
        draw(axis)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    metadata = {"Date": None} if options.output.endswith("svg") else None
    figure.savefig(options.output, metadata=metadata)


if __name__ == "__main__":
    main()
