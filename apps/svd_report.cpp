// SPDX-License-Identifier: BSD-3-Clause
#include "apps/svd_report.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/report_parts.hpp"

namespace quiver::apps {
namespace {

using nlohmann::ordered_json;
using Kind = SvdReport::Kind;

const char* name_of_kind(Kind kind) {
    switch (kind) {
        case Kind::pca:
            return "pca";
        case Kind::sparse:
            return "sparse";
        case Kind::dense:
            return "dense";
        default:
            return "block";
    }
}

std::string matrix_lines(const SvdReport& report) {
    std::string text = fmt::format(
        "method      {}, {}, {}\n",
        report.sparse.dense ? "dense: all singular values"
                            : report.sparse.method + " of A^H A or A A^H",
        plural(report.sparse.iterations, "iteration"), plural(report.sparse.products, "product"));
    text += fmt::format("wanted      the {} {}, {}{}\n", report.sparse.wanted,
                        report.sparse.smallest ? "smallest" : "largest",
                        report.sparse.converged     ? "converged"
                        : report.sparse.interrupted ? "INTERRUPTED"
                                                    : "NOT CONVERGED",
                        report.sparse.verified ? ", multiplicity verified" : "");
    if (!report.sparse.message.empty()) {
        text += fmt::format("reason      {}\n", report.sparse.message);
    }
    return text + fmt::format("norm        {:.6g}\n", report.sparse.norm_estimate);
}

std::string kind_lines(const SvdReport& report) {
    switch (report.kind) {
        case Kind::pca:
            return fmt::format(
                "components  {} of the centred rows, {} over X\n"
                "variance    {:.6g} in all columns; error of each at most {:.1e}\n",
                report.values.size(), report.pca.passes == 1 ? "1 pass" : "2 passes",
                report.pca.total_variance, report.pca.error);
        case Kind::sparse:
        case Kind::dense:
            return matrix_lines(report);
        default:
            return fmt::format("method      {}\nrank        {}\n",
                               report.from_gram ? "Gram matrix, 1 pass over X"
                                                : "Gram matrix, then orthonormal columns",
                               report.rank);
    }
}

std::string value_table(const SvdReport& report) {
    constexpr std::size_t most = 64;
    const bool pca = report.kind == Kind::pca;
    std::string text =
        pca ? fmt::format("\n{:>9}{:>22}{:>14}{:>9}\n", "component", "singular value", "variance",
                          "ratio")
            : fmt::format("\n{:>9}{:>22}{:>11}{}\n", "number", "singular value", "error",
                          report.sparse.residuals.empty() ? "" : "   residual");
    for (std::size_t j = 0; j < std::min(report.values.size(), most); ++j) {
        text += fmt::format("{:>9}{:>22.15g}", j, report.values[j]);
        if (pca) {
            text +=
                fmt::format("{:>14.6g}{:>9.4f}\n", report.pca.variances[j], report.pca.ratios[j]);
            continue;
        }
        text += fmt::format("{:>11.1e}", report.errors[j]);
        text += report.sparse.residuals.empty()
                    ? "\n"
                    : fmt::format("{:>11.1e}\n", report.sparse.residuals[j]);
    }
    if (report.values.size() > most) {
        text += fmt::format("{:>9}\n", "...");
    }
    return text;
}

ordered_json rows_json(const std::vector<std::vector<double>>& rows) {
    ordered_json result = ordered_json::array();
    for (const std::vector<double>& row : rows) {
        result.push_back(json_numbers(row));
    }
    return result;
}

void add_kind(ordered_json& json, const SvdReport& report) {
    if (report.kind == Kind::block) {
        json["errors"] = json_numbers(report.errors);
        json["rank"] = report.rank;
        json["from_gram"] = report.from_gram;
        json["right"] = rows_json(report.vectors);
        return;
    }
    if (report.kind == Kind::pca) {
        json["variances"] = json_numbers(report.pca.variances);
        json["ratios"] = json_numbers(report.pca.ratios);
        json["error"] = json_number(report.pca.error);
        json["total_variance"] = json_number(report.pca.total_variance);
        json["noise_variance"] = json_number(report.pca.noise_variance);
        json["mean"] = json_numbers(report.pca.mean);
        json["components"] = rows_json(report.vectors);
        json["passes"] = report.pca.passes;
        return;
    }
    if (report.kind == Kind::sparse) {
        json["nonzeros"] = report.sparse.nonzeros;
    }
    json["errors"] = json_numbers(report.errors);
    json["residuals"] = json_numbers(report.sparse.residuals);
    json["norm_estimate"] = json_number(report.sparse.norm_estimate);
    json["wanted"] = report.sparse.wanted;
    json["which"] = report.sparse.smallest ? "smallest" : "largest";
    json["tolerance"] = report.sparse.tol;
    json["converged"] = report.sparse.converged;
    json["interrupted"] = report.sparse.interrupted;
    json["multiplicity"] = report.sparse.verified ? "verified" : "unverified";
    json["dense"] = report.sparse.dense;
    json["method"] = report.sparse.method;
    json["iterations"] = report.sparse.iterations;
    json["products"] = report.sparse.products;
    json["message"] = report.sparse.message;
}

}  // namespace

std::string to_table(const SvdReport& report) {
    std::string text = fmt::format(
        "{}{}: {}, {}, {}{}\n",
        report.kind == Kind::sparse || report.kind == Kind::dense ? "matrix      " : "block       ",
        report.input, plural(report.rows, "row"), plural(report.columns, "column"),
        report.kind == Kind::sparse ? plural(report.sparse.nonzeros, "nonzero") + ", " : "",
        name_of(report.scalar));
    return text + where_lines(report.run.where) + kind_lines(report) + value_table(report) + "\n" +
           seconds_line(report.run);
}

std::string to_json(const SvdReport& report) {
    ordered_json json = {
        {"input", report.input},
        {"dataset", report.dataset.empty() ? ordered_json(nullptr) : ordered_json(report.dataset)},
        {"kind", name_of_kind(report.kind)},
        {"rows", report.rows},
        {"columns", report.columns},
        {"scalar", std::string(1, letter(report.scalar))},
        {"k", report.values.size()},
        {"values", json_numbers(report.values)}};
    add_kind(json, report);
    return json_report("svd", json, report.run);
}

}  // namespace quiver::apps
