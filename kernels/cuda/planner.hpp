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
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/plan_store.hpp"
#include "kernels/tuning.hpp"

namespace quiver::cuda {

/// Lines "tsmttsm d 8x8 PLAN", "tsmm z 16x4 PLAN", "tsmttsm d 8x8 same PLAN"; # begins a comment.
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

/// The plans of one Context on a device; a service of the Context, ctx.service<Planner>(). Reads
/// the shipped table on GPUs of compute capability 9 and, over it, the file that `quiver tune`
/// writes ($QUIVER_TUNING, else tuning.txt in the folder of compiled kernels).
class Planner {
  public:
    explicit Planner(Context& ctx);

    /// See kernels/tuning.hpp. Atomics are taken when chosen here, whatever a table says.
    void choose(const PlanChoice& choice) { choice_ = choice; }

    /// Whether operands of so many bytes are multiplied by a shared kernel; see PlanChoice.
    bool shares(std::int64_t bytes) const { return !choice_.exact && bytes < (4 << 20); }
    /// The shape of the kernel that multiplies operands of so many bytes: large ones are worth
    /// compiling their own.
    ProductShape served(const ProductShape& shape, std::int64_t bytes) const {
        return shares(bytes)                          ? shape.shared()
               : !choice_.exact && bytes < (64 << 20) ? shape.rounded()
                                                      : shape;
    }

    const Machine& machine() const { return machine_; }
    /// For operands that lie so; nothing where no plan of the parameter space is legal. What was
    /// chosen once is remembered, also on disk.
    std::optional<TsmttsmPlan> tsmttsm(const ProductShape& shape, const Layout& a, const Layout& b);
    std::optional<TsmmPlan> tsmm(const ProductShape& shape, const Layout& x, const Layout& y);

    /// Whether tsmm has a plan for the shape, however its operands lie.
    bool tsmm_exists(const ProductShape& shape);
    /// The model's favourite, where it expects more of it than of an update and sums on their own.
    const std::optional<TsmmGramPlan>& tsmm_gram(const ProductShape& shape);

    /// The plans, chosen once and loaded.
    struct Ready {
        PlannedKernel planned;
        Kernel* kernel = nullptr;
    };
    const Ready& ready_tsmttsm(Context& ctx, const ProductShape& shape, const Layout& a,
                               const Layout& b);
    const Ready& ready_tsmm(Context& ctx, const ProductShape& shape, const Layout& x,
                            const Layout& y);
    /// Of a shape that tsmm_gram() has a plan for.
    const Ready& ready_tsmm_gram(Context& ctx, const ProductShape& shape, const Layout& v,
                                 const Layout& w);

    /// Where `quiver tune` keeps its table; "" where there is no folder for it.
    static std::string default_path();

  private:
    /// The one that the choice allows.
    const TuningTable& table() const { return choice_.tuned ? table_ : no_table_; }

    /// What the store has, else choose() and the store has it. fits: whether a plan read is legal.
    template <class Plan, class Parse, class Fits, class Choose>
    std::optional<Plan> remembered(std::uint64_t key, Parse&& parse, Fits&& fits, Choose&& choose);

    OverheadCounts& overhead_;
    Machine machine_;
    PlanChoice choice_;
    TuningTable table_, no_table_;
    std::optional<PlanStore> store_;
    std::map<std::tuple<Dtype, int, int, int>, bool> tsmm_exists_;
    std::map<std::tuple<Dtype, int, int, bool>, std::optional<TsmmGramPlan>> tsmm_gram_;
    /// By choice, operation, shape and layouts.
    std::unordered_map<std::uint64_t, Ready> ready_;
};

}  // namespace quiver::cuda
