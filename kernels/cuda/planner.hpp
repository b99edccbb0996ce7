// SPDX-License-Identifier: BSD-3-Clause
// Which plan a product runs with: from a tuning table, else by the model.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "blockvec/context.hpp"
#include "blockvec/overhead.hpp"
#include "kernels/cuda/kernel_list.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/plan_store.hpp"
#include "kernels/cuda/tuning_table.hpp"
#include "kernels/tuning.hpp"

namespace quiver::cuda {

/// What differs between the plans beside kernel_of(plan, request, machine): specialised in
/// planner.cpp for each. A plan's Request is all that an operation asks a kernel for.
///   operation         an Operation, the first part of a key
///   name(request)     of messages
///   append(...)       the request to a key, as far as it decides
///   choose(...)       the plan for a request, where none is remembered
template <class Plan>
struct PlanTraits;

/// Contiguous operands of so many bytes have kernels of their own.
inline constexpr std::int64_t large_operands = 64 << 20;

/// The plans of one Context on a device; a service of the Context, ctx.service<Planner>(). Reads
/// the shipped table and, over it, the file that `quiver tune` writes ($QUIVER_TUNING, else
/// tuning.txt in the folder of compiled kernels), each where it is for this GPU: a FallbackEvent
/// tells of a file that is not.
class Planner {
  public:
    explicit Planner(Context& ctx);
    /// For a machine without a GPU: the plans of another one's GPU, remembered nowhere.
    Planner(Context& ctx, const Machine& machine);
    /// A planner for another thread: the same choices, counted nowhere.
    Planner copy() const;

    /// See kernels/tuning.hpp. Atomics are taken when chosen here, whatever a table says.
    void choose(const PlanChoice& choice) { choice_ = choice; }

    /// Operands below 64 MB, and bases of which only some columns take part, share the kernels of a
    /// few widths, whatever their layout. Others are worth a kernel of their own.
    Served served(const ProductShape& shape, std::int64_t bytes, const Layout& a,
                  const Layout& b) const;

    /// The most columns of A or X that one launch takes beside n others, `otherwise` where operands
    /// are large: small ones keep to the shared kernels.
    int most_columns(int n, std::int64_t bytes, int otherwise) const;

    const Machine& machine() const { return machine_; }
    /// Nothing where no plan of the parameter space is legal. A plan that was chosen once is
    /// remembered, also on disk.
    template <class Plan>
    std::optional<Plan> plan(const typename Plan::Request& request);

    /// Whether tsmm or tsmm_gram has a plan for the shape, however its operands lie.
    template <class Plan>
    bool exists(const ProductShape& shape);

    /// A kernel with its plan, chosen once and loaded.
    struct Ready {
        PlannedKernel planned;
        Kernel* kernel = nullptr;
    };
    /// `kernel`: a device template that takes the same configuration as that of the operation and
    /// runs in its place. Throws DeviceError where there is no plan.
    template <class Plan>
    const Ready& ready(Context& ctx, const typename Plan::Request& request,
                       const char* kernel = "");
    /// The operation and the request, for messages.
    template <class Plan>
    static std::string name(const typename Plan::Request& request);
    /// Appends the instance that ready() loads; nothing where there is no plan.
    template <class Plan>
    void append(const typename Plan::Request& request, KernelList& list);

    /// A name for all that the choice of a plan depends on beside its shape: model, tables,
    /// machine.
    const std::string& version() const { return version_; }
    /// The plans remembered so far, as a pack keeps them.
    std::string plans() const { return store_->text(); }

    /// Where `quiver tune` keeps its table; "" where there is no folder for it.
    static std::string default_path();

  private:
    template <class Plan>
    std::uint64_t key_of(const typename Plan::Request& request, bool of_plan) const;
    template <class Plan>
    std::optional<PlannedKernel> planned(const typename Plan::Request& request);
    /// The one that the choice allows.
    const TuningTable& table() const { return choice_.tuned ? table_ : no_table_; }

    /// Null in a copy.
    OverheadCounts* overhead_;
    Machine machine_;
    PlanChoice choice_;
    TuningTable table_, no_table_;
    std::string version_;
    std::optional<PlanStore> store_;
    /// By choice and request.
    std::unordered_map<std::uint64_t, bool> exists_;
    std::unordered_map<std::uint64_t, Ready> ready_;
};

}  // namespace quiver::cuda
