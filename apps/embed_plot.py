#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a JSON report of `quiver embed`: the nodes at two coordinates, and the eigenvalues.

    quiver embed graph.mtx -k 8 --json report.json
    python3 apps/embed_plot.py report.json -o embedding.svg      needs matplotlib
    python3 apps/embed_plot.py report.json --columns 2,3 -o embedding.png

The report has at most 2,000 nodes and the first 8 vectors. The colours are those of the
components or, for a connected graph, the values of the third vector.
"""
import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt


def draw_nodes(axis, report, columns):
    sample = report["sample"]
    x, y = ([vector[column] if column < len(vector) else 0.0 for vector in sample["vectors"]]
            for column in columns)
    third = [vector[min(2, len(vector) - 1)] for vector in sample["vectors"]]
    colours = sample["components"] if report["components"] > 1 else third
    axis.scatter(x, y, c=colours, cmap="turbo", s=5, linewidths=0)
    axis.set_xlabel(f"vector {columns[0]}")
    axis.set_ylabel(f"vector {columns[1]}")
    rows = report["matrix"]["rows"]
    axis.set_title(f"{len(x)} of {rows} nodes, components: {report['components']}", loc="left",
                   fontsize=10)


def draw_eigenvalues(axis, report):
    values = report["eigenvalues"]
    nulls = report["null_vectors"]
    axis.plot(range(nulls), values[:nulls], "o", markersize=4, color="#b5651d",
              label="null vectors")
    axis.plot(range(nulls, len(values)), values[nulls:], "o", markersize=4, color="#1f6f5c")
    axis.set_xlabel("vector")
    axis.set_title(f"eigenvalues, {report['laplacian']} Laplacian", loc="left", fontsize=10)
    axis.set_ylim(bottom=-0.05 * max(max(values), 1e-12))
    if nulls:
        axis.legend(frameon=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report")
    parser.add_argument("-o", "--output", default="embedding.svg")
    parser.add_argument("--columns", default="0,1", help="the two vectors to draw")
    options = parser.parse_args()
    report = json.loads(pathlib.Path(options.report).read_text(encoding="utf-8"))
    if report.get("command") != "embed":
        sys.exit(f"embed_plot.py: {options.report} is not a report of quiver embed")
    if not report["eigenvalues"]:
        sys.exit(f"embed_plot.py: {options.report} has no vectors")
    columns = [int(word) if word.isdigit() else -1 for word in options.columns.split(",")]
    most = max(len(report["sample"]["vectors"][0]), 2)
    if len(columns) != 2 or not all(0 <= column < most for column in columns):
        sys.exit(f"embed_plot.py: --columns {options.columns}: two numbers from 0 to {most - 1}")
    plt.rcParams.update({"svg.hashsalt": "quiver", "svg.fonttype": "none", "font.size": 9})
    figure, (nodes, values) = plt.subplots(1, 2, figsize=(9.6, 4.2))
    draw_nodes(nodes, report, columns)
    draw_eigenvalues(values, report)
    for axis in (nodes, values):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    metadata = {"Date": None} if options.output.endswith("svg") else None
    figure.savefig(options.output, metadata=metadata)


if __name__ == "__main__":
    main()
