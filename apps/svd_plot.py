#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a JSON report of `quiver svd`: the singular values with their errors, and the variances.

    quiver svd --pca X.h5 --json report.json
    python3 apps/svd_plot.py report.json -o svd.svg              needs matplotlib
"""
import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

GREEN, BROWN, GREY = "#1f6f5c", "#b5651d", "#b8c0c8"


def draw_values(axis, report):
    values = report["values"]
    numbers = range(len(values))
    axis.plot(numbers, values, "o-", markersize=3, linewidth=0.8, color=GREEN)
    positive = [value for value in values if value > 0]
    if positive and max(positive) > 50 * min(positive):
        axis.set_yscale("log")
    axis.set_xlabel("number")
    axis.set_title(f"singular values of {report['rows']} x {report['columns']}", loc="left",
                   fontsize=10)


def draw_errors(axis, report):
    numbers = range(len(report["values"]))
    axis.plot(numbers, report["errors"], "o-", markersize=3, linewidth=0.8, color=BROWN,
              label="error bound")
    if report["kind"] in ("sparse", "dense"):
        axis.plot(numbers, report["residuals"], "s-", markersize=3, linewidth=0.8, color=GREY,
                  label="residual")
    if max(report["errors"], default=0) > 0:
        axis.set_yscale("log")
    axis.set_xlabel("number")
    axis.set_title("errors", loc="left", fontsize=10)
    axis.legend(frameon=False, fontsize=8)


def draw_variances(axis, report):
    ratios = report["ratios"]
    total, sums = 0.0, []
    for ratio in ratios:
        total += ratio
        sums.append(total)
    axis.bar(range(len(ratios)), ratios, color=GREY)
    axis.plot(range(len(ratios)), sums, "o-", markersize=3, linewidth=0.8, color=BROWN)
    axis.set_ylim(0, 1.05)
    axis.set_xlabel("component")
    axis.set_title("part of the variance, and its sum", loc="left", fontsize=10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report")
    parser.add_argument("-o", "--output", default="svd.svg")
    options = parser.parse_args()
    report = json.loads(pathlib.Path(options.report).read_text(encoding="utf-8"))
    if report.get("command") != "svd":
        sys.exit(f"svd_plot.py: {options.report} is not a report of quiver svd")
    plt.rcParams.update({"svg.hashsalt": "quiver", "svg.fonttype": "none", "font.size": 9})
    figure, (values, right) = plt.subplots(1, 2, figsize=(9.6, 3.8))
    draw_values(values, report)
    (draw_variances if report["kind"] == "pca" else draw_errors)(right, report)
    for axis in (values, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    metadata = {"Date": None} if options.output.endswith("svg") else None
    figure.savefig(options.output, metadata=metadata)


if __name__ == "__main__":
    main()
