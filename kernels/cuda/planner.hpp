// SPDX-License-Identifier: BSD-3-Clause
// Which plan a product runs with: from a tuning table, else by the model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "blockvec/context.hpp"
#include "blockvec/overhead.hpp"
#include "kernels/cuda/kernel_list.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/plan_store.hpp"
#include "kernels/tuning.hpp"

namespace quiver::cuda {

/// Lines "tsmttsm d 8x8 PLAN", "tsmm z 16x4 PLAN", "tsmttsm d 8x8 same PLAN"; "any" behind these:
/// of the kernel for all widths up to these. # begins a comment.
class TuningTable {
  public:
    /// Adds the lines of a text; later ones replace earlier ones. Throws InputError with the line's
    /// number where one cannot be read.
    void add(const std::string& text, const std::string& name);
    /// The same for a file; nothing where there is none.
    void add_file(const std::string& path);
    void set(const std::string& key, const std::string& plan) { rows_[key] = plan; }
    /// The text of all rows, sorted by their keys.
    std::string text() const;
    /// The plan of a shape, or null.
    const std::string* find(const char* operation, const ProductShape& shape) const;
    const std::map<std::string, std::string>& rows() const { return rows_; }

    /// "tsmttsm d 8x8 same"
    static std::string key(const char* operation, const ProductShape& shape);

  private:
    std::map<std::string, std::string> rows_;
};

/// What differs between the products that plans divide: specialised below for each plan.
///   name, source     of messages and tables; of the device template
///   parse(text)      the inverse of to_text(plan)
///   choose(...)      the plan for a shape whose operands lie so, where none is remembered
///   fits(...)        whether a remembered plan is legal
template <class Plan>
struct PlanTraits;

/// Contiguous operands of so many bytes have kernels of their own.
inline constexpr std::int64_t large_operands = 64 << 20;
/// Columns of A or X in the widest shared kernels.
inline constexpr int widest_shared_panel = 128;

/// The plans of one Context on a device; a service of the Context, ctx.service<Planner>(). Reads
/// the shipped table on GPUs of compute capability 9 and, over it, the file that `quiver tune`
/// writes ($QUIVER_TUNING, else tuning.txt in the folder of compiled kernels).
class Planner {
  public:
    explicit Planner(Context& ctx);
    /// For a machine without a GPU: the plans of another one's GPU, remembered nowhere.
    Planner(Context& ctx, const Machine& machine, int compute_major);
    /// A planner for another thread: the same choices, counted nowhere.
    Planner copy() const;

    /// See kernels/tuning.hpp. Atomics are taken when chosen here, whatever a table says.
    void choose(const PlanChoice& choice) { choice_ = choice; }

    /// Which kernel multiplies operands: its shape, and how it takes them to lie.
    struct Served {
        ProductShape shape;
        Layout a, b;
    };
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
    std::optional<Plan> plan(const Served& served);

    /// Whether tsmm has a plan for the shape, however its operands lie.
    bool tsmm_exists(const ProductShape& shape);
    /// The model's favourite, where it expects more of it than of an update and sums on their own.
    const std::optional<TsmmGramPlan>& tsmm_gram(const ProductShape& shape);

    /// A kernel with its plan, chosen once and loaded.
    struct Ready {
        PlannedKernel planned;
        Kernel* kernel = nullptr;
    };
    /// Throws DeviceError where there is no plan.
    template <class Plan>
    const Ready& ready(Context& ctx, const Served& served);
    /// Appends the instance that ready() loads; nothing where there is no plan.
    template <class Plan>
    void append(const Served& served, KernelList& list);

    /// A name for all that the choice of a plan depends on beside its shape: model, tables,
    /// machine.
    const std::string& version() const { return version_; }
    /// The plans remembered so far, as a pack keeps them.
    std::string plans() const { return store_->text(); }

    /// Where `quiver tune` keeps its table; "" where there is no folder for it.
    static std::string default_path();

  private:
    template <class Plan>
    std::optional<PlannedKernel> planned(const Served& served);
    /// The one that the choice allows.
    const TuningTable& table() const { return choice_.tuned ? table_ : no_table_; }

    /// Null in a copy.
    OverheadCounts* overhead_;
    Machine machine_;
    PlanChoice choice_;
    TuningTable table_, no_table_;
    std::string version_;
    std::optional<PlanStore> store_;
    std::map<std::tuple<Dtype, int, int, int>, bool> tsmm_exists_;
    std::map<std::tuple<Dtype, int, int, bool>, std::optional<TsmmGramPlan>> tsmm_gram_;
    /// By choice, operation, shape and layouts.
    std::unordered_map<std::uint64_t, Ready> ready_;
    template <class Plan>
    friend struct PlanTraits;
};

}  // namespace quiver::cuda
