// SPDX-License-Identifier: BSD-3-Clause
// Planner: chooses the plan of a product, from a tuning table or by the model.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "blockvec/context.hpp"
#include "blockvec/overhead.hpp"
#include "kernels/cuda/kernel_list.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/plan_store.hpp"
#include "kernels/cuda/tuning_table.hpp"
#include "kernels/tuning.hpp"

namespace quiver::cuda {

/// The properties of a plan type besides kernel_of(plan, request, machine), specialised in
/// planner.cpp for each type. Plan::Request contains everything that a kernel of the operation
/// depends on.
///
///   operation         an Operation, the first part of a key
///   name(request)     the name in messages
///   append(...)       appends the relevant parts of the request to a key
///   choose(...)       the plan for a request that is not yet stored
template <class Plan>
struct PlanTraits;

/// Contiguous operands of at least this many bytes get their own kernels.
inline constexpr std::int64_t large_operands = 256 << 20;

/// The plans of one Context on a device; a service of the Context, ctx.service<Planner>(). Reads
/// the shipped table and then, with precedence, the file that `quiver tune` writes ($QUIVER_TUNING,
/// else tuning.txt in the folder of compiled kernels). Tables for another GPU are ignored; if the
/// file is such a table, a FallbackEvent reports this.
class Planner {
  public:
    explicit Planner(Context& ctx);
    /// For planning without a GPU: the plans of the given machine, not stored.
    Planner(Context& ctx, const Machine& machine);
    /// A planner for another thread. It makes the same choices but counts no overheads.
    Planner copy() const;

    /// See kernels/tuning.hpp. A choice of atomics overrides all tables. Throws InputError for a
    /// plan that no operation can read.
    void choose(const PlanChoice& choice);
    const PlanChoice& choice() const { return choice_; }

    /// The request for the kernel that serves these operands. Operands below 256 MB, and operands
    /// that are part of a basis, share the kernels of a few widths for any layout. All others get a
    /// kernel of their own ProductShape; so do operands of a frequent shape with the best layout.
    Served served(const ProductShape& shape, std::int64_t bytes, const Layout& a,
                  const Layout& b) const;

    /// The most columns of A or X in one launch with n columns of the other operand. Large operands
    /// get `otherwise`; small ones get at most the width of the shared kernels.
    int most_columns(int n, std::int64_t bytes, int otherwise) const;

    const Machine& machine() const { return machine_; }
    /// The plan for a request; nothing if no plan of the parameter space is legal. The choice is
    /// stored, also on disk.
    template <class Plan>
    std::optional<Plan> plan(const typename Plan::Request& request);

    /// True if tsmm or tsmm_gram has a plan for the shape, whatever the layout of the operands.
    template <class Plan>
    bool exists(const ProductShape& shape);

    /// A kernel with its plan, loaded.
    struct Ready {
        PlannedKernel planned;
        Kernel* kernel = nullptr;
    };
    /// Throws DeviceError if there is no plan. `kernel`: the name of another device template to use
    /// in place of the operation's own, with the same configuration.
    template <class Plan>
    const Ready& ready(Context& ctx, const typename Plan::Request& request,
                       const char* kernel = "");
    /// Describes the operation and the request, for messages.
    template <class Plan>
    static std::string name(const typename Plan::Request& request);
    /// Appends the instance that ready() would load; a no-op if there is no plan.
    template <class Plan>
    void append(const typename Plan::Request& request, KernelList& list);

    /// A name for everything besides the shape that the choice of a plan depends on: model, tables,
    /// machine.
    const std::string& version() const { return version_; }
    /// The plans stored so far, in the format of a pack.
    std::string plans() const { return store_->text(); }

    /// The path of the table of `quiver tune`; "" if there is no folder for it.
    static std::string default_path();

  private:
    template <class Plan>
    std::uint64_t key_of(const typename Plan::Request& request, bool of_plan) const;
    template <class Plan>
    std::optional<PlannedKernel> planned(const typename Plan::Request& request);
    /// The plan of the current choice, if it has one that belongs to this operation.
    template <class Plan>
    std::optional<Plan> chosen() const;
    /// The table that the current choice permits.
    const TuningTable& table() const { return choice_.tuned ? table_ : no_table_; }

    /// Null in a copy.
    OverheadCounts* overhead_;
    Machine machine_;
    PlanChoice choice_;
    /// The hash of the plan of the choice; 0 without one.
    std::uint64_t chosen_ = 0;
    /// The texts of plans that were chosen before.
    std::unordered_set<std::string> valid_;
    TuningTable table_, no_table_;
    std::string version_;
    std::optional<PlanStore> store_;
    /// Keyed by choice and request.
    std::unordered_map<std::uint64_t, bool> exists_;
    std::unordered_map<std::uint64_t, Ready> ready_;
};

}  // namespace quiver::cuda
