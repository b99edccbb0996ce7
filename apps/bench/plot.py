#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the files that `quiver bench kernels`, `reproduce`, `summary` and `blocking` write with --json.

    python3 apps/bench/plot.py widths.json --svg widths.svg --markdown widths.md
    quiver bench summary a.json b.json --json both.json && python3 apps/bench/plot.py both.json --svg both.svg
    python3 apps/bench/plot.py blocking.json --svg blocking.svg

The SVG page has up to three charts for each kernel, scalar and gap between rows: percent of the roofline over
the width for square shapes, percent of the roofline over flops per byte for other shapes, and the time of a call
over the rows for shapes with three or more numbers of rows. The Markdown page has the machine, the versions, the
commands, the ceilings, the summary and all numbers. Charts need matplotlib (Debian: python3-matplotlib).
"""
import argparse
import json
import math
import sys

SCALARS = "sdczhb"
ROWS_OF_A_SWEEP = 3
CHARTS_ACROSS = 4
DECADES_WITH_MORE_TICKS = 2.3
# Colours that colour-blind readers can tell apart (Okabe and Ito).
COLOURS = {
    "quiver": "#0072b2",
    "cublas": "#d55e00",
    "cusparse": "#e69f00",
    "quiver (model)": "#56b4e9",
    "quiver (atomics)": "#f0e442",
    "openblas": "#009e73",
    "eigen": "#cc79a7",
}
MATRIX_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9"]
MARKERS = "os^D"


class BadInput(Exception):
    """The input cannot be drawn."""


def plural(count, noun):
    return f"{count} {noun}" + ("" if count == 1 else "s")


def read(path):
    """The session or the blocking run of a file."""
    try:
        with open(path, encoding="utf-8") as file:
            session = json.load(file)
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from None
    known = isinstance(session, dict) and session.get("command") == "bench"
    if known and (session.get("schema"), session.get("kernel")) == (6, "blocking"):
        return session
    if not known or session.get("schema") != 5:
        raise BadInput(
            f"{path}: not written by quiver bench kernels, reproduce, summary or blocking; to convert a session "
            "of schema 2: quiver bench summary OLD.json --json NEW.json"
        )
    return session


def is_measured(result):
    return result["outcome"] != "failed"


def is_ours(result):
    return result["library"] == "quiver"


def case_of(result):
    """The values that identify a case."""
    return tuple(result.get(key) for key in ("kernel", "scalar", "m", "n", "rows", "ld_extra", "matrix", "tile"))


def groups_of(session):
    """The measured results of each kernel, scalar and gap between rows."""
    groups = {}
    for result in filter(is_measured, session["results"]):
        groups.setdefault((result["kernel"], result["scalar"], result["ld_extra"]), []).append(result)
    kernels = list(session["kernels"])
    if not groups:
        raise BadInput("nothing to draw: no case was measured")
    return sorted(groups.items(), key=lambda item: (kernels.index(item[0][0]), SCALARS.index(item[0][1]), item[0][2]))


def gap_text(gap):
    return f", ld = width + {gap}" if gap > 0 else ""


def title_of(session, key):
    kernel, scalar, gap = key
    return f"{kernel} {scalar}: {session['kernels'][kernel]['formula']}{gap_text(gap)}"


def flops_text(gigaflops):
    return f"{gigaflops / 1e3:.1f} TFLOP/s" if gigaflops >= 1e3 else f"{gigaflops:.1f} GFLOP/s"


def ceilings_text(ceilings):
    """The measured ceilings of a machine."""
    streams = [(stream, ceilings[f"{stream}_gb_per_s"]) for stream in ("read", "copy", "scale")]
    if streams[0][1] is None:
        text = "read, copy and scale not measured"
    else:
        text = ", ".join(f"{stream} {speed:.0f}" for stream, speed in streams) + " GB/s"
    return "; ".join([text] + [f"{peak['name']} {flops_text(peak['gflop_per_s'])}" for peak in ceilings["arithmetic"]])


def ceiling_text(session, result):
    """The ceilings of one result's stream and arithmetic: "ceiling: 4646 GB/s read, 64.7 TFLOP/s"."""
    ceilings = session["runs"][result["run"]]["ceilings"]
    stream = session["kernels"][result["kernel"]]["stream"]
    speed = ceilings[f"{stream}_gb_per_s"]
    text = "ceiling: " + (f"{speed:.0f} GB/s" if speed else "not measured") + f" {stream}"
    single_or_double = {"s": "single", "c": "single", "d": "double", "z": "double"}.get(result["scalar"])
    peak = single_or_double and ceilings[f"{single_or_double}_gflop_per_s"]
    return f"{text}, {flops_text(peak)}" if peak else text


