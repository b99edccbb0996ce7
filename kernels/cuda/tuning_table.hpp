// SPDX-License-Identifier: BSD-3-Clause
// TuningTable: plans found by a search, by operation and shape. Requires no GPU.
#pragma once

#include <cmath>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/plan.hpp"

namespace quiver::cuda {

/// The text of a table starts with a line "gpu 9.0 NVIDIA H200", the GPU on which the plans were
/// found. It is followed by lines "tsmttsm d 8x8 PLAN", "tsmm z 16x4 PLAN", "tsmttsm d 8x8 same
/// PLAN". The word "any" before the plan marks the shared kernel for all widths up to these. #
/// starts a comment.
class TuningTable {
  public:
    /// Adds the lines of a text; later lines replace earlier ones. Throws InputError with the line
    /// number if a line is malformed or comes before the line of the GPU.
    void add(const std::string& text, const std::string& name);
    /// Adds the lines of a file; a no-op if the file does not exist.
    void add_file(const std::string& path);
    void add(const TuningTable& other);

    /// True if the plans are for this GPU, that is if it has the same compute capability as the GPU
    /// on which they were found (plans of an H200 also serve an H100), or if the table has no rows.
    bool is_for(const Machine& machine) const {
        return rows_.empty() || capability_ == machine.capability;
    }
    /// Throws InputError, starting with the file name, unless is_for(machine).
    void require(const Machine& machine, const std::string& name) const;
    /// "NVIDIA H200 (compute capability 9.0)"
    std::string gpu() const;

    void set(const std::string& key, const std::string& plan) { rows_[key] = plan; }
    /// The text of all rows, sorted by key.
    std::string text() const;
    /// The plan of a shape, or null.
    const std::string* find(const char* operation, const ProductShape& shape) const;
    /// The plans of shapes that differ by less than a factor of two, nearest first.
    std::vector<const std::string*> near(const char* operation, const ProductShape& shape) const;
    const std::map<std::string, std::string>& rows() const { return rows_; }

    /// "tsmttsm d 8x8 same"
    static std::string key(const char* operation, const ProductShape& shape);

  private:
    void read_gpu(std::istream& words);

    int capability_ = 0;
    std::string gpu_;
    std::map<std::string, std::string> rows_;
};

/// The capability as text: 90 gives "9.0".
std::string capability_text(int capability);

/// The name of an operation in a table.
template <class Plan>
inline constexpr const char* operation_of = nullptr;
template <>
inline constexpr const char* operation_of<TsmttsmPlan> = "tsmttsm";
template <>
inline constexpr const char* operation_of<TsmmPlan> = "tsmm";
template <>
inline constexpr const char* operation_of<TsmmGramPlan> = "tsmm_gram";

/// The plan of the shape's own row; else the best by the model among the plans of the nearest rows,
/// unless the first of `favourites()` is clearly better by the model; else the first of
/// `favourites()`. Only plans that are legal for the layouts of the operands count.
template <class Plan, class Favourites>
std::optional<Plan> best_plan(const TuningTable& table, const Served& served,
                              const Machine& machine, Favourites&& favourites) {
    const auto legal = [&](const std::optional<Plan>& plan) {
        return plan && kernel_of(*plan, served, machine);
    };
    if (const std::string* row = table.find(operation_of<Plan>, served.shape)) {
        if (const auto plan = plan_of<Plan>(*row); legal(plan)) {
            return plan;
        }
    }
    constexpr int most_neighbours = 6;
    // The model's estimates are up to 20% wrong. A plan measured at a neighbouring width loses
    // less.
    constexpr double clearly_better = 0.85;
    int seen = 0;
    std::optional<Plan> best;
    double least = HUGE_VAL;
    for (const std::string* row : table.near(operation_of<Plan>, served.shape)) {
        const auto plan = plan_of<Plan>(*row);
        if (legal(plan) && seen++ < most_neighbours) {
            if (const double clocks = model_clocks(*plan, served.shape, machine); clocks < least) {
                best = plan;
                least = clocks;
            }
        }
    }
    for (const Plan& plan : favourites()) {
        if (legal(plan)) {
            const bool better = model_clocks(plan, served.shape, machine) < clearly_better * least;
            return better || !best ? plan : best;
        }
    }
    return best;
}

}  // namespace quiver::cuda
