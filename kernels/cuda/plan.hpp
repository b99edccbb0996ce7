// SPDX-License-Identifier: BSD-3-Clause
// How tsmttsm and tsmm divide their work on a GPU: the parameters of their device templates, which
// are legal, and what a model expects of each. Pure arithmetic, so that a launch, its workspace,
// the search and the tests without a GPU see the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/scalar.hpp"
#include "kernels/cuda/fields.hpp"
#include "kernels/cuda/plan_text.hpp"

namespace quiver::cuda {

/// The most rows of C = A^H B that a block of threads has the registers for, beside `n` columns (1
/// to 64); wider A are multiplied panel by panel.
int widest_tsmttsm_panel(Dtype scalar, int n);

/// What the choice of a plan knows of a GPU; the defaults are an H200's.
struct Machine {
    std::size_t shared_per_block = 227 * 1024;
    std::size_t shared_per_multiprocessor = 228 * 1024;
    /// Whether it has a copy engine for bulk copies (compute capability 9).
    bool bulk_copies = true;
    int multiprocessors = 132;
    /// Ten times the compute capability: 90 for an H100 or H200.
    int capability = 90;
};

/// The next of the widths that kernels of unequal shapes are compiled for.
int compiled_width(int width);

/// The shape that a kernel is compiled for: exact up to 64 x 64, else the next of a few wide ones,
/// since the basis of a solver takes every width and a compilation some 0.3 s.
struct ProductShape {
    Dtype scalar = Dtype::d;
    int m = 1, n = 1;
    bool exact = true;
    /// tsmttsm only: A is B.
    bool same = false;
    /// tsmm only: how many of the m columns are those of Y, for Y = X C + Y D.
    int second = 0;
    /// tsmm_gram only: W is read, too.
    bool adds = false;

    ProductShape(Dtype scalar, int m, int n, bool same = false);
    /// tsmm with two sources: of m columns and of n, as many as the result has.
    static ProductShape pair(Dtype scalar, int m, int n);
    int scalar_bytes() const;
    /// Of the kernel that serves operands that are not large, and bases, however they lie: one of a
    /// few, which a pack has all.
    ProductShape shared() const;
    static std::vector<ProductShape> shared_products(Dtype scalar);
    /// With two sources.
    static std::vector<ProductShape> shared_pairs(Dtype scalar);
};

/// How a block of rows lies in memory.
struct Layout {
    bool contiguous = true;
    /// 16, 8 or 4: divides the address and the bytes of a row and from row to row.
    int unit = 16;
    bool aligned = true;

    static Layout of(const void* data, int columns, std::int64_t ld, int scalar_bytes);
    /// In the smallest pieces and with gaps: what is right for this is right for all.
    static Layout any(int scalar_bytes) {
        return {false, scalar_bytes < 8 ? scalar_bytes : 8, false};
    }
};

/// What a kernel of tsmttsm, tsmm or tsmm_gram is asked for: its shape, and how its operands lie.
struct Served {
    ProductShape shape;
    Layout a, b;
};

/// An instance of a device template and what its launch needs.
struct PlannedKernel {
    const char* source = "";
    std::string expression;
    int threads = 0;
    std::size_t shared_bytes = 0;
    /// Rows that a block of threads works on at a time.
    int rows = 0;
    int blocks_per_multiprocessor = 1;
    /// The copy engine brings the rows; so many pieces for each row where not all come at once.
    bool bulk = false;
    int pieces_a_row = 0;
    /// mtsm only: terms of the sum that a block works on at a time.
    int depth = 1;
    /// tsmttsm only: adds to C what it computes, so C must hold beta C before.
    bool atomics = false;
};

/// C = A^H B; see src/tsmttsm.cuh. tensor: by the tensor cores; then tile_m, tile_n count warps and
/// `vector` the steps of a product. bulk: by the copy engine. atomics: blocks add their sums to C
/// one by one, in any order, so that no two runs need give the same bits.
struct TsmttsmPlan {
    using Request = Served;
    QUIVER_FIELDS(TsmttsmPlan, (bool, tensor, false), (int, tile_m, 1), (int, tile_n, 1),
                  (int, vector, 1), (int, rows, 1), (int, stages, 3), (bool, bulk, false),
                  (int, team, 256), (int, threads, 256), (int, blocks, 1), (bool, atomics, false))
    bool operator==(const TsmttsmPlan&) const = default;
};

/// Y = X C; see src/tsmm.cuh. tensor: by the tensor cores; then tile_rows counts tiles of 16,
/// tile_n warps, `vector` steps. staged: results go through shared memory.
struct TsmmPlan {
    using Request = Served;
    QUIVER_FIELDS(TsmmPlan, (bool, tensor, false), (int, tile_rows, 1), (int, tile_n, 1),
                  (int, vector, 1), (int, vector_n, 1), (bool, in_registers, false),
                  (int, stages, 3), (bool, bulk, false), (bool, staged, false), (int, team, 256),
                  (int, threads, 256), (int, blocks, 1))
    bool operator==(const TsmmPlan&) const = default;
};

/// W = V H + W and G = W^H W; see src/tsmm_gram.cuh. Both parts have the same threads in the same
/// teams; the sums' own rows, stages, copies and blocks do not count.
struct TsmmGramPlan {
    using Request = Served;
    QUIVER_FIELDS(TsmmGramPlan, (TsmmPlan, update), (TsmttsmPlan, sums))
    bool operator==(const TsmmGramPlan&) const = default;
};

/// The kernel of a plan for operands that lie so (a bulk plan copies by threads where they do not
/// allow it), or nothing where the plan is not legal for the shape or the machine.
std::optional<PlannedKernel> kernel_of(const TsmttsmPlan& plan, const ProductShape& shape,
                                       const Layout& a, const Layout& b, const Machine& machine);
std::optional<PlannedKernel> kernel_of(const TsmmPlan& plan, const ProductShape& shape,
                                       const Layout& x, const Layout& y, const Machine& machine);

/// The shape is H's.
std::optional<PlannedKernel> kernel_of(const TsmmGramPlan& plan, const ProductShape& shape,
                                       const Layout& v, const Layout& w, const Machine& machine);

template <class Plan>
std::optional<PlannedKernel> kernel_of(const Plan& plan, const Served& served,
                                       const Machine& machine) {
    return kernel_of(plan, served.shape, served.a, served.b, machine);
}

/// Clocks of a multiprocessor for a row: the slowest of memory, arithmetic, instructions issued and
/// shared memory, with what is not overlapped. After Ernst et al., IJHPCA 2020, section 5; the
/// constants are an H200's.
double model_clocks(const TsmttsmPlan& plan, const ProductShape& shape, const Machine& machine);
double model_clocks(const TsmmPlan& plan, const ProductShape& shape, const Machine& machine);
double model_clocks(const TsmmGramPlan& plan, const ProductShape& shape, const Machine& machine);

/// All legal plans of the parameter space, the model's favourites first, at most `most`; without
/// atomics, which any of tsmttsm may have, too.
std::vector<TsmttsmPlan> tsmttsm_plans(const ProductShape& shape, const Machine& machine,
                                       std::size_t most);
std::vector<TsmmPlan> tsmm_plans(const ProductShape& shape, const Machine& machine,
                                 std::size_t most);
std::vector<TsmmGramPlan> tsmm_gram_plans(const ProductShape& shape, const Machine& machine,
                                          std::size_t most);

}  // namespace quiver::cuda
