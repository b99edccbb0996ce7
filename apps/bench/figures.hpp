// SPDX-License-Identifier: BSD-3-Clause
// Figures of papers that compare settings of kernels on a GPU: which plans to time, and a table of
// the fastest.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/case.hpp"
#include "apps/bench/runner.hpp"
#include "kernels/tuning.hpp"

namespace quiver::apps::bench {

/// One cell of a figure's table, or a part of it: several settings may have the same row and
/// column, whose fastest result counts.
struct Setting {
    std::string row, column;
    /// Cases with 0 rows get the default number of rows.
    Case which;
    /// The fields of plans (list_plans), and how many of these plans compete. With 0 plans,
    /// `choice` is the only contender.
    std::string fields = {};
    int plans = 0;
    PlanChoice choice = {};
    /// False if the kernel does not compute the result.
    bool checked = true;
};

enum class Quantity : std::uint8_t { bandwidth, flops, microseconds };

struct Figure {
    /// The name on the command line: the number in the paper, or a word.
    const char* name;
    const char* title;
    const char* row_name;
    Quantity quantity;
    /// What the paper states.
    const char* published;
    /// The settings for operands of `operand_bytes`.
    std::vector<Setting> (*settings)(double operand_bytes);
    /// True: each row compares the model with all measured plans, instead of one number a column.
    bool model = false;
};

/// The cell of a table, as JSON has it; empty without a result.
struct FigureCell {
    std::optional<double> value = {};
    /// The plan or choice that was the fastest.
    std::string library = {};
};

struct FigureTable {
    std::string paper, figure, title, unit, published, row_name;
    std::vector<std::string> columns;
    std::vector<std::pair<std::string, std::vector<FigureCell>>> rows;
    /// Statements about the whole table.
    std::vector<std::string> remarks;
};

/// The contenders of a figure. `library` names the result of a contender in the session.
struct FigurePoint {
    Setting setting;
    std::string library;
    PlanChoice choice;
    /// The model's time of a plan; 0 without one.
    double clocks = 0;
};

/// All contenders of the figure. Lists plans and compiles their kernels on all cores. Throws
/// UnsupportedError on the host.
std::vector<FigurePoint> points_of(Context& ctx, const Figure& figure, double operand_bytes);

/// The contenders of each case, without repetition, in the order of the points.
std::vector<std::pair<Case, std::vector<Variant>>> variants_of(
    const std::vector<FigurePoint>& points);

/// The table of measured points. Columns of the settings come first, then one for the library's own
/// choice and one for each rival.
FigureTable table_of(const std::string& paper, const Figure& figure,
                     const std::vector<FigurePoint>& points, const Session& session);

/// The table as text.
std::string to_text(const FigureTable& table);

}  // namespace quiver::apps::bench
