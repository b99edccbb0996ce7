#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a JSON report of `quiver kmeans`: the clusters in two columns, and the inertia.

    quiver kmeans X.h5 -k 10 --json report.json
    python3 apps/kmeans_plot.py report.json -o clusters.svg      needs matplotlib
    python3 apps/kmeans_plot.py report.json --points X.mtx --columns 0,3 -o clusters.png

A circle has the root mean square distance of a cluster's points to its centre as its radius. The
points of a Matrix Market array file are drawn beneath the clusters, at most 20,000 of them.
"""
import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

MOST_POINTS = 20000


def read_points(path, columns):
    """Some points of a Matrix Market array: their numbers in the two columns."""
    lines = [line for line in pathlib.Path(path).read_text(encoding="ascii").splitlines()
             if line.strip()]
    if "array real general" not in lines[0].lower():
        sys.exit(f"kmeans_plot.py: {path}: a Matrix Market array of real numbers is expected")
    body = [line for line in lines if not line.startswith("%")]
    rows, width = (int(word) for word in body[0].split())
    if max(columns) >= width:
        sys.exit(f"kmeans_plot.py: {path} has {width} columns")
    step = rows // MOST_POINTS + 1
    return [[float(body[1 + column * rows + row]) for row in range(0, rows, step)]
            for column in columns]


def draw_clusters(axis, report, columns, points):
    x, y = columns
    if points:
        axis.plot(points[0], points[1], ".", markersize=2, color="#b8c0c8", zorder=0)
    for centre, size, inertia in zip(report["centres"], report["sizes"], report["inertias"]):
        at = (centre[x], centre[y] if report["columns"] > 1 else 0.0)
        radius = (inertia / size)**0.5 if size else 0.0
        axis.add_patch(plt.Circle(at, radius, fill=False, color="#1f6f5c"))
        axis.plot(*at, "o", markersize=3, color="#b5651d")
    axis.set_xlabel(f"column {x}")
    axis.set_ylabel(f"column {y}" if report["columns"] > 1 else "")
    axis.set_aspect("equal", adjustable="datalim")
    axis.autoscale_view()
    axis.set_title(f"{report['k']} clusters of {report['rows']} points", loc="left", fontsize=10)


def draw_inertia(axis, report):
    values = report["history"] + [report["inertia"]]
    axis.plot(range(len(values)), values, "o-", markersize=3, color="#1f6f5c")
    axis.set_xlabel("iteration")
    axis.set_title("inertia", loc="left", fontsize=10)
    if min(values) > 0:
        axis.set_yscale("log")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report")
    parser.add_argument("-o", "--output", default="clusters.svg")
    parser.add_argument("--points", help="Matrix Market array file of the points")
    parser.add_argument("--columns", default="0,1", help="the two columns of the points to draw")
    options = parser.parse_args()
    report = json.loads(pathlib.Path(options.report).read_text(encoding="utf-8"))
    if report.get("command") != "kmeans":
        sys.exit(f"kmeans_plot.py: {options.report} is not a report of quiver kmeans")
    columns = [int(word) for word in options.columns.split(",")]
    most = max(report["columns"], 2)
    if len(columns) != 2 or not all(0 <= column < most for column in columns):
        sys.exit(f"kmeans_plot.py: --columns {options.columns}: two numbers from 0 to {most - 1}")
    plt.rcParams.update({"svg.hashsalt": "quiver", "svg.fonttype": "none", "font.size": 9})
    figure, (clusters, inertia) = plt.subplots(1, 2, figsize=(9.6, 4.2))
    points = read_points(options.points, columns) if options.points else None
    draw_clusters(clusters, report, columns, points)
    draw_inertia(inertia, report)
    for axis in (clusters, inertia):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    metadata = {"Date": None} if options.output.endswith("svg") else None
    figure.savefig(options.output, metadata=metadata)


if __name__ == "__main__":
    main()
