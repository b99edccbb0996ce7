// SPDX-License-Identifier: BSD-3-Clause
// How the dense products on a GPU divide their work: which plans they take, and the search for the
// fastest ones, which is what `quiver tune` does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "blockvec/context.hpp"

namespace quiver {

/// How tsmttsm on a device adds up what the blocks of threads have summed: the last one to end adds
/// all, in one order, or each adds its part to C by atomics, in any order.
enum class Reduction : std::uint8_t { reproducible, atomics };

struct PlanChoice {
    /// With atomics no two calls need give the same bits, and C = A^H A is Hermitian to rounding
    /// only.
    Reduction reduction = Reduction::reproducible;
    /// Plans are those of the tuning table where it has them; else the model's favourites always.
    bool tuned = true;
    /// Of sparse products, over what the model takes: "threads=512,tile=1024", the names of
    /// SpmmvTiling in kernels/cuda/spmmv_tiling.hpp.
    std::string sparse = {};
    /// Kernels for the very widths of operands also where these have less than 64 MB. Else the next
    /// of a few widths serves, below 4 MB of fewer still, since a kernel takes some 0.3 s to
    /// compile.
    bool exact = false;
};

/// For tsmttsm, tsmm and sparse products on this Context from now on; kernels are compiled when
/// first needed. Without effect on a Context on the host, whose sums have one order. No collective:
/// each rank chooses. Throws InputError for settings of sparse products that are none.
void choose_plans(Context& ctx, const PlanChoice& choice);

/// One product to tune: tsmttsm (C = A^H B, with `same` C = A^H A) or tsmm (Y = X C), C m x n.
struct TuneCase {
    /// "tsmttsm" or "tsmm".
    std::string operation;
    Dtype scalar = Dtype::d;
    int m = 1, n = 1;
    bool same = false;
};

struct TuneOptions {
    /// Plans that are timed for each case, the model's favourites.
    int candidates = 16;
    /// Bytes of the operands; 0: 1 GB, at most a quarter of the free memory.
    double operand_bytes = 0;
    /// Threads that compile.
    int threads = 4;
};

struct TuneResult {
    TuneCase which;
    /// The fastest plan, as a row of the table has it; empty where none ran.
    std::string plan;
    double seconds = 0;
    /// Of the model's favourite.
    double model_seconds = 0;
    /// Of the plan that the library took before.
    double former_seconds = 0;
    int timed = 0;
    /// Plans whose result was wrong or whose launch failed, with the reason.
    std::vector<std::string> rejected;
};

/// Times the candidates of each case (median of at least 5 runs, by events) on random operands and
/// checks every result against the other candidates'. Calls `report` after each case. Needs a
/// Context on a device; throws UnsupportedError elsewhere. No collective.
void tune(Context& ctx, std::span<const TuneCase> cases, const TuneOptions& options,
          const std::function<void(const TuneResult&)>& report);

/// A tuning table of the Context's GPU: the rows of `file` if it exists, with these results over
/// them, written aside and renamed. Throws InputError for a file that is no table or one of a GPU
/// of another compute capability, Error where it cannot be written.
void save_tuning(Context& ctx, const std::string& file, std::span<const TuneResult> results);

/// Where save_tuning's table is looked for: $QUIVER_TUNING, else tuning.txt beside the compiled
/// kernels, or "" without such a folder.
std::string default_tuning_file();

/// The rows of a table that are tuned already: "tsmttsm d 8x8", ... Throws InputError as
/// save_tuning.
std::vector<std::string> tuned_rows(Context& ctx, const std::string& file);
std::string tuning_row(const TuneCase& which);

}  // namespace quiver
