// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/planner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "blockvec/error.hpp"
#include "kernels/cuda/cubin_cache.hpp"
#include "kernels/cuda/hash.hpp"
#include "kernels/cuda/shipped_tuning.hpp"
#include "kernels/cuda/specialiser.hpp"

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

/// The plan of the shape's own row, else the best by the model among the nearest rows' plans, else
/// the model's favourite; of those that are legal for operands that lie so.
template <class Plan, class Parse, class All>
std::optional<Plan> best_plan(const TuningTable& table, const char* operation,
                              const ProductShape& shape, const Layout& a, const Layout& b,
                              const Machine& machine, Parse parse, All all) {
    const auto legal = [&](const Plan& plan) {
        return kernel_of(plan, shape, a, b, machine).has_value();
    };
    if (const std::string* row = table.find(operation, shape)) {
        if (const auto plan = parse(*row); plan && legal(*plan)) {
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
    constexpr int most_neighbours = 6;
    int seen = 0;
    std::optional<Plan> best;
    double least = HUGE_VAL;
    for (const auto& [how_far, text] : near) {
        const auto plan = parse(*text);
        if (plan && legal(*plan) && seen++ < most_neighbours) {
            if (const double clocks = model_clocks(*plan, shape, machine); clocks < least) {
                best = plan;
                least = clocks;
            }
        }
    }
    if (!best) {
        for (const Plan& plan : all(shape, machine, 1000)) {
            if (legal(plan)) {
                return plan;
            }
        }
    }
    return best;
}

/// All that decides about a kernel, in one word.
enum class Product : std::uint8_t { tsmttsm, tsmm, tsmm_gram };
std::uint64_t key_of(const PlanChoice& choice, Product product, const ProductShape& shape,
                     const Layout& a, const Layout& b) {
    std::uint64_t key = static_cast<std::uint64_t>(product);
    const auto append = [&](int value, int bits) {
        key = key << bits | static_cast<std::uint64_t>(value);
    };
    append(choice.reduction == Reduction::atomics, 1);
    append(choice.tuned, 1);
    append(static_cast<int>(shape.scalar), 3);
    append(shape.same, 1);
    append(shape.adds, 1);
    append(shape.exact, 1);
    append(shape.m, 12);
    append(shape.n, 12);
    append(shape.second, 7);
    for (const Layout* layout : {&a, &b}) {
        append(layout->unit, 5);
        append(layout->aligned, 1);
        append(layout->contiguous, 1);
    }
    return key;
}

/// The model's favourite, where it expects more of it than of an update and sums on their own.
std::optional<TsmmGramPlan> fused_plan(const ProductShape& shape, const Machine& machine) {
    const ProductShape gram(shape.scalar, shape.n, shape.n, true);
    const auto fused = tsmm_gram_plans(shape, machine, 1);
    const auto update = tsmm_plans(shape, machine, 1);
    const auto sums = tsmttsm_plans(gram, machine, 1);
    const double apart = update.empty() || sums.empty()
                             ? HUGE_VAL
                             : model_clocks(update.front(), shape, machine) +
                                   model_clocks(sums.front(), gram, machine);
    return !fused.empty() && model_clocks(fused.front(), shape, machine) < apart
               ? std::optional(fused.front())
               : std::nullopt;
}

/// Where there is no plan.
constexpr const char* none = "none";

/// A fused plan as text, and back.
constexpr std::string_view between = " with ";
std::string to_text(const TsmmGramPlan& plan) {
    return to_text(plan.update) + std::string(between) + to_text(plan.sums);
}
std::optional<TsmmGramPlan> tsmm_gram_plan(const std::string& text) {
    const std::size_t middle = text.find(between);
    if (middle == std::string::npos) {
        return std::nullopt;
    }
    const auto update = tsmm_plan(text.substr(0, middle));
    const auto sums = tsmttsm_plan(text.substr(middle + between.size()));
    return update && sums ? std::optional(TsmmGramPlan{*update, *sums}) : std::nullopt;
}

/// All that a choice depends on beside its key: the model, the tables, the machine.
std::uint64_t version_of(const std::string& table, const Machine& machine) {
    return hash(std::to_string(PlanStore::model_version()) + " " +
                std::to_string(machine.shared_per_block) + " " +
                std::to_string(machine.shared_per_multiprocessor) + " " +
                std::to_string(machine.bulk_copies) + "\n" + table);
}

template <class Plan>
Planner::Ready make_ready(Context& ctx, const char* operation, const char* source,
                          const std::optional<Plan>& plan, const ProductShape& shape,
                          const Layout& a, const Layout& b, const Machine& machine) {
    if (!plan) {
        throw DeviceError("no kernel for " + TuningTable::key(operation, shape));
    }
    Planner::Ready ready;
    ready.planned = *kernel_of(*plan, shape, a, b, machine);
    ready.kernel = &ctx.service<Specialiser>().get(source, ready.planned.expression);
    return ready;
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

void TuningTable::add_file(const std::string& path) {
    if (std::ifstream file(path); file) {
        std::ostringstream text;
        text << file.rdbuf();
        add(text.str(), path);
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

Planner::Planner(Context& ctx) : overhead_(OverheadCounts::of(ctx)) {
    const int major = attribute(ctx, cudaDevAttrComputeCapabilityMajor);
    machine_.shared_per_block = shared_bytes_per_block(ctx);
    machine_.shared_per_multiprocessor =
        static_cast<std::size_t>(attribute(ctx, cudaDevAttrMaxSharedMemoryPerMultiprocessor));
    machine_.bulk_copies = major >= 9;
    if (major == 9) {
        table_.add(shipped_tuning(), "the shipped tuning table");
    }
    table_.add_file(default_path());
    static_cast<void>(CubinCache());  // makes the folder
    store_.emplace(CubinCache::default_folder(), version_of(table_.text(), machine_));
}

template <class Plan, class Parse, class Fits, class Choose>
std::optional<Plan> Planner::remembered(std::uint64_t key, Parse&& parse, Fits&& fits,
                                        Choose&& choose) {
    if (const std::string* known = store_->find(key)) {
        const std::optional<Plan> plan = parse(*known);
        if (plan ? fits(*plan) : *known == none) {
            return plan;
        }
    }
    const OverheadCounts::Pause pause(overhead_, Overhead::plan_search, 0, true);
    const std::optional<Plan> plan = choose();
    store_->add(key, plan ? to_text(*plan) : none);
    return plan;
}

std::optional<TsmttsmPlan> Planner::tsmttsm(const ProductShape& shape, const Layout& a,
                                            const Layout& b) {
    auto plan = remembered<TsmttsmPlan>(
        key_of(choice_, Product::tsmttsm, shape, a, b), tsmttsm_plan,
        [&](const TsmttsmPlan& p) { return kernel_of(p, shape, a, b, machine_).has_value(); },
        [&] {
            return best_plan<TsmttsmPlan>(table(), "tsmttsm", shape, a, b, machine_, tsmttsm_plan,
                                          tsmttsm_plans);
        });
    if (plan) {
        plan->atomics = choice_.reduction == Reduction::atomics;
    }
    return plan;
}

std::optional<TsmmPlan> Planner::tsmm(const ProductShape& shape, const Layout& x, const Layout& y) {
    return remembered<TsmmPlan>(
        key_of(choice_, Product::tsmm, shape, x, y), tsmm_plan,
        [&](const TsmmPlan& p) { return kernel_of(p, shape, x, y, machine_).has_value(); },
        [&] {
            return best_plan<TsmmPlan>(table(), "tsmm", shape, x, y, machine_, tsmm_plan,
                                       tsmm_plans);
        });
}

bool Planner::tsmm_exists(const ProductShape& shape) {
    const auto [row, added] =
        tsmm_exists_.try_emplace({shape.scalar, shape.m, shape.n, shape.second});
    if (added) {
        const Layout worst = Layout::any(shape.scalar_bytes());
        row->second = tsmm(shape, worst, worst).has_value() && tsmm(shape, {}, {}).has_value();
    }
    return row->second;
}

const std::optional<TsmmGramPlan>& Planner::tsmm_gram(const ProductShape& shape) {
    const auto [row, added] =
        tsmm_gram_.try_emplace({shape.scalar, shape.m, shape.n, shape.adds}, std::nullopt);
    if (added) {
        row->second = remembered<TsmmGramPlan>(
            key_of(choice_, Product::tsmm_gram, shape, {}, {}), tsmm_gram_plan,
            [&](const TsmmGramPlan& p) { return model_clocks(p, shape, machine_) < HUGE_VAL; },
            [&] { return fused_plan(shape, machine_); });
    }
    return row->second;
}

const Planner::Ready& Planner::ready_tsmttsm(Context& ctx, const ProductShape& shape,
                                             const Layout& a, const Layout& b) {
    Ready& ready = ready_[key_of(choice_, Product::tsmttsm, shape, a, b)];
    if (ready.kernel == nullptr) {
        ready =
            make_ready(ctx, "tsmttsm", "tsmttsm.cuh", tsmttsm(shape, a, b), shape, a, b, machine_);
    }
    return ready;
}

const Planner::Ready& Planner::ready_tsmm(Context& ctx, const ProductShape& shape, const Layout& x,
                                          const Layout& y) {
    Ready& ready = ready_[key_of(choice_, Product::tsmm, shape, x, y)];
    if (ready.kernel == nullptr) {
        ready = make_ready(ctx, "tsmm", "tsmm.cuh", tsmm(shape, x, y), shape, x, y, machine_);
    }
    return ready;
}

const Planner::Ready& Planner::ready_tsmm_gram(Context& ctx, const ProductShape& shape,
                                               const Layout& v, const Layout& w) {
    Ready& ready = ready_[key_of(choice_, Product::tsmm_gram, shape, v, w)];
    if (ready.kernel == nullptr) {
        ready =
            make_ready(ctx, "tsmm_gram", "tsmm_gram.cuh", tsmm_gram(shape), shape, v, w, machine_);
    }
    return ready;
}

}  // namespace quiver::cuda