# ---- Markdown ----


def versions(session):
    return "".join(f", {name} {version}" for name, version in session["environment"]["rivals"].items())


def markdown_head(session):
    environment = session["environment"]
    kernels = ", ".join(dict.fromkeys(result["kernel"] for result in session["results"]))
    machine = environment["gpu"] or environment["cpu"]
    text = f"# {kernels} on {machine}, {session['runs'][-1]['date'][:10]}\n\nquiver {session['version']}"
    if environment["gpu"]:
        driver = f", driver {environment['driver']}" if environment["driver"] else ""
        text += f", {environment['gpu']}, CUDA {environment['cuda'] or ''}{driver}"
    return text + f"{versions(session)}; host: {environment['cpu']}, {plural(environment['threads'], 'thread')}.\n\n"


def markdown_runs(session):
    """The commands without repetition, and the ceilings of each run that has results."""
    used = [session["runs"][index] for index in sorted({result["run"] for result in session["results"]})]
    commands = dict.fromkeys(run["command_line"] for run in used if run["command_line"])
    text = "".join(f"    {command}\n" for command in commands) + ("\n" if commands else "")
    text += "| run (UTC) | seconds | ceilings |\n|---|---|---|\n"
    for run in used:
        text += f"| {run['date']} | {run['seconds']:.0f} | {ceilings_text(run['ceilings'])} |\n"
    return text


def markdown_findings(session):
    """The summary, and the cases that no table shows."""
    text = "\n" + "".join(f"    {line}\n" for line in session["summary"])
    for result in session["results"]:
        if not is_measured(result):
            name = "{kernel} {scalar} {m}x{n}, {rows} rows".format(**result) + gap_text(result["ld_extra"])
            text += f"\nFailed: {name}, {result['library']}: {result['message']}.\n"
    left = len(session["not_run"])
    return text + (f"\nNot run, no time left: {plural(left, 'case')}.\n" if left else "")


def bold_if(condition, text):
    return f"**{text}**" if condition else text


def percent_text(result):
    percent = result["roofline_percent"]
    return "" if percent is None else f"{percent:.1f}"


def own_cells(result, two_widths, has_limits):
    """The columns of this library."""
    limit = result["limit_seconds"]
    short = result["misses_aim"]
    if result["ceiling"] == "flops":
        speed = flops_text(result["gflop_per_s"])
    else:
        speed = f"{result['gb_per_s']:.0f} GB/s"
    cells = [
        f"{result['m']} x {result['n']}" if two_widths else str(result["n"]),
        str(result["rows"]),
        bold_if(limit and short, f"{1e6 * result['seconds']['median']:.1f}"),
        speed,
        bold_if(not limit and short, percent_text(result)),
        result["ceiling"],
    ]
    return cells + ([f"{1e6 * limit:.1f}" if limit else ""] if has_limits else [])


def other_cells(session, result):
    """The columns of a rival or of a variant; empty if it lacks the case."""
    if result is None:
        return ["", ""]
    is_rival = not result["library"].startswith("quiver")
    won = is_rival and result["ratio"] is not None and result["ratio"] < session["least_ratio"]
    once = " (timed once)" if result["timed_once"] else ""
    return [percent_text(result), bold_if(won, f"{result['ratio'] or 0:.2f}") + once]


def row_of(cells):
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def markdown_table(session, key, group):
    """The table of one kernel, scalar and gap."""
    two_widths = session["kernels"][key[0]]["two_widths"]
    others = list(dict.fromkeys(result["library"] for result in group if not is_ours(result)))
    found = {(case_of(result), result["library"]): result for result in group}
    has_limits = any(result["limit_seconds"] for result in group)
    head = ["m x n" if two_widths else "width", "rows", "us", "speed", "% of roofline", "bound by"]
    head += ["limit us"] if has_limits else []
    for other in others:
        head += [f"{other} %", "ratio"]
    text = f"\n## {title_of(session, key)}\n\n{row_of(head)}\n|{'---|' * len(head)}\n"
    ours = filter(is_ours, group)
    for result in sorted(ours, key=lambda r: (r["m"] != r["n"], r["m"], r["n"], r["rows"])):
        cells = own_cells(result, two_widths, has_limits)
        for other in others:
            cells += other_cells(session, found.get((case_of(result), other)))
        text += row_of(cells) + (" **incorrect**\n" if result["outcome"] == "incorrect" else "\n")
    return text


