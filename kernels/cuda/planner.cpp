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
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

int attribute(const Context& ctx, cudaDeviceAttr which) {
    int value = 0;
    device::check(cudaDeviceGetAttribute(&value, which, ctx.device().id), "cudaDeviceGetAttribute");
    return value;
}

Machine machine_of(const Context& ctx) {
    Machine machine;
    machine.shared_per_block = shared_bytes_per_block(ctx);
    machine.shared_per_multiprocessor =
        static_cast<std::size_t>(attribute(ctx, cudaDevAttrMaxSharedMemoryPerMultiprocessor));
    machine.bulk_copies = attribute(ctx, cudaDevAttrComputeCapabilityMajor) >= 9;
    return machine;
}

/// Whether it is one of the few that serve all widths up to theirs, which have rows of their own.
bool serves_any(const ProductShape& shape) {
    return !shape.exact && shape.m - shape.second <= widest_shared_panel && shape.n <= widest_panel;
}

std::string shape_key(const ProductShape& shape) {
    return std::string(1, letter(shape.scalar)) + " " + std::to_string(shape.m) + "x" +
           std::to_string(shape.n) + (shape.same ? " same" : "") +
           (serves_any(shape) ? " any" : "");
}

/// A row's distance from a shape, or infinity where it is of another operation or scalar.
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

}  // namespace

template <>
struct PlanTraits<TsmttsmPlan> {
    static constexpr const char* name = "tsmttsm";
    static constexpr const char* source = "tsmttsm.cuh";
    static constexpr Product product = Product::tsmttsm;
    static std::optional<TsmttsmPlan> parse(const std::string& text) { return tsmttsm_plan(text); }
    static std::optional<TsmttsmPlan> choose(const Planner& planner, const Planner::Served& s) {
        return best_plan<TsmttsmPlan>(planner.table(), name, s.shape, s.a, s.b, planner.machine_,
                                      parse, tsmttsm_plans);
    }
    static bool fits(const TsmttsmPlan& plan, const Planner::Served& s, const Machine& machine) {
        return kernel_of(plan, s.shape, s.a, s.b, machine).has_value();
    }
};

template <>
struct PlanTraits<TsmmPlan> {
    static constexpr const char* name = "tsmm";
    static constexpr const char* source = "tsmm.cuh";
    static constexpr Product product = Product::tsmm;
    static std::optional<TsmmPlan> parse(const std::string& text) { return tsmm_plan(text); }
    static std::optional<TsmmPlan> choose(const Planner& planner, const Planner::Served& s) {
        return best_plan<TsmmPlan>(planner.table(), name, s.shape, s.a, s.b, planner.machine_,
                                   parse, tsmm_plans);
    }
    static bool fits(const TsmmPlan& plan, const Planner::Served& s, const Machine& machine) {
        return kernel_of(plan, s.shape, s.a, s.b, machine).has_value();
    }
};

/// Its layouts do not decide about the plan.
template <>
struct PlanTraits<TsmmGramPlan> {
    static constexpr const char* name = "tsmm_gram";
    static constexpr const char* source = "tsmm_gram.cuh";
    static constexpr Product product = Product::tsmm_gram;
    static std::optional<TsmmGramPlan> parse(const std::string& text) {
        return tsmm_gram_plan(text);
    }
    static std::optional<TsmmGramPlan> choose(const Planner& planner, const Planner::Served& s) {
        return fused_plan(s.shape, planner.machine_);
    }
    static bool fits(const TsmmGramPlan& plan, const Planner::Served& s, const Machine& machine) {
        return model_clocks(plan, s.shape, machine) < HUGE_VAL;
    }
};

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
        for (const std::string word : {"same ", "any "}) {
            if (plan.rfind(word, 0) == 0) {
                key += " " + word.substr(0, word.size() - 1);
                plan.erase(0, word.size());
            }
        }
        while (!plan.empty() && plan.back() == ' ') {
            plan.pop_back();
        }
        const bool known = operation == PlanTraits<TsmttsmPlan>::name
                               ? tsmttsm_plan(plan).has_value()
                               : operation == PlanTraits<TsmmPlan>::name && tsmm_plan(plan);
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

Planner::Planner(Context& ctx)
    : Planner(ctx, machine_of(ctx), attribute(ctx, cudaDevAttrComputeCapabilityMajor)) {
    static_cast<void>(CubinCache());  // makes the folder
    store_.emplace(CubinCache::default_folder(), version_);
    for (const auto& pack : ctx.service<Specialiser>().packs()) {
        if (const auto plans = pack->find(version_)) {
            store_->remember(*plans);
        }
    }
}

