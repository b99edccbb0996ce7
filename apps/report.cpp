// SPDX-License-Identifier: BSD-3-Clause
#include "apps/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/report_parts.hpp"
#include "apps/row_distribution.hpp"
#include "blockvec/error.hpp"
#include "kernels/output_file.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver::apps {

using nlohmann::ordered_json;

std::string plural(std::int64_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

const char* name_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::s:
            return "single";
        case Dtype::c:
            return "single complex";
        case Dtype::z:
            return "double complex";
        case Dtype::h:
            return "half";
        case Dtype::b:
            return "bfloat16";
        default:
            return "double";
    }
}

namespace {

/// True for the methods that factorise the matrix. Their tables show no block and no basis.
bool factorises(const EigsReport& report) {
    return report.method == "dense" || report.method == "shift-invert";
}

/// The method, with the sizes of its block and basis if it has these.
std::string method_words(const EigsReport& report) {
    return factorises(report)
               ? report.method + (report.library.empty() ? "" : " by " + report.library)
               : fmt::format("{}, block {}, basis {}", report.method, report.block, report.basis);
}

/// Options with which a run that has not converged may succeed: a sentence each.
std::vector<std::string> advice(const EigsReport& report) {
    if (report.message.empty() || report.interrupted || !report.inertia.empty() ||
        report.method == "dense") {
        return {};
    }
    if (report.abft && report.abft->mode == "detect" && report.abft->counts.faults > 0) {
        return {};  // the reason names the faults and the cure
    }
    if (report.method == "shift-invert" && report.message.find("; use ") != std::string::npos) {
        return {};  // the message names the cure
    }
    if (report.method == "shift-invert") {
        // After a failure of another method, too, the message begins with the names of both.
        return {report.message.starts_with("stopped after") ? "a higher --max-iterations may help"
                : report.message.starts_with("shift-invert:")
                    ? "another target or --window may help"
                    : "another target or --window, or a "
                      "method that iterates, may help"};
    }
    std::vector<std::string> sentences;
    const bool is_named = report.message.find(to_string(Method::shift_invert)) != std::string::npos;
    if (report.matrix.rows <= most_ldlt_rows && !report.abft && !is_named) {
        sentences.emplace_back(
            "--method shift-invert factorises the matrix and may find the missing eigenvalues");
    }
    if (report.preconditioner.starts_with("ldlt") && report.window == std::nullopt) {
        sentences.emplace_back(
            "--precond ldlt helps at an end only if its shift lies beyond all eigenvalues there");
    }
    const bool stagnated = report.message.find("without progress") != std::string::npos;
    if (report.method == "lobpcg") {
        if (!stagnated) {
            sentences.emplace_back("a higher --max-iterations may help");
        }
    } else {
        sentences.push_back(fmt::format("{}a larger --basis (now {}) may help",
                                        stagnated ? "" : "a higher --max-iterations or ",
                                        report.basis));
    }
    return sentences;
}

std::string window_line(const EigsReport& report) {
    const std::string found = plural(std::ssize(report.eigenvalues), "eigenvalue");
    if (factorises(report) && !report.converged) {
        return fmt::format("window      {} found\n", found);
    }
    if (report.method == "shift-invert") {
        return fmt::format("window      {} found, as the factorisations count\n", found);
    }
    return report.method == "dense"
               ? fmt::format("window      {} found in the whole spectrum\n", found)
               : fmt::format(
                     "window      {} found, {:.1f} +- {:.1f} expected from the density of "
                     "states\n",
                     found, report.expected_count, report.expected_error);
}

/// Tells of a window that rounding errors made much wider: eigenvalues of A are known up to
/// 32 eps ||A|| only, and all that may lie in the window are in the result.
std::string widened_line(const EigsReport& report) {
    double beyond = 0;
    for (const double value : report.eigenvalues) {
        beyond = std::max({beyond, report.window->low - value, value - report.window->high});
    }
    return beyond <= 1e-3 * (report.window->high - report.window->low)
               ? ""
               : fmt::format(
                     "            eigenvalues up to {:.2g} outside the window are included: "
                     "rounding "
                     "errors of the norm {:.2g} can move them that far\n",
                     beyond, report.norm_estimate);
}

/// Which eigenvalues the result omits although they rank with its last one.
const char* cut_words(const EigsReport& report) {
    return report.which.starts_with("target:") || report.which == "smallest-magnitude"
               ? "further eigenvalues are as near to the target as the farthest one"
           : report.which == "largest-magnitude"
               ? "further eigenvalues have the last one's magnitude"
               : "the last eigenvalue has further copies";
}

/// What was computed: the matrices, the method with the wanted eigenvalues and the tolerance.
std::string task_lines(const EigsReport& report, const char* scale) {
    const auto& matrix = report.matrix;
    std::string text =
        heading(matrix, report.run.where) + distribution_lines(report.run.where.distribution);
    const bool with_b = !report.mass.empty();
    if (with_b) {
        text += fmt::format("mass        {}\n", report.mass);
    }
    if (report.preconditioner != "none") {
        text += fmt::format("precond     {}{}\n", report.preconditioner,
                            report.method == "dense" ? " (not used by dense)" : "");
    }
    const std::string wanted =
        report.window ? fmt::format("all in [{}, {}]", report.window->low, report.window->high)
                      : fmt::format("{} {}{}", report.k, report.which,
                                    report.k_lowered ? " (all, since the matrix has no more)" : "");
    text += fmt::format("method      {}, {}, ||A x - lambda {}x|| <= {:.3g} {}",
                        method_words(report), wanted, with_b ? "B " : "", report.tolerance, scale);
    if (report.tolerance_raised) {
        text += fmt::format(" (raised from {:.3g}, which {} scalars cannot attain)",
                            report.tolerance_asked, name_of(matrix.scalar));
    }
    text += '\n';
    if (!report.method_reason.empty()) {
        text += fmt::format("reason      {}\n", report.method_reason);
    }
    return text;
}

/// A row for each eigenvalue, with its residual and, if these are known, its digits and its error.
std::string eigenvalue_rows(const EigsReport& report) {
    const int shown = is_single(report.matrix.scalar) ? 8 : 15;
    const std::vector<int> digits = correct_digits(report);
    std::string text = fmt::format("{:>4}  {:>23}  {:>9}", "", "eigenvalue", "residual");
    text += digits.empty() ? "" : "  digits";
    if (!report.exact.empty()) {
        text += fmt::format("  {:>23}  {:>9}", "exact", "error");
    }
    text += '\n';
    const double accepted = report.tolerance * report.norm_estimate;
    bool any_marked = false;
    for (std::size_t i = 0; i < report.eigenvalues.size(); ++i) {
        const bool good = report.residuals[i] <= accepted;
        any_marked = any_marked || !good;
        text += fmt::format("{:>4}  {:>#23.{}g}  {:>9.1e}", i + 1, report.eigenvalues[i], shown,
                            report.residuals[i]);
        text += digits.empty() ? "" : fmt::format("  {:>6}", digits[i]);
        if (i < report.exact.size()) {
            text += fmt::format("  {:>#23.{}g}  {:>9.1e}", report.exact[i], shown,
                                std::abs(report.eigenvalues[i] - report.exact[i]));
        }
        text += good ? "\n" : "  *\n";
    }
    return text + (any_marked ? "   * residual above the tolerance\n" : "");
}

std::string inertia_lines(const EigsReport& report) {
    const char* side = report.which == "largest" ? "above" : "below";
    std::string text;
    for (const InertiaCount& count : report.inertia) {
        if (!count.reliable) {
            text += fmt::format(
                "inertia     NOT COUNTED {} {:.15g}: the factorisation is not accurate enough\n",
                side, count.shift);
            continue;
        }
        text += fmt::format("inertia     {} {} {:.15g}, {} expected{}\n",
                            plural(count.counted, "eigenvalue"), side, count.shift, count.expected,
                            count.agrees() ? "" : ": THEY DISAGREE");
    }
    return text;
}

/// Whether the result is complete and certain, and if not, why and what may help.
std::string verdict_lines(const EigsReport& report) {
    std::string text =
        fmt::format("converged   {}, multiplicity {}{}\n", report.converged ? "yes" : "NO",
                    report.verified ? "verified" : "UNVERIFIED",
                    report.cluster_cut ? std::string(", ") + cut_words(report) : "");
    text += digits_line(report);
    if (report.window) {
        text += window_line(report) + widened_line(report);
    }
    text += inertia_lines(report);
    if (!report.message.empty()) {
        text += fmt::format("because     {}\n", report.message);
        for (const std::string& sentence : advice(report)) {
            text += fmt::format("            {}\n", sentence);
        }
    }
    return text;
}

}  // namespace

