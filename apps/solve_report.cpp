// SPDX-License-Identifier: BSD-3-Clause
#include "apps/solve_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/report_parts.hpp"
#include "apps/row_distribution.hpp"

namespace quiver::apps {
namespace {

using nlohmann::ordered_json;

double relative_residual(const LinearColumn& column) {
    return column.b_norm > 0 ? column.residual / column.b_norm : 0;
}

template <class Value>
ordered_json of_columns(const LinearResult& result, Value&& value) {
    ordered_json array = ordered_json::array();
    for (const LinearColumn& column : result.columns) {
        array.push_back(value(column));
    }
    return array;
}

}  // namespace

std::string to_table(const SolveReport& report, bool verbose) {
    const LinearResult& result = report.result;
    std::string text = heading(report.matrix, report.run.where) +
                       distribution_lines(report.run.where.distribution);
    text +=
        fmt::format("method      {}, preconditioner {}, {} from {}, ||b - A x|| <= {:.3g} ||b||\n",
                    report.method, report.preconditioner,
                    plural(static_cast<std::int64_t>(result.columns.size()), "right-hand side"),
                    report.rhs, report.tolerance);
    text += fmt::format("\n{:>4}  {:>10}  {:>12}  {:>12}  {}\n", "", "iterations", "residual",
                        "/ ||b||", "status");
    for (std::size_t j = 0; j < result.columns.size(); ++j) {
        const LinearColumn& column = result.columns[j];
        text += fmt::format("{:>4}  {:>10}  {:>12.3e}  {:>12.3e}  {}\n", j + 1, column.iterations,
                            column.residual, relative_residual(column), to_string(column.status));
    }
    text += fmt::format("\nconverged   {}\n", result.converged ? "yes" : "NO");
    if (!result.message.empty()) {
        text += fmt::format("because     {}\n", result.message);
    }
    text += fmt::format("work        {}, {}, {} of the preconditioner\n",
                        plural(result.iterations, "iteration"),
                        plural(result.operator_applications, "product") + " with a vector",
                        result.preconditioner_applications);
    if (report.abft) {
        text += abft_line(*report.abft);
    }
    text += seconds_line(report.run);
    if (!report.output.empty()) {
        text += fmt::format("solution    {}\n", report.output);
    }
    if (verbose) {
        text += kernel_table(report.kernels);
    }
    return text;
}

std::string to_json(const SolveReport& report) {
    const LinearResult& result = report.result;
    const ordered_json json = {
        {"matrix", json_matrix(report.matrix)},
        {"rhs", report.rhs},
        {"method", report.method},
        {"broken_methods", report.broken_methods},
        {"preconditioner", report.preconditioner},
        {"tolerance", json_number(report.tolerance)},
        {"max_iterations", report.max_iterations},
        {"restart", report.restart},
        {"seed", report.seed},
        {"residuals",
         of_columns(result, [](const LinearColumn& c) { return json_number(c.residual); })},
        {"b_norms",
         of_columns(result, [](const LinearColumn& c) { return json_number(c.b_norm); })},
        {"iterations_by_column",
         of_columns(result, [](const LinearColumn& c) { return ordered_json(c.iterations); })},
        {"statuses",
         of_columns(result,
                    [](const LinearColumn& c) { return ordered_json(to_string(c.status)); })},
        {"messages",
         of_columns(result, [](const LinearColumn& c) { return ordered_json(c.message); })},
        {"converged", result.converged},
        {"message", result.message},
        {"iterations", result.iterations},
        {"operator_applications", result.operator_applications},
        {"preconditioner_applications", result.preconditioner_applications},
        {"output", report.output},
    };
    ordered_json more = {
        {"distribution", json_distribution(report.run.where.distribution)},
        {"kernels", json_kernels(report.kernels)},
    };
    if (report.abft) {
        more["abft"] = json_abft(*report.abft);
    }
    return json_report("solve", json, report.run, more);
}

}  // namespace quiver::apps
