// SPDX-License-Identifier: BSD-3-Clause
// Selection of the kernel plans for products on a GPU, and the search for the fastest plans, which
// `quiver tune` runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/context.hpp"

namespace quiver {

/// The way in which tsmttsm on a device combines the partial sums of the thread blocks. Either the
/// last thread block to finish adds all of them in a fixed order, or each thread block adds its
/// part to C by atomics, in any order. none: the partial sums are not added and C is not written,
/// to measure the time of the reduction.
enum class Reduction : std::uint8_t { reproducible, atomics, none };

/// How a Context chooses the plans of products on a GPU.
struct PlanChoice {
    /// With atomics, two equal calls may give different bits, and C = A^H A is Hermitian only up to
    /// rounding.
    Reduction reduction = Reduction::reproducible;
    /// If true, plans come from the tuning table where it has them; otherwise always from the
    /// model.
    bool tuned = true;
    /// Overrides of the model's plan for sparse products, for instance "threads=512,tile=1024",
    /// with the names of SpmmvTiling in kernels/cuda/spmmv_tiling.hpp.
    std::string sparse = {};
    /// Overrides of the tiling of batched factorisations, for instance "threads=512,by_thread=0",
    /// with the names of BatchedSettings in kernels/cuda/batched_tiling.hpp.
    std::string batched = {};
    /// A plan as in a row of the tuning table. Products of its operation use this plan, whatever
    /// their shape, and throw DeviceError if it is not legal for them; set `exact` as well.
    std::string plan = {};
    /// If true, kernels are compiled for the exact widths of all operands. Otherwise, most operands
    /// below 256 MB share the kernels of a short list of shapes (Planner::served), because a kernel
    /// takes about 0.3 s to compile.
    bool exact = false;
};

/// Sets the plans of products and of batched factorisations on this Context from now on; kernels
/// are compiled at their first use. A no-op on the host, where sums have one order. Not collective:
/// each rank chooses. Throws InputError for invalid settings or an invalid plan.
void choose_plans(Context& ctx, const PlanChoice& choice);

/// A product of contiguous operands whose plans are to be listed. operation: "tsmttsm", "tsmm",
/// "mtsm-columns" (Y = A X, all stored by columns, A: rows x m, or rows x rows if m = n),
/// "tsmm-columns" (the same with A: rows x m), or "tsmttsm-mixed" (scalar: h or b).
struct PlannedProduct {
    std::string operation;
    Dtype scalar = Dtype::d;
    int m = 1, n = 1;
    std::int64_t rows = 1;
    bool operator==(const PlannedProduct&) const = default;
};

/// A plan, as a row of the tuning table, and its time by the model in clocks of a multiprocessor
/// per row (mtsm-columns: per element of A; tsmttsm-mixed: 0, no estimate).
struct ListedPlan {
    std::string plan;
    double clocks = 0;
};

/// The best plans by the model, at most `most`, among those whose fields have the given values:
/// "tensor=0 stages=1 tile_m=4" (flags are 0 or 1). These values need not be ones that `quiver
/// tune` tries. Throws InputError for an unknown field or operation, UnsupportedError on the host.
std::vector<ListedPlan> list_plans(Context& ctx, const PlannedProduct& product,
                                   const std::string& fields, int most);

/// Compiles the kernels of plans of list_plans on all cores; with the operations "batched-lu",
/// "batched-cholesky", and these with "-interleaved", the kernels of PlanChoice::batched for
/// matrices of order n in column-major order. A no-op for kernels that do not
/// compile; their first use reports the error. Throws UnsupportedError on the host.
void compile_plans(Context& ctx, std::span<const std::pair<PlannedProduct, std::string>> plans);

/// One product to tune: tsmttsm (C = A^H B, or C = A^H A if `same`) or tsmm (Y = X C); C is m x n.
struct TuneCase {
    /// "tsmttsm" or "tsmm".
    std::string operation;
    Dtype scalar = Dtype::d;
    int m = 1, n = 1;
    bool same = false;
};

/// The effort of a tuning run.
struct TuneOptions {
    /// Number of plans that are timed for each case: the best by the model.
    int candidates = 16;
    /// Bytes of the operands; 0 means 1 GB, but at most a quarter of the free memory.
    double operand_bytes = 0;
    /// Number of compiling threads.
    int threads = 4;
};

/// The outcome of tuning one case; times are seconds per call.
struct TuneResult {
    TuneCase which;
    /// The fastest plan, as a row of the tuning table; empty if no plan ran.
    std::string plan;
    double seconds = 0;
    /// Time of the plan that the model ranks first.
    double model_seconds = 0;
    /// Time of the plan that the library used before.
    double former_seconds = 0;
    int timed = 0;
    /// Plans whose result was wrong or whose launch failed, with the reason.
    std::vector<std::string> rejected;
};

/// Times the candidates of each case (median of at least 5 runs, by events) on random operands and
/// compares every result with those of the other candidates. Calls `report` after each case.
/// Requires a Context on a device; throws UnsupportedError otherwise. Not collective.
void tune(Context& ctx, std::span<const TuneCase> cases, const TuneOptions& options,
          const std::function<void(const TuneResult&)>& report);

/// Writes a tuning table for the Context's GPU: the rows of `file` if it exists, overridden by
/// these results. The data go to a temporary file that is renamed at the end. Throws InputError if
/// `file` is not a table or belongs to a GPU of another compute capability, Error if it cannot be
/// written.
void save_tuning(Context& ctx, const std::string& file, std::span<const TuneResult> results);

/// The default path of the table of save_tuning: $QUIVER_TUNING, else tuning.txt beside the
/// compiled kernels, or "" if there is no such folder.
std::string default_tuning_file();

/// The names of the rows that a table already contains: "tsmttsm d 8x8", ... Throws InputError as
/// save_tuning.
std::vector<std::string> tuned_rows(Context& ctx, const std::string& file);
std::string tuning_row(const TuneCase& which);

}  // namespace quiver
