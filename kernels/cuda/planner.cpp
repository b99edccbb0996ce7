// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/planner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "blockvec/cache_folder.hpp"
#include "blockvec/error.hpp"
#include "kernels/cuda/cubin_cache.hpp"
#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/hash.hpp"
#include "kernels/cuda/mixed_plan.hpp"
#include "kernels/cuda/mtsm_plan.hpp"
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
    machine.capability = 10 * attribute(ctx, cudaDevAttrComputeCapabilityMajor) +
                         attribute(ctx, cudaDevAttrComputeCapabilityMinor);
    machine.bulk_copies = machine.capability >= 90;
    machine.multiprocessors = multiprocessors(ctx);
    return machine;
}

/// A key: all parameters that determine a kernel, packed into one word.
class Key {
  public:
    Key& append(int value, int bits) {
        bits_ = bits_ << bits | static_cast<std::uint64_t>(value);
        return *this;
    }
    Key& append(Dtype scalar) { return append(static_cast<int>(scalar), 3); }
    Key& append(const ProductShape& shape) {
        append(shape.scalar).append(shape.same, 1).append(shape.adds, 1).append(shape.exact, 1);
        return append(shape.m, 12)
            .append(shape.n, 12)
            .append(shape.second, 7)
            .append(shape.streamed, 1);
    }
    Key& append(const Layout& layout) {
        return append(layout.unit, 5).append(layout.aligned, 1).append(layout.contiguous, 1);
    }
    std::uint64_t bits() const { return bits_; }

  private:
    std::uint64_t bits_ = 0;
};

/// The best plan by the model, if it is expected to be faster than a separate update and separate
/// sums.
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

/// The first plan, if there is one.
template <class Plan>
std::optional<Plan> first_of(const std::vector<Plan>& plans) {
    return plans.empty() ? std::nullopt : std::optional(plans.front());
}

/// The stored text if there is no plan.
constexpr const char* none = "none";

/// The hash of everything besides its key that a choice depends on: the model, the tables, the
/// machine.
std::uint64_t version_of(const std::string& table, const Machine& machine) {
    return hash(std::to_string(PlanStore::model_version()) + " " +
                std::to_string(machine.shared_per_block) + " " +
                std::to_string(machine.shared_per_multiprocessor) + " " +
                std::to_string(machine.bulk_copies) + "\n" + table);
}

/// The operations in keys. Keys are stored on disk.
enum class Operation : std::uint8_t { tsmttsm, tsmm, tsmm_gram, mixed, wide_tsmttsm, mtsm };

/// The traits of the products with ProductShapes.
template <class Plan, Operation which>
struct ProductTraits {
    static constexpr Operation operation = which;
    static std::string name(const Served& served) {
        return TuningTable::key(operation_of<Plan>, served.shape);
    }
    /// The layouts affect the kernel of tsmm_gram, but not its plan.
    static void append(Key& key, const Served& served, const Machine&, bool of_plan) {
        const bool shape_only = which == Operation::tsmm_gram && of_plan;
        key.append(served.shape)
            .append(shape_only ? Layout() : served.a)
            .append(shape_only ? Layout() : served.b);
    }
};

/// The traits of the products that tuning tables contain. Streamed shapes always get the first
/// plan; tables have no rows for them.
template <class Plan, Operation which, auto plans>
struct TunedTraits : ProductTraits<Plan, which> {
    static std::optional<Plan> choose(const TuningTable& table, const Served& served,
                                      const Machine& machine) {
        if (served.shape.streamed) {
            return first_of(plans(served.shape, machine, 1));
        }
        return best_plan<Plan>(table, served, machine,
                               [&] { return plans(served.shape, machine, 1000); });
    }
};

}  // namespace

template <>
struct PlanTraits<TsmttsmPlan> : TunedTraits<TsmttsmPlan, Operation::tsmttsm, tsmttsm_plans> {};
template <>
struct PlanTraits<TsmmPlan> : TunedTraits<TsmmPlan, Operation::tsmm, tsmm_plans> {};

template <>
struct PlanTraits<TsmmGramPlan> : ProductTraits<TsmmGramPlan, Operation::tsmm_gram> {
    static std::optional<TsmmGramPlan> choose(const TuningTable&, const Served& served,
                                              const Machine& machine) {
        return fused_plan(served.shape, machine);
    }
};