std::string to_table(const EigsReport& report, bool verbose) {
    const char* scale = report.mass.empty() ? "||A||" : "(||A|| + |lambda| ||B||)";
    std::string text = task_lines(report, scale) + '\n' + eigenvalue_rows(report);
    text += fmt::format("\nnorm        {} is about {:.6g}\n", scale, report.norm_estimate);
    text += verdict_lines(report);
    text += fmt::format("work        {}, {}\n", plural(report.iterations, "iteration"),
                        plural(report.operator_applications, "product") + " with a vector");
    if (report.abft) {
        text += abft_line(*report.abft);
    }
    text += seconds_line(report.run);
    if (verbose) {
        text += kernel_table(report.kernels);
    }
    if (report.ceilings) {
        text += profile_table(report.kernels, report.overhead, report.iterations,
                              seconds_of(report.run, "solve"), *report.ceilings);
    }
    return text;
}

std::string to_json(const EigsReport& report) {
    ordered_json inertia = ordered_json::array();
    for (const InertiaCount& count : report.inertia) {
        inertia.push_back({{"shift", json_number(count.shift)},
                           {"expected", count.expected},
                           {"counted", count.counted},
                           {"reliable", count.reliable}});
    }
    const auto in_window = [&](double value) {
        return report.window ? json_number(value) : ordered_json();
    };
    const ordered_json json = {
        {"matrix", json_matrix(report.matrix)},
        {"mass", report.mass},
        {"preconditioner", report.preconditioner},
        {"k", report.k},
        {"which", report.which},
        {"window", report.window ? ordered_json({json_number(report.window->low),
                                                 json_number(report.window->high)})
                                 : ordered_json()},
        {"expected_count", in_window(report.expected_count)},
        {"expected_error", in_window(report.expected_error)},
        {"method", report.method},
        {"method_reason", report.method_reason},
        {"library", report.library},
        {"block", report.block},
        {"basis", report.basis},
        {"seed", report.seed},
        {"tolerance", json_number(report.tolerance)},
        {"tolerance_asked", json_number(report.tolerance_asked)},
        {"tolerance_raised", report.tolerance_raised},
        {"eigenvalues", json_numbers(report.eigenvalues)},
        {"residuals", json_numbers(report.residuals)},
        {"digits", correct_digits(report)},
        {"exact_eigenvalues", json_numbers(report.exact)},
        {"norm_estimate", json_number(report.norm_estimate)},
        {"converged", report.converged},
        {"multiplicity", report.verified ? "verified" : "unverified"},
        {"cluster_cut", report.cluster_cut},
        {"interrupted", report.interrupted},
        {"inertia", std::move(inertia)},
        {"message", report.message},
        {"advice", advice(report)},
        {"iterations", report.iterations},
        {"operator_applications", report.operator_applications},
    };
    ordered_json more = {
        {"distribution", json_distribution(report.run.where.distribution)},
        {"kernels", json_kernels(report.kernels)},
        {"overhead", json_overhead(report.overhead)},
    };
    if (report.abft) {
        more["abft"] = json_abft(*report.abft);
    }
    return json_report("eigs", json, report.run, more);
}