def markdown(session):
    tables = "".join(markdown_table(session, key, group) for key, group in groups_of(session))
    legend = (
        "\nTimes are medians of a call. Ratio: time of the rival or variant over quiver's. **Bold**: below the aim, "
        f"over the limit, or a ratio below {session['least_ratio']}.\n"
    )
    return markdown_head(session) + markdown_runs(session) + markdown_findings(session) + legend + tables


# ---- Charts ----


def libraries_of(group):
    """All libraries, ours last, so that it is drawn on top."""
    names = dict.fromkeys(result["library"] for result in group)
    return sorted(names, key=lambda name: name == "quiver")


def marker_of(library):
    if library == "quiver":
        return "o"
    return "D" if library.startswith("quiver") else "^" if library == "eigen" else "s"


def add_series(ax, points, library, line="-", marker=None):
    points = sorted(points)
    colour = COLOURS.get(library, "#000000")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    ax.plot(xs, ys, ls=line, label=library, color=colour, marker=marker or marker_of(library), ms=4, lw=1.2)


def log_ticks(axis):
    """Ticks at powers of ten; on a short axis also at 2 and 5 times these."""
    from matplotlib import ticker

    low, high = axis.get_view_interval()
    subs = (1, 2, 5) if math.log10(high / low) < DECADES_WITH_MORE_TICKS else (1,)
    axis.set_major_locator(ticker.LogLocator(subs=subs))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def percent_chart(ax, session, group, x_of, line):
    """Percent of the roofline, with a line at 100."""
    most = max([result["roofline_percent"] or 0 for result in group])
    high = max(110, min(most + 10, 200))
    for library in libraries_of(group):
        theirs = [r for r in group if r["library"] == library and r["roofline_percent"] is not None]
        add_series(ax, [(x_of(r), min(r["roofline_percent"], high)) for r in theirs], library, line)
    ax.set(ylabel="% of the roofline", ylim=(0, high))
    ax.axhline(100, color="#333333", ls="--", lw=1)
    ax.text(0.99, 101.5 / high, ceiling_text(session, group[0]), transform=ax.transAxes, ha="right", fontsize=7)


def width_chart(ax, session, group):
    percent_chart(ax, session, group, lambda r: r["n"], "-")
    widest = max(r["n"] for r in group)
    first_by_flops = min((r["n"] for r in group if r["ceiling"] == "flops"), default=math.inf)
    step = 2 if widest <= 16 else 8 if widest <= 64 else 64
    ax.set(xlabel="width m = n", xlim=(0, widest + step / 4), xticks=range(0, widest + 1, step))
    if 1 < first_by_flops <= widest:
        ax.axvline(first_by_flops - 0.5, color="#777777", ls="--", lw=1)
        ax.text(first_by_flops - 0.3, 2, "bound by flops", color="#777777", fontsize=7)


def intensity_chart(ax, session, group):
    ax.set_xscale("log")
    percent_chart(ax, session, group, lambda r: r["flops"] / r["bytes"], "none")
    log_ticks(ax.xaxis)
    ax.set_xlabel("flops per byte (m and n differ)")


def rows_chart(ax, _session, group):
    """Time over rows: a marker for each shape, and the time of the roofline below ours."""
    microseconds = lambda r: 1e6 * r["seconds"]["median"]
    shapes = sorted({(r["m"], r["n"]) for r in group})
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="time of a call, us")
    ax.set_ylim(min(map(microseconds, group)) / 1.5, 1.5 * max(map(microseconds, group)))
    for library in libraries_of(group):
        for index, (m, n) in enumerate(shapes):
            theirs = sorted(
                (r for r in group if r["library"] == library and (r["m"], r["n"]) == (m, n)), key=lambda r: r["rows"]
            )
            if library == "quiver" and theirs:
                bound = [(r["rows"], microseconds(r) * (r["roofline_percent"] or 0) / 100) for r in theirs]
                bound = [(rows, time) for rows, time in bound if time >= ax.get_ylim()[0]]
                ax.plot(*zip(*bound) if bound else ([], []), ":", label="roofline", color="#777777", lw=1.2)
                ax.annotate(
                    f"{m}x{n}",
                    (theirs[-1]["rows"], microseconds(theirs[-1])),
                    xytext=(5, -3),
                    textcoords="offset points",
                    fontsize=7,
                )
            add_series(ax, [(r["rows"], microseconds(r)) for r in theirs], library, "-", MARKERS[index % 4])
    log_ticks(ax.xaxis)
    log_ticks(ax.yaxis)


