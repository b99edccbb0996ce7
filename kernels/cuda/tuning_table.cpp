// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/tuning_table.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "blockvec/error.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

/// True for a shared kernel, which serves all widths up to its own and has its own rows in a table.
bool serves_any(const ProductShape& shape) {
    return !shape.exact && shape.m - shape.second <= widest_shared_panel && shape.n <= widest_panel;
}

std::string shape_key(const ProductShape& shape) {
    return std::string(1, letter(shape.scalar)) + " " + std::to_string(shape.m) + "x" +
           std::to_string(shape.n) + (shape.same ? " same" : "") +
           (serves_any(shape) ? " any" : "");
}

/// The distance of a row from a shape; infinity if the row has another operation or scalar.
double distance(const std::string& key, const std::string& prefix, const ProductShape& shape) {
    int m = 0;
    int n = 0;
    if (key.compare(0, prefix.size(), prefix) != 0 ||
        std::sscanf(key.c_str() + prefix.size(), "%dx%d", &m, &n) != 2 ||
        (key.find(" same") != std::string::npos) != shape.same ||
        (key.find(" any") != std::string::npos) != serves_any(shape)) {
        return HUGE_VAL;
    }
    return std::abs(std::log2(static_cast<double>(m) / shape.m)) +
           std::abs(std::log2(static_cast<double>(n) / shape.n));
}

template <class Plan>
bool is_plan(const std::string& operation, const std::string& text) {
    return operation == operation_of<Plan> && plan_of<Plan>(text);
}

}  // namespace

std::string capability_text(int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

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
        if (operation == "gpu") {
            read_gpu(words);
            if (capability_ > 0) {
                continue;
            }
        }
        if (words >> scalar >> shape) {
            std::getline(words >> std::ws, plan);
        }
        std::string key = operation + " " + scalar + " " + shape;
        for (const std::string word : {"same ", "any "}) {
            if (plan.rfind(word, 0) == 0) {
                key += " " + word.substr(0, word.size() - 1);
                plan.erase(0, word.size());
            }
        }
        while (!plan.empty() && plan.back() == ' ') {
            plan.pop_back();
        }
        if (!is_plan<TsmttsmPlan>(operation, plan) && !is_plan<TsmmPlan>(operation, plan)) {
            throw InputError(name + ", line " + std::to_string(number) +
                             ": not a row of a tuning table: \"" + line +
                             "\" (remove the file, or make it again with quiver tune)");
        }
        if (capability_ == 0) {
            throw InputError(
                name + ", line " + std::to_string(number) +
                ": the line that names the GPU must come first, such as \"gpu 9.0 NVIDIA H200\" "
                "(remove the file, or make it again with quiver tune)");
        }
        rows_[key] = plan;
    }
}

void TuningTable::add_file(const std::string& path) {
    if (std::ifstream file(path); file) {
        std::ostringstream text;
        text << file.rdbuf();
        add(text.str(), path);
    }
}

void TuningTable::add(const TuningTable& other) {
    for (const auto& [key, plan] : other.rows_) {
        rows_[key] = plan;
    }
}

void TuningTable::read_gpu(std::istream& words) {
    int major = 0;
    int minor = 0;
    char point = 0;
    capability_ = 0;
    if (words >> major >> point >> minor && point == '.' && major > 0 && minor >= 0 && minor < 10) {
        capability_ = 10 * major + minor;
        std::getline(words >> std::ws, gpu_);
    }
}

void TuningTable::require(const Machine& machine, const std::string& name) const {
    if (!is_for(machine)) {
        throw InputError(name + ": plans found on " + gpu() +
                         " cannot be stored with plans for compute capability " +
                         capability_text(machine.capability) +
                         " (choose another file with -o or QUIVER_TUNING, or remove this one)");
    }
}

std::string TuningTable::gpu() const {
    return gpu_ + " (compute capability " + capability_text(capability_) + ")";
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

std::vector<const std::string*> TuningTable::near(const char* operation,
                                                  const ProductShape& shape) const {
    std::multimap<double, const std::string*> found;
    const std::string prefix = std::string(operation) + " " + letter(shape.scalar) + " ";
    for (const auto& [key, text] : rows_) {
        if (const double how_far = distance(key, prefix, shape); how_far < 1) {
            found.emplace(how_far, &text);
        }
    }
    std::vector<const std::string*> plans;
    for (const auto& [how_far, text] : found) {
        plans.push_back(text);
    }
    return plans;
}

}  // namespace quiver::cuda