template <>
struct PlanTraits<MixedPlan> {
    static constexpr Operation operation = Operation::mixed;
    static std::string name(const MixedShape& shape) {
        return std::string(shape.tsmm ? "mixed_tsmm " : "mixed_tsmttsm ") +
               std::to_string(shape.m) + "x" + std::to_string(shape.n);
    }
    static void append(Key& key, const MixedShape& shape, const Machine&, bool) {
        key.append(shape.scalar).append(shape.m, 12).append(shape.n, 12).append(shape.unit, 5);
        for (const bool flag : {shape.tsmm, shape.same, shape.small_is_float, shape.out_is_float,
                                shape.adds, shape.flat}) {
            key.append(flag, 1);
        }
    }
    static std::optional<MixedPlan> choose(const TuningTable&, const MixedShape& shape,
                                           const Machine& machine) {
        return first_of(mixed_plans(shape, machine));
    }
};

template <>
struct PlanTraits<WidePlan> {
    static constexpr Operation operation = Operation::wide_tsmttsm;
    static std::string name(const WideShape& shape) {
        return "wide_tsmttsm " + std::to_string(shape.m) + "x" + std::to_string(shape.n);
    }
    static void append(Key& key, const WideShape& shape, const Machine&, bool) {
        key.append(shape.m, 12).append(shape.n, 12).append(shape.words, 2);
    }
    static std::optional<WidePlan> choose(const TuningTable&, const WideShape& shape,
                                          const Machine&) {
        return wide_plan(shape);
    }
};

template <>
struct PlanTraits<MtsmPlan> {
    static constexpr Operation operation = Operation::mtsm;
    static std::string name(const MtsmShape& shape) {
        return std::string("mtsm ") + letter(shape.a) + " n " + std::to_string(shape.n);
    }
    /// Only mtsm depends on the number of multiprocessors. That number is therefore part of this
    /// key and not of the version, so that the other plans of a pack hold for all GPUs of its
    /// architecture.
    static void append(Key& key, const MtsmShape& shape, const Machine& machine, bool) {
        key.append(shape.a).append(shape.scalar).append(shape.n, 7).append(shape.unit_a, 5);
        key.append(shape.unit_x, 5).append(shape.log_m, 5).append(shape.log_k, 5);
        key.append(shape.along_sum, 1).append(shape.conjugated, 1).append(shape.x_rows, 1);
        key.append(shape.unit_y, 5);
        key.append(machine.multiprocessors, 12);
    }
    static std::optional<MtsmPlan> choose(const TuningTable&, const MtsmShape& shape,
                                          const Machine& machine) {
        return first_of(mtsm_plans(shape, machine));
    }
};

std::string Planner::default_path() {
    if (const char* path = std::getenv("QUIVER_TUNING")) {
        return path;
    }
    const std::string folder = cache_folder();
    return folder.empty() ? folder : folder + "/tuning.txt";
}

Planner::Planner(Context& ctx) : Planner(ctx, machine_of(ctx)) {
    static_cast<void>(CubinCache());  // creates the folder
    store_.emplace(cache_folder(), version_);
    for (const auto& pack : ctx.service<Specialiser>().packs()) {
        if (const auto plans = pack->find(version_)) {
            store_->remember(*plans);
        }
    }
}

Planner::Planner(Context& ctx, const Machine& machine)
    : overhead_(&OverheadCounts::of(ctx)), machine_(machine) {
    TuningTable shipped;
    shipped.add(shipped_tuning(), "the shipped tuning table");
    if (shipped.is_for(machine)) {
        table_.add(shipped);
    }
    TuningTable own;
    own.add_file(default_path());
    if (own.is_for(machine)) {
        table_.add(own);
    } else {
        ctx.emit(FallbackEvent{"plans: " + default_path() + " was made on " + own.gpu() +
                               " and is not used on compute capability " +
                               capability_text(machine.capability) +
                               "; run quiver tune, with QUIVER_TUNING set to another file"});
    }
    version_ = "plans-" + hex(version_of(table_.text(), machine_));
    store_.emplace("", version_);
}

void Planner::choose(const PlanChoice& choice) {
    const std::string& text = choice.plan;
    // Programs that compare plans choose between the same ones again and again.
    if (!text.empty() && !valid_.contains(text)) {
        if (!plan_of<TsmttsmPlan>(text) && !plan_of<TsmmPlan>(text) && !plan_of<MixedPlan>(text) &&
            !plan_of<MtsmPlan>(text)) {
            throw InputError(
                "\"" + text +
                "\" is not a plan of tsmttsm, tsmm, mtsm or tsmttsm in mixed precision");
        }
        valid_.insert(text);
    }
    chosen_ = text.empty() ? 0 : hash(text);
    choice_ = choice;
}

template <class Plan>
std::optional<Plan> Planner::chosen() const {
    return choice_.plan.empty() ? std::nullopt : plan_of<Plan>(choice_.plan);
}

Planner Planner::copy() const {
    Planner planner = *this;
    planner.overhead_ = nullptr;
    planner.ready_.clear();
    return planner;
}

