// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/planner.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "blockvec/error.hpp"
#include "kernels/cuda/cubin_cache.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/shipped_tuning.hpp"

namespace quiver::cuda {
namespace {

int attribute(const Context& ctx, cudaDeviceAttr which) {
    int value = 0;
    device::check(cudaDeviceGetAttribute(&value, which, ctx.device().id), "cudaDeviceGetAttribute");
    return value;
}

std::string shape_key(const ProductShape& shape) {
    return std::string(1, letter(shape.scalar)) + " " + std::to_string(shape.m) + "x" +
           std::to_string(shape.n) + (shape.same ? " same" : "");
}

/// A row's distance from a shape, or infinity where it is of another operation or scalar.
double distance(const std::string& key, const std::string& prefix, const ProductShape& shape) {
    int m = 0;
    int n = 0;
    if (key.compare(0, prefix.size(), prefix) != 0 ||
        std::sscanf(key.c_str() + prefix.size(), "%dx%d", &m, &n) != 2 ||
        (key.find(" same") != std::string::npos) != shape.same) {
        return HUGE_VAL;
    }
    return std::abs(std::log2(static_cast<double>(m) / shape.m)) +
           std::abs(std::log2(static_cast<double>(n) / shape.n));
}

/// The plan of the shape's own row, else the best by the model among the nearest rows' plans and
/// the model's own favourite.
template <class Plan, class Parse, class All>
std::optional<Plan> choose(const TuningTable& table, const char* operation,
                           const ProductShape& shape, const Machine& machine, Parse parse,
                           All all) {
    const auto legal = [&](const std::string& text) -> std::optional<Plan> {
        const auto plan = parse(text);
        return plan && model_clocks(*plan, shape, machine) < HUGE_VAL ? plan : std::nullopt;
    };
    if (const std::string* row = table.find(operation, shape)) {
        if (const auto plan = legal(*row)) {
            return plan;
        }
    }
    std::multimap<double, const std::string*> near;
    const std::string prefix = std::string(operation) + " " + letter(shape.scalar) + " ";
    for (const auto& [key, text] : table.rows()) {
        if (const double how_far = distance(key, prefix, shape); how_far < 1) {
            near.emplace(how_far, &text);
        }
    }
    std::optional<Plan> best;
    const auto consider = [&](const Plan& plan) {
        if (!best || model_clocks(plan, shape, machine) < model_clocks(*best, shape, machine)) {
            best = plan;
        }
    };
    constexpr int most_neighbours = 6;
    int seen = 0;
    for (const auto& [how_far, text] : near) {
        if (const auto plan = legal(*text); plan && seen++ < most_neighbours) {
            consider(*plan);
        }
    }
    if (!best) {
        for (const Plan& plan : all(shape, machine, 1)) {
            consider(plan);
        }
    }
    return best;
}

}  // namespace

std::string TuningTable::key(const char* operation, const ProductShape& shape) {
    return std::string(operation) + " " + shape_key(shape);
}

void TuningTable::add(const std::string& text, const std::string& name) {
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string operation;
        std::string scalar;
        std::string shape;
        if (!(words >> operation)) {
            continue;
        }
        std::string plan;
        if (words >> scalar >> shape) {
            std::getline(words >> std::ws, plan);
        }
        std::string key = operation + " " + scalar + " " + shape;
        if (plan.rfind("same ", 0) == 0) {
            key += " same";
            plan.erase(0, 5);
        }
        while (!plan.empty() && plan.back() == ' ') {
            plan.pop_back();
        }
        const bool known = operation == "tsmttsm" ? tsmttsm_plan(plan).has_value()
                                                  : operation == "tsmm" && tsmm_plan(plan);
        if (!known) {
            throw InputError(name + ", line " + std::to_string(number) +
                             ": no row of a tuning table: \"" + line +
                             "\" (remove the file, or make it again with quiver tune)");
        }
        rows_[key] = plan;
    }
}

std::string TuningTable::text() const {
    std::string text;
    for (const auto& [key, plan] : rows_) {
        text += key + " " + plan + "\n";
    }
    return text;
}

const std::string* TuningTable::find(const char* operation, const ProductShape& shape) const {
    const auto found = rows_.find(key(operation, shape));
    return found != rows_.end() ? &found->second : nullptr;
}

std::string Planner::default_path() {
    if (const char* path = std::getenv("QUIVER_TUNING")) {
        return path;
    }
    const std::string folder = CubinCache::default_folder();
    return folder.empty() ? folder : folder + "/tuning.txt";
}

Planner::Planner(Context& ctx) {
    const int major = attribute(ctx, cudaDevAttrComputeCapabilityMajor);
    machine_.shared_per_block = shared_bytes_per_block(ctx);
    machine_.shared_per_multiprocessor = static_cast<std::size_t>(
        attribute(ctx, cudaDevAttrMaxSharedMemoryPerMultiprocessor));
    machine_.bulk_copies = major >= 9;
    if (major == 9) {
        table_.add(shipped_tuning(), "the shipped tuning table");
    }
    const std::string path = default_path();
    if (std::ifstream file(path); !path.empty() && file) {
        std::ostringstream text;
        text << file.rdbuf();
        table_.add(text.str(), path);
    }
}

std::optional<TsmttsmPlan> Planner::tsmttsm(const ProductShape& shape) {
    const auto [row, added] = tsmttsm_.try_emplace(shape_key(shape));
    if (added) {
        row->second = choose<TsmttsmPlan>(table_, "tsmttsm", shape, machine_, tsmttsm_plan,
                                          tsmttsm_plans);
    }
    return row->second;
}

std::optional<TsmmPlan> Planner::tsmm(const ProductShape& shape) {
    const auto [row, added] = tsmm_.try_emplace(shape_key(shape));
    if (added) {
        row->second = choose<TsmmPlan>(table_, "tsmm", shape, machine_, tsmm_plan, tsmm_plans);
    }
    return row->second;
}

}  // namespace quiver::cuda