Planner::Planner(Context& ctx, const Machine& machine, int compute_major)
    : overhead_(&OverheadCounts::of(ctx)), machine_(machine) {
    if (compute_major == 9) {
        table_.add(shipped_tuning(), "the shipped tuning table");
    }
    table_.add_file(default_path());
    version_ = "plans-" + hex(version_of(table_.text(), machine_));
    store_.emplace("", version_);
}

Planner Planner::copy() const {
    Planner planner = *this;
    planner.overhead_ = nullptr;
    planner.ready_.clear();
    return planner;
}

Planner::Served Planner::served(const ProductShape& shape, std::int64_t bytes, const Layout& a,
                                const Layout& b) const {
    if (choice_.exact || (a.contiguous && b.contiguous && bytes >= large_operands)) {
        return {shape, a, b};
    }
    const Layout any = Layout::any(shape.scalar_bytes());
    return {shape.shared(), any, any};
}

int Planner::most_columns(int n, std::int64_t bytes, int otherwise) const {
    if (choice_.exact || bytes >= large_operands) {
        return otherwise;
    }
    return std::min(otherwise, n <= 16 ? widest_shared_panel : widest_panel);
}

template <class Plan>
std::optional<Plan> Planner::plan(const Served& served) {
    using Traits = PlanTraits<Plan>;
    const bool by_layout = !std::is_same_v<Plan, TsmmGramPlan>;
    const std::uint64_t key =
        key_of(choice_, Traits::product, served.shape, by_layout ? served.a : Layout(),
               by_layout ? served.b : Layout());
    std::optional<Plan> plan;
    bool known = false;
    if (const std::string* text = store_->find(key)) {
        plan = Traits::parse(*text);
        known = plan ? Traits::fits(*plan, served, machine_) : *text == none;
    }
    if (!known) {
        std::optional<OverheadCounts::Pause> pause;
        if (overhead_ != nullptr) {
            pause.emplace(*overhead_, Overhead::plan_search, 0, true);
        }
        plan = Traits::choose(*this, served);
        store_->add(key, plan ? to_text(*plan) : none);
    }
    if constexpr (std::is_same_v<Plan, TsmttsmPlan>) {
        if (plan) {
            plan->atomics = choice_.reduction == Reduction::atomics;
        }
    }
    return plan;
}

bool Planner::tsmm_exists(const ProductShape& shape) {
    const auto [row, added] =
        tsmm_exists_.try_emplace({shape.scalar, shape.m, shape.n, shape.second});
    if (added) {
        const Layout worst = Layout::any(shape.scalar_bytes());
        row->second = plan<TsmmPlan>({shape, worst, worst}).has_value() &&
                      plan<TsmmPlan>({shape, {}, {}}).has_value();
    }
    return row->second;
}

const std::optional<TsmmGramPlan>& Planner::tsmm_gram(const ProductShape& shape) {
    const auto [row, added] =
        tsmm_gram_.try_emplace({shape.scalar, shape.m, shape.n, shape.adds}, std::nullopt);
    if (added) {
        row->second = plan<TsmmGramPlan>({shape, {}, {}});
    }
    return row->second;
}

template <class Plan>
std::optional<PlannedKernel> Planner::planned(const Served& served) {
    const std::optional<Plan> chosen = plan<Plan>(served);
    return chosen ? kernel_of(*chosen, served.shape, served.a, served.b, machine_) : std::nullopt;
}

template <class Plan>
const Planner::Ready& Planner::ready(Context& ctx, const Served& served) {
    using Traits = PlanTraits<Plan>;
    Ready& ready = ready_[key_of(choice_, Traits::product, served.shape, served.a, served.b)];
    if (ready.kernel == nullptr) {
        const std::optional<PlannedKernel> kernel = planned<Plan>(served);
        if (!kernel) {
            throw DeviceError("no kernel for " + TuningTable::key(Traits::name, served.shape));
        }
        ready.planned = *kernel;
        ready.kernel = &ctx.service<Specialiser>().get(ctx, Traits::source, kernel->expression);
    }
    return ready;
}

template <class Plan>
void Planner::append(const Served& served, KernelList& list) {
    if (std::optional<PlannedKernel> kernel = planned<Plan>(served)) {
        list.push_back({PlanTraits<Plan>::source, std::move(kernel->expression)});
    }
}

#define QUIVER_INSTANTIATE(PLAN)                                                  \
    template std::optional<PLAN> Planner::plan(const Served&);                    \
    template const Planner::Ready& Planner::ready<PLAN>(Context&, const Served&); \
    template void Planner::append<PLAN>(const Served&, KernelList&);
QUIVER_INSTANTIATE(TsmttsmPlan)
QUIVER_INSTANTIATE(TsmmPlan)
QUIVER_INSTANTIATE(TsmmGramPlan)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
