// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/figures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "apps/bench/choose_cases.hpp"
#include "apps/bench/kernel.hpp"
#include "apps/bench/words.hpp"
#include "apps/report.hpp"

namespace quiver::apps::bench {
namespace {

constexpr const char* own_column = "library";

PlannedProduct product_of(const Case& c) {
    return {c.kernel->name(), c.scalar, c.shape.m, c.shape.n, c.rows};
}

const Result* find_result(const Session& session, const Case& c, const std::string& library) {
    for (const Result& result : session.results) {
        if (result.which == c && result.library == library && result.measured() &&
            result.outcome == Outcome::passed) {
            return &result;
        }
    }
    return nullptr;
}

const char* unit_of(Quantity quantity) {
    return quantity == Quantity::bandwidth ? "GB/s"
           : quantity == Quantity::flops   ? "GFLOP/s"
                                           : "us";
}

double value_of(Quantity quantity, const Result& result) {
    const double seconds = result.seconds.median;
    return quantity == Quantity::bandwidth ? 1e-9 * result.bytes / seconds
           : quantity == Quantity::flops   ? 1e-9 * result.flops / seconds
                                           : 1e6 * seconds;
}

/// Replaces the cell if the result is faster.
void improve(FigureCell& cell, Quantity quantity, const Result* result) {
    if (result == nullptr) {
        return;
    }
    const double value = value_of(quantity, *result);
    const bool better = !cell.value || (quantity == Quantity::microseconds ? value < *cell.value
                                                                           : value > *cell.value);
    if (better) {
        cell = {value, result->library};
    }
}

std::size_t position_of(std::vector<std::string>& names, const std::string& name) {
    add_once(names, name);
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// For each column but the first, its speed relative to the first column.
std::vector<std::string> compared_columns(const FigureTable& table, Quantity quantity) {
    std::vector<std::string> remarks;
    for (std::size_t column = 1; column < table.columns.size(); ++column) {
        double logs = 0;
        double least = HUGE_VAL;
        double most = 0;
        int count = 0;
        for (const auto& [label, cells] : table.rows) {
            if (!cells[0].value || !cells[column].value) {
                continue;
            }
            const double quotient = *cells[column].value / *cells[0].value;
            const double faster = quantity == Quantity::microseconds ? 1 / quotient : quotient;
            logs += std::log(faster);
            least = std::min(least, faster);
            most = std::max(most, faster);
            ++count;
        }
        if (count > 0) {
            remarks.push_back(fmt::format(
                "{} / {}: {:.2f} times as fast (geometric mean of {}), {:.2f} to {:.2f}",
                table.columns[column], table.columns[0], std::exp(logs / count),
                plural(count, "row"), least, most));
        }
    }
    return remarks;
}

/// The logarithms of a plan's modelled and measured time.
struct Compared {
    double model, measured;
};

double correlation(const std::vector<Compared>& pairs) {
    const auto count = static_cast<double>(pairs.size());
    double x = 0;
    double y = 0;
    for (const Compared& each : pairs) {
        x += each.model / count;
        y += each.measured / count;
    }
    double xx = 0;
    double yy = 0;
    double xy = 0;
    for (const Compared& each : pairs) {
        xx += (each.model - x) * (each.model - x);
        yy += (each.measured - y) * (each.measured - y);
        xy += (each.model - x) * (each.measured - y);
    }
    return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// The mean of |model / measured - 1| if the model's clocks are scaled so that the mean of the
/// logarithms agrees, in percent.
double mean_error(const std::vector<Compared>& pairs) {
    const auto count = static_cast<double>(pairs.size());
    double shift = 0;
    for (const Compared& each : pairs) {
        shift += (each.measured - each.model) / count;
    }
    double sum = 0;
    for (const Compared& each : pairs) {
        sum += std::abs(std::exp(each.model + shift - each.measured) - 1);
    }
    return 100 * sum / count;
}

FigureTable model_table(FigureTable table, const std::vector<FigurePoint>& points,
                        const Session& session) {
    table.unit = "";
    table.columns = {"plans", "correlation", "mean error %", "first / best"};
    std::vector<std::string> labels;
    for (const FigurePoint& point : points) {
        add_once(labels, point.setting.row);
    }
    for (const std::string& label : labels) {
        std::vector<std::string> known;
        std::vector<Compared> pairs;
        for (const FigurePoint& point : points) {
            const Result* const result =
                point.setting.row == label && point.clocks > 0
                    ? find_result(session, point.setting.which, point.library)
                    : nullptr;
            if (result != nullptr &&
                std::find(known.begin(), known.end(), point.library) == known.end()) {
                known.push_back(point.library);
                pairs.push_back({std::log(point.clocks), std::log(result->seconds.median)});
            }
        }
        std::vector<FigureCell> cells(4);
        cells[0].value = static_cast<double>(pairs.size());
        if (pairs.size() > 2) {
            const auto by_model = [](const Compared& a, const Compared& b) {
                return a.model < b.model;
            };
            const auto by_time = [](const Compared& a, const Compared& b) {
                return a.measured < b.measured;
            };
            cells[1].value = correlation(pairs);
            cells[2].value = mean_error(pairs);
            cells[3].value =
                std::exp(std::min_element(pairs.begin(), pairs.end(), by_model)->measured -
                         std::min_element(pairs.begin(), pairs.end(), by_time)->measured);
        }
        table.rows.emplace_back(label, std::move(cells));
    }
    table.remarks = {
        "correlation of the logarithms of the model's clocks and of the measured times; mean error "
        "after scaling the clocks; first / best: time of the model's first choice over the best"};
    return table;
}

}  // namespace

std::vector<FigurePoint> points_of(Context& ctx, const Figure& figure, double operand_bytes) {
    std::vector<FigurePoint> points;
    std::vector<std::pair<PlannedProduct, std::string>> to_compile;
    for (Setting setting : figure.settings(operand_bytes)) {
        std::vector<Case> sized{setting.which};
        choose_rows(operand_bytes, sized);
        setting.which = sized.front();
        if (setting.plans == 0) {
            const std::string kernel = setting.which.kernel->name();
            if (kernel.starts_with("batched-lu") || kernel.starts_with("batched-cholesky")) {
                to_compile.emplace_back(product_of(setting.which), setting.choice.batched);
            }
            points.push_back({setting, figure_variant(setting.column), setting.choice});
            continue;
        }
        const PlannedProduct product = product_of(setting.which);
        for (const ListedPlan& listed : list_plans(ctx, product, setting.fields, setting.plans)) {
            PlanChoice choice = setting.choice;
            choice.plan = listed.plan;
            choice.exact = true;
            to_compile.emplace_back(product, listed.plan);
            points.push_back(
                {setting, figure_variant("plan " + listed.plan), choice, listed.clocks});
        }
    }
    if (!to_compile.empty()) {
        compile_plans(ctx, to_compile);
    }
    return points;
}

std::vector<std::pair<Case, std::vector<Variant>>> variants_of(
    const std::vector<FigurePoint>& points) {
    std::vector<std::pair<Case, std::vector<Variant>>> cases;
    for (const FigurePoint& point : points) {
        auto found = std::find_if(cases.begin(), cases.end(), [&](const auto& each) {
            return each.first == point.setting.which;
        });
        if (found == cases.end()) {
            cases.push_back({point.setting.which, {}});
            found = cases.end() - 1;
        }
        const bool known =
            std::any_of(found->second.begin(), found->second.end(),
                        [&](const Variant& each) { return each.library == point.library; });
        if (!known) {
            found->second.push_back({point.library, point.choice, point.setting.checked});
        }
    }
    return cases;
}

FigureTable table_of(const std::string& paper, const Figure& figure,
                     const std::vector<FigurePoint>& points, const Session& session) {
    FigureTable table{paper,
                      figure.name,
                      figure.title,
                      unit_of(figure.quantity),
                      figure.published,
                      figure.row_name,
                      {},
                      {},
                      {}};
    if (figure.model) {
        return model_table(std::move(table), points, session);
    }
    std::vector<std::string> labels;
    for (const FigurePoint& point : points) {
        add_once(labels, point.setting.row);
        add_once(table.columns, point.setting.column);
    }
    const std::size_t of_settings = table.columns.size();
    // A row whose settings all have the same case also shows the library's choice and the rivals.
    std::vector<std::vector<Case>> cases(labels.size());
    for (const FigurePoint& point : points) {
        add_once(cases[position_of(labels, point.setting.row)], point.setting.which);
    }
    const bool one_case =
        std::all_of(cases.begin(), cases.end(), [](const auto& own) { return own.size() == 1; });
    if (one_case) {
        table.columns.emplace_back(own_column);
        for (const Result& result : session.results) {
            if (result.rival()) {
                add_once(table.columns, result.library);
            }
        }
    }
    for (const std::string& label : labels) {
        table.rows.emplace_back(label, std::vector<FigureCell>(table.columns.size()));
    }
    for (const FigurePoint& point : points) {
        auto& cells = table.rows[position_of(labels, point.setting.row)].second;
        improve(cells[position_of(table.columns, point.setting.column)], figure.quantity,
                find_result(session, point.setting.which, point.library));
    }
    for (std::size_t row = 0; one_case && row < labels.size(); ++row) {
        for (std::size_t column = of_settings; column < table.columns.size(); ++column) {
            const std::string& name = table.columns[column];
            improve(
                table.rows[row].second[column], figure.quantity,
                find_result(session, cases[row].front(), name == own_column ? quiver_name : name));
        }
    }
    table.remarks = compared_columns(table, figure.quantity);
    return table;
}

std::string to_text(const FigureTable& table) {
    std::string text =
        fmt::format("\n{}, figure {}: {}{}\n  paper: {}\n", table.paper, table.figure, table.title,
                    table.unit.empty() ? "" : ", " + table.unit, table.published);
    constexpr int least_width = 12;
    std::size_t label_width = table.row_name.size();
    for (const auto& [label, cells] : table.rows) {
        label_width = std::max(label_width, label.size());
    }
    text += fmt::format("  {:<{}}", table.row_name, label_width);
    const auto width_of = [&](std::size_t column) {
        return std::max<std::size_t>(least_width, table.columns[column].size() + 2);
    };
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
        text += fmt::format("{:>{}}", table.columns[column], width_of(column));
    }
    text += '\n';
    for (const auto& [label, cells] : table.rows) {
        text += fmt::format("  {:<{}}", label, label_width);
        for (std::size_t column = 0; column < cells.size(); ++column) {
            const std::optional<double>& value = cells[column].value;
            const int decimals = value && std::abs(*value) < 100 ? 2 : 0;
            const std::string shown = value ? fmt::format("{:.{}f}", *value, decimals) : "-";
            text += fmt::format("{:>{}}", shown, width_of(column));
        }
        text += '\n';
    }
    for (const std::string& remark : table.remarks) {
        text += "  here: " + remark + '\n';
    }
    return text;
}

}  // namespace quiver::apps::bench