void print(const Comm& comm, const std::string& text, std::FILE* to) {
    comm.agree([&] {
        if (comm.rank() == 0 &&
            (std::fwrite(text.data(), 1, text.size(), to) != text.size() || std::fflush(to) != 0)) {
            throw Error(ErrorKind::other,
                        fmt::format("cannot write to {}: {}", to == stderr ? "stderr" : "stdout",
                                    std::strerror(errno)));
        }
    });
}

std::FILE* table_stream(std::initializer_list<std::string> outputs) {
    return std::any_of(outputs.begin(), outputs.end(), is_standard_output) ? stderr : stdout;
}

void check_writable(const std::string& path, const std::string& option, const std::string& format) {
    if (path.empty()) {
        throw InputError(option + " '': the name of a file is wanted");
    }
    try {
        const OutputFile output(path);
        if (!format.empty()) {
            output.require_regular_file(format);
        }
        output.check();
    } catch (const Error& error) {
        throw InputError(option + ": " + error.what());
    }
}

void write_file(const std::string& path, const std::string& text, bool durable) {
    write_output(path, text, durable);
}

void write_on_rank_0(const Comm& comm, const std::string& path,
                     const std::function<std::string()>& make_text) {
    comm.agree([&] {
        if (comm.rank() == 0) {
            write_file(path, make_text());
        }
    });
}

}  // namespace quiver::apps
