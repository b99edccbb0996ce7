#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the picture of README.md: seconds, and eigenvalues that are wrong or missed.

    python3 docs/plots/readme_picture.py            needs matplotlib

The numbers are in readme_picture.json, which names the page that they were measured for. A matrix
without results, or a result without a number, gets no bar and the words "not measured".
"""
import json
import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

FOLDER = pathlib.Path(__file__).resolve().parent
COLOURS = {"quiver": "#1f6f5c", "cupyx eigsh": "#b5651d", "torch.lobpcg": "#6b7a90"}


def bars(data):
    """(position, matrix, result or None) of every bar, from the top down."""
    position = 0.0
    for matrix in data["matrices"]:
        for result in matrix["results"] or [None]:
            yield position, matrix, result
            position -= 1.0
        position -= 0.8


def draw(axis, data, key, text):
    """One panel: the number `key` of every result, written with the format `text`."""
    most = max(result[key] for _, _, result in bars(data) if result and result[key] is not None)
    for position, matrix, result in bars(data):
        value = result[key] if result else None
        if value is None:
            axis.text(0, position, " not measured", va="center", style="italic", color="#555555")
        else:
            axis.barh(position, value, height=0.8, color=COLOURS[result["solver"]])
            axis.text(value, position, " " + text.format(value, matrix["wanted"]), va="center")
    axis.set_xlim(0, 1.2 * most)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.set_xticks([])


def main():
    data = json.loads((FOLDER / "readme_picture.json").read_text(encoding="utf-8"))
    plt.rcParams.update({"svg.hashsalt": "quiver", "svg.fonttype": "none", "font.size": 10})
    figure, (seconds, wrong) = plt.subplots(1, 2, sharey=True, figsize=(9.6, 3.9))
    draw(seconds, data, "seconds", "{:.2f} s")
    draw(wrong, data, "wrong", "{:d} of {:d}")
    seconds.set_title("seconds, second call", loc="left", fontsize=10)
    wrong.set_title("eigenvalues wrong or missed", loc="left", fontsize=10)
    positions = list(bars(data))
    seconds.set_yticks([p for p, _, _ in positions], [r["solver"] if r else "" for _, _, r in positions])
    seconds.tick_params(axis="y", length=0)
    wrong.tick_params(axis="y", length=0, labelleft=False)
    for matrix in data["matrices"]:
        top = max(p for p, m, _ in positions if m is matrix)
        seconds.text(0, top + 0.62, f"{matrix['name']} ({matrix['copies']})", fontweight="bold", fontsize=9)
    seconds.set_ylim(positions[-1][0] - 0.6, 1.2)
    figure.suptitle(data["title"], x=0.01, ha="left", fontsize=11)
    figure.tight_layout()
    figure.savefig(FOLDER / "readme_picture.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