def charts_of(session):
    """The rows of a page. A row is a list of charts: (title, drawing function, results)."""
    by_kernel = {}
    for key, group in groups_of(session):
        counts = {}
        for result in filter(is_ours, group):
            counts[result["m"], result["n"]] = counts.get((result["m"], result["n"]), 0) + 1
        sorts = {width_chart: [], intensity_chart: [], rows_chart: []}
        for result in group:
            is_sweep = counts.get((result["m"], result["n"]), 0) >= ROWS_OF_A_SWEEP
            sort = rows_chart if is_sweep else width_chart if result["m"] == result["n"] else intensity_chart
            sorts[sort].append(result)
        charts = by_kernel.setdefault(key[0], [])
        charts += [(title_of(session, key), draw, part) for draw, part in sorts.items() if part]
    rows = []
    for charts in by_kernel.values():
        rows += [charts[i : i + CHARTS_ACROSS] for i in range(0, len(charts), CHARTS_ACROSS)]
    return rows


def caption_of(session):
    environment = session["environment"]
    machine = environment["gpu"] or f"{environment['cpu']}, {plural(environment['threads'], 'thread')}"
    run = session["runs"][-1]
    return (
        f"{machine}. quiver {session['version']}{versions(session)}. {run['date'][:10]}.\n"
        f"Ceilings: {ceilings_text(run['ceilings'])}."
    )


def blocking_charts(run):
    """Charts of seconds and of multiplied columns, relative to block 1, with a line for each matrix."""

    def over_block_1(field):
        def draw(ax, _run, results):
            for index, matrix in enumerate(dict.fromkeys(r["matrix"] for r in results)):
                solves = [r for r in results if r["matrix"] == matrix]
                ratios = [r[field] / solves[0][field] for r in solves]
                colour = MATRIX_COLOURS[index % len(MATRIX_COLOURS)]
                blocks = [r["block"] for r in solves]
                ax.plot(blocks, ratios, label=matrix, color=colour, marker=MARKERS[index % 4], ms=4, lw=1.2)
            ax.set(xlabel="columns of a block", ylabel="over block 1", xlim=(0, 9))
            ax.set_ylim(0, max(2, ax.get_ylim()[1]))
            ax.axhline(1, color="#333333", ls="--", lw=1)

        return draw

    results = run["results"]
    if not results:
        raise BadInput("nothing to draw: no solve was made")
    return [
        [
            ("seconds", over_block_1("seconds"), results),
            ("products with A, by column", over_block_1("columns"), results),
        ]
    ]


def draw_svg(session, rows, caption, path):
    try:
        import matplotlib
    except ImportError:
        raise BadInput("--svg needs matplotlib (Debian: python3-matplotlib)") from None
    matplotlib.use("svg")
    # Keep text as text, and write the same file for the same results.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "quiver", "font.size": 8})
    from matplotlib import pyplot

    across = max(map(len, rows))
    height = 2.7 * len(rows) + 1
    figure, axes = pyplot.subplots(len(rows), across, figsize=(max(3.8 * across, 7.6), height), squeeze=False)
    handles = {}
    for line, charts in zip(axes, rows):
        for ax in line[len(charts) :]:
            ax.remove()
        for ax, (title, draw, results) in zip(line, charts):
            draw(ax, session, results)
            ax.set_title(title, loc="left", fontsize=9, fontweight="bold")
            ax.grid(color="#e3e3e3")
            ax.set_axisbelow(True)
            for handle, label in zip(*ax.get_legend_handles_labels()):
                handles.setdefault(label, handle)
    figure.tight_layout(rect=(0, 0.5 / height, 1, 1 - 0.35 / height))
    names = sorted(handles, key=lambda name: (name != "quiver", name == "roofline"))
    figure.legend([handles[name] for name in names], names, loc="upper left", ncol=6, frameon=False)
    figure.text(0.01, 0.1 / height, caption)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE.json", help="a file that quiver bench has written with --json")
    parser.add_argument("--svg", metavar="FILE", help="draw the charts to this file")
    parser.add_argument("--markdown", metavar="FILE", help="write the page to this file")
    options = parser.parse_args()
    if not options.svg and not options.markdown:
        parser.error("--svg FILE or --markdown FILE is needed")
    try:
        session = read(options.file)
        is_blocking = session["kernel"] == "blocking"
        if options.markdown:
            if is_blocking:
                raise BadInput("quiver bench blocking --markdown FILE writes the table itself")
            page = markdown(session)
            with open(options.markdown, "w", encoding="utf-8") as file:
                file.write(page)
        if options.svg:
            rows = blocking_charts(session) if is_blocking else charts_of(session)
            caption = f"{session['command_line']}\n{session['where']}" if is_blocking else caption_of(session)
            draw_svg(session, rows, caption, options.svg)
    except (BadInput, OSError) as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