Served Planner::served(const ProductShape& shape, std::int64_t bytes, const Layout& a,
                       const Layout& b) const {
    if (choice_.exact || (a.contiguous && b.contiguous && bytes >= large_operands) ||
        (shape.frequent() && a.best() && b.best())) {
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
std::uint64_t Planner::key_of(const typename Plan::Request& request, bool of_plan) const {
    Key key;
    key.append(static_cast<int>(PlanTraits<Plan>::operation), 3);
    key.append(choice_.reduction == Reduction::atomics, 1).append(choice_.tuned, 1);
    PlanTraits<Plan>::append(key, request, machine_, of_plan);
    return key.bits();
}

template <class Plan>
std::optional<Plan> Planner::plan(const typename Plan::Request& request) {
    if (const std::optional<Plan> plan = chosen<Plan>()) {
        return plan;
    }
    const std::uint64_t key = key_of<Plan>(request, true);
    std::optional<Plan> plan;
    bool known = false;
    if (const std::string* text = store_->find(key)) {
        plan = plan_of<Plan>(*text);
        known = plan ? kernel_of(*plan, request, machine_).has_value() : *text == none;
    }
    if (!known) {
        std::optional<OverheadCounts::Pause> pause;
        if (overhead_ != nullptr) {
            pause.emplace(*overhead_, Overhead::plan_search, 0, true);
        }
        plan = PlanTraits<Plan>::choose(table(), request, machine_);
        store_->add(key, plan ? to_text(*plan) : none);
    }
    if constexpr (std::is_same_v<Plan, TsmttsmPlan>) {
        if (plan) {
            plan->atomics = choice_.reduction == Reduction::atomics;
        }
    }
    return plan;
}

template <class Plan>
bool Planner::exists(const ProductShape& shape) {
    const Layout worst = Layout::any(shape.scalar_bytes());
    const auto [row, added] = exists_.try_emplace(key_of<Plan>({shape, {}, {}}, true) ^ chosen_);
    if (added) {
        row->second = plan<Plan>({shape, worst, worst}).has_value() &&
                      plan<Plan>({shape, {}, {}}).has_value();
    }
    return row->second;
}

template <class Plan>
std::optional<PlannedKernel> Planner::planned(const typename Plan::Request& request) {
    const std::optional<Plan> chosen = plan<Plan>(request);
    return chosen ? kernel_of(*chosen, request, machine_) : std::nullopt;
}

template <class Plan>
const Planner::Ready& Planner::ready(Context& ctx, const typename Plan::Request& request,
                                     const char* kernel_name) {
    const bool own = *kernel_name == 0;
    const std::uint64_t key = key_of<Plan>(request, false) ^ chosen_;
    Ready& ready = ready_[own ? key : hash(kernel_name, key)];
    if (ready.kernel == nullptr) {
        std::optional<PlannedKernel> kernel = planned<Plan>(request);
        if (!kernel) {
            throw DeviceError("no kernel for " + name<Plan>(request) +
                              (chosen_ == 0 ? "" : " with the plan \"" + choice_.plan + "\""));
        }
        ready.planned = std::move(*kernel);
        if (!own) {
            ready.planned.expression = with_template(ready.planned.expression, kernel_name);
        }
        ready.kernel =
            &ctx.service<Specialiser>().get(ctx, ready.planned.source, ready.planned.expression);
    }
    return ready;
}

template <class Plan>
std::string Planner::name(const typename Plan::Request& request) {
    return PlanTraits<Plan>::name(request);
}

template <class Plan>
void Planner::append(const typename Plan::Request& request, KernelList& list) {
    if (std::optional<PlannedKernel> kernel = planned<Plan>(request)) {
        list.push_back({kernel->source, std::move(kernel->expression)});
    }
}

#define QUIVER_INSTANTIATE(PLAN)                                                        \
    template std::string Planner::name<PLAN>(const PLAN::Request&);                     \
    template std::optional<PLAN> Planner::plan(const PLAN::Request&);                   \
    template const Planner::Ready& Planner::ready<PLAN>(Context&, const PLAN::Request&, \
                                                        const char*);                   \
    template void Planner::append<PLAN>(const PLAN::Request&, KernelList&);
QUIVER_INSTANTIATE(TsmttsmPlan)
QUIVER_INSTANTIATE(TsmmPlan)
QUIVER_INSTANTIATE(TsmmGramPlan)
QUIVER_INSTANTIATE(MixedPlan)
QUIVER_INSTANTIATE(WidePlan)
QUIVER_INSTANTIATE(MtsmPlan)
#undef QUIVER_INSTANTIATE
template bool Planner::exists<TsmmPlan>(const ProductShape&);
template bool Planner::exists<TsmmGramPlan>(const ProductShape&);

}  // namespace quiver::cuda
