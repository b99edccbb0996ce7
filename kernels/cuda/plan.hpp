// SPDX-License-Identifier: BSD-3-Clause
// Plans of tsmttsm and tsmm on a GPU: the parameters of their device templates, the rules for legal
// plans, and a performance model. Pure arithmetic, so that a launch, its workspace, the search and
// the tests without a GPU compute the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/scalar.hpp"
#include "kernels/cuda/fields.hpp"
#include "kernels/cuda/plan_text.hpp"

namespace quiver::cuda {

/// The largest number of rows of C = A^H B for which a thread block has enough registers, with `n`
/// columns (1 to 64); a wider A is multiplied panel by panel.
int widest_tsmttsm_panel(Dtype scalar, int n);

/// The properties of a GPU on which the choice of a plan depends; the defaults are those of an
/// H200.
struct Machine {
    std::size_t shared_per_block = 227 * 1024;
    std::size_t shared_per_multiprocessor = 228 * 1024;
    /// True if it has a copy engine for bulk copies (compute capability 9).
    bool bulk_copies = true;
    int multiprocessors = 132;
    /// Ten times the compute capability: 90 for an H100 or H200.
    int capability = 90;
};

/// True for a product Y = X C that streamed kernels compute faster than others: a wide X times few
/// columns, or complex double blocks that are too wide for one panel of the other kernels. Measured
/// on an H100 and an H200 (docs/notes/kernels.md).
bool prefers_streams(Dtype scalar, int m, int n);
/// True for a product C = A^H B that streamed kernels compute faster than others: a wide A times
/// few columns. Measured on an H100 and an H200 (docs/notes/kernels.md).
bool prefers_streamed_sums(Dtype scalar, int m, int n);
/// True for a product C = A^H B, or Y = X C + beta Y, that cuBLAS computes faster than the kernels
/// of this library. Mostly both operands are wide; in z also more than 256 columns of A with 9 to
/// 16 of B. Measured on an H200 (docs/notes/kernels.md).
bool prefers_cublas_tsmttsm(Dtype scalar, int m, int n);
bool prefers_cublas_tsmm(Dtype scalar, int m, int n);
/// The most columns of A in one launch of a streamed tsmttsm, whose sums are in registers.
inline constexpr int widest_streamed_sums = 512;
/// The widest panel of an A of m columns for a streamed tsmttsm. `aligned`: the rows start at
/// multiples of 16 bytes and have a multiple of 16 bytes. Otherwise the panel is narrower by the
/// elements of 16 bytes, because its copies may start before it.
int streamed_sums_panel(Dtype scalar, int m, bool aligned);
/// The classes of rows of the streamed kernels: RowClass::most_steps.
inline constexpr int streamed_row_classes = 4;
/// The most columns of Y in one launch of a streamed kernel.
inline constexpr int widest_streamed_panel = 80;

/// The next larger width that kernels of unequal shapes are compiled for.
int compiled_width(int width);

/// The widths of blocks that solvers use most. If two contiguous and aligned blocks both have the
/// same one of these widths, their products use kernels for exactly this width, whatever the number
/// of rows. Every pack contains these kernels. The shared kernels take up to 20% longer
/// (docs/results/2026-11-24_cold_start.md).
inline constexpr int frequent_widths[] = {4, 8, 16};

/// The shape that a kernel is compiled for: exact up to 64 x 64, otherwise the next of a few wide
/// shapes, because the basis of a solver takes every width and a compilation takes about 0.3 s.
struct ProductShape {
    Dtype scalar = Dtype::d;
    int m = 1, n = 1;
    bool exact = true;
    /// tsmttsm only: A is B.
    bool same = false;
    /// tsmm only: how many of the m columns belong to Y, for Y = X C + Y D.
    int second = 0;
    /// tsmm_gram only: true if W is also read.
    bool adds = false;
    /// tsmm and tsmttsm only: true if the plan must be a streamed one. Its kernel serves all widths
    /// up to n. That of tsmm serves all m, which only bounds the shared memory for C; that of
    /// tsmttsm serves all widths up to m.
    bool streamed = false;

    ProductShape(Dtype scalar, int m, int n, bool same = false);
    /// The shape whose streamed kernel serves Y = X C for m columns of X and n of Y.
    static ProductShape streams(Dtype scalar, int m, int n);
    /// The shape whose streamed kernel serves C = A^H B for m columns of A and n of B.
    static ProductShape streams_of_sums(Dtype scalar, int m, int n);
    /// The shape of tsmm with two sources, of m columns and of n columns; the result has n columns.
    static ProductShape pair(Dtype scalar, int m, int n);
    int scalar_bytes() const;
    /// The shape of the shared kernel for operands that are small or part of a basis, with any
    /// layout. There are only a few shared kernels, and a pack contains all of them.
    ProductShape shared() const;
    static std::vector<ProductShape> shared_products(Dtype scalar);
    /// The shared shapes with two sources.
    static std::vector<ProductShape> shared_pairs(Dtype scalar);
    /// The streamed shapes, with every m up to 512 that makes a difference.
    static std::vector<ProductShape> streamed_products(Dtype scalar);
    /// The streamed shapes of tsmttsm.
    static std::vector<ProductShape> streamed_sums(Dtype scalar);
    /// True if both operands have the same number of columns, one of frequent_widths.
    bool frequent() const;
};

/// The memory layout of a block of rows.
struct Layout {
    bool contiguous = true;
    /// The largest of 16, 8 or 4 that divides the address, the bytes of a row, and the row stride
    /// in bytes.
    int unit = 16;
    bool aligned = true;

    static Layout of(const void* data, int columns, std::int64_t ld, int scalar_bytes);
    /// The most general layout: the smallest pieces, with gaps. A kernel for it serves all layouts.
    static Layout any(int scalar_bytes) {
        return {false, scalar_bytes < 8 ? scalar_bytes : 8, false};
    }
    /// True for a block without gaps whose rows all start at multiples of 16 bytes.
    bool best() const { return contiguous && unit == 16 && aligned; }
};

/// A request for a kernel of tsmttsm, tsmm or tsmm_gram: its shape, and the layouts of its
/// operands.
struct Served {
    ProductShape shape;
    Layout a, b;

    /// The request for the streamed kernel of Y = X C. Its copies start at multiples of 16 bytes
    /// wherever the rows of X start, so that few kernels serve all blocks. Only an X that does not
    /// start at a multiple of its elements' size, and the alignment of Y, need other kernels.
    static Served streams(Dtype scalar, int m, int n, const Layout& x, const Layout& y);
    /// The request for the streamed kernel of C = A^H B; A as X above.
    static Served streams_of_sums(Dtype scalar, int m, int n, const Layout& a);
};

/// An instance of a device template and the parameters of its launch.
struct PlannedKernel {
    const char* source = "";
    std::string expression;
    int threads = 0;
    std::size_t shared_bytes = 0;
    /// Rows that a thread block processes at a time.
    int rows = 0;
    int blocks_per_multiprocessor = 1;
    /// A launch needs a multiple of this number of blocks: see RowClass in src/stage.cuh.
    int row_classes = 1;
    /// bulk: the copy engine brings the rows, in pieces_a_row pieces per row unless one copy brings
    /// all rows.
    bool bulk = false;
    int pieces_a_row = 0;
    /// run: the threads copy all rows of a stage as one run of bytes.
    bool run = false;
    /// mtsm only: terms of the sum that a block processes at a time; 0: all terms. rows_a_block:
    /// all rows that a block processes; 0: the blocks fill the GPU and share the rows.
    int depth = 1;
    int rows_a_block = 0;
    /// tsmttsm only: the kernel adds to C, which must hold beta C before.
    bool atomics = false;
};

/// C = A^H B; see src/tsmttsm.cuh. tensor: uses the tensor cores; then tile_m and tile_n count
/// warps, and `vector` the steps of a product. stages: groups of rows in shared memory; the rows of
/// stages - 1 of them are in flight during the sums (1: no prefetching). blocked: the columns of a
/// thread are neighbours (tile_m of A, tile_n of B); otherwise they are interleaved with those of
/// other threads, `vector` at a time. unroll: rows in the body of the loop of the sums (0: 4, or 2
/// steps on the tensor cores). bulk: uses the copy engine. run: the threads copy
/// rows without gaps as one run of bytes, whatever the width. atomics: the blocks add their sums to
/// C in any order, so that two runs may give different bits. streamed: the kernel of
/// src/tsmttsm_streamed.cuh, for an A of many columns. Its teams share the columns of A, and a
/// thread has tile_m of them. tile_n, 1 or 2, counts the lanes that share the columns of B. With
/// `tensor`, tile_m and tile_n are 1; `vector` is not used.
struct TsmttsmPlan {
    using Request = Served;
    QUIVER_FIELDS(TsmttsmPlan, (bool, tensor, false), (int, tile_m, 1), (int, tile_n, 1),
                  (int, vector, 1), (int, rows, 1), (int, stages, 3), (bool, bulk, false),
                  (bool, run, false), (bool, streamed, false), (int, team, 256),
                  (int, threads, 256), (int, blocks, 1), (bool, atomics, false),
                  (bool, blocked, false), (int, unroll, 0))
    bool operator==(const TsmttsmPlan&) const = default;
};

/// Y = X C; see src/tsmm.cuh. tensor: uses the tensor cores; then tile_rows counts tiles of 16
/// rows, tile_n warps, and `vector` steps. bulk, run: as in TsmttsmPlan. staged: results go through
/// shared memory. streamed: the kernel of src/tsmm_streamed.cuh, for an X of many columns;
/// tile_rows, tile_n, vector, stages, threads and blocks are its parameters, and a team is a warp.
struct TsmmPlan {
    using Request = Served;
    QUIVER_FIELDS(TsmmPlan, (bool, tensor, false), (int, tile_rows, 1), (int, tile_n, 1),
                  (int, vector, 1), (int, vector_n, 1), (bool, in_registers, false),
                  (int, stages, 3), (bool, bulk, false), (bool, run, false), (bool, staged, false),
                  (bool, streamed, false), (int, team, 256), (int, threads, 256), (int, blocks, 1))
    bool operator==(const TsmmPlan&) const = default;
};

/// W = V H + W and G = W^H W; see src/tsmm_gram.cuh. Both parts use the same threads in the same
/// teams; the rows, stages, copies and blocks of `sums` are ignored.
struct TsmmGramPlan {
    using Request = Served;
    QUIVER_FIELDS(TsmmGramPlan, (TsmmPlan, update), (TsmttsmPlan, sums))
    bool operator==(const TsmmGramPlan&) const = default;
};

/// The kernel of a plan for operands with these layouts (threads copy for a bulk plan if the
/// layouts do not allow bulk copies), or nothing if the plan is not legal for the shape or the
/// machine. A plan with `run` is also not legal if all operands have rows of multiples of 16 bytes,
/// or if a layout does not allow runs.
std::optional<PlannedKernel> kernel_of(const TsmttsmPlan& plan, const ProductShape& shape,
                                       const Layout& a, const Layout& b, const Machine& machine);
std::optional<PlannedKernel> kernel_of(const TsmmPlan& plan, const ProductShape& shape,
                                       const Layout& x, const Layout& y, const Machine& machine);

/// `shape` is that of H.
std::optional<PlannedKernel> kernel_of(const TsmmGramPlan& plan, const ProductShape& shape,
                                       const Layout& v, const Layout& w, const Machine& machine);

template <class Plan>
std::optional<PlannedKernel> kernel_of(const Plan& plan, const Served& served,
                                       const Machine& machine) {
    return kernel_of(plan, served.shape, served.a, served.b, machine);
}

/// Modelled clocks of a multiprocessor per row: the slowest of memory, arithmetic, instruction
/// issue and shared memory, plus times that do not overlap. After Ernst et al., IJHPCA 2020,
/// section 5; the constants are those of an H200.
double model_clocks(const TsmttsmPlan& plan, const ProductShape& shape, const Machine& machine);
double model_clocks(const TsmmPlan& plan, const ProductShape& shape, const Machine& machine);
double model_clocks(const TsmmGramPlan& plan, const ProductShape& shape, const Machine& machine);

/// The values of the fields that plans of tsmttsm and tsmm are made of. Experiments
/// (plan_listing.cpp) replace some of these lists.
struct PlanSpace {
    /// Threads of a team and of a block.
    std::vector<std::pair<int, int>> teams = {{32, 128},  {64, 128},  {32, 256},  {64, 256},
                                              {128, 256}, {256, 256}, {224, 224}, {96, 96}};
    std::vector<int> vectors = {1, 2, 4};
    std::vector<int> stages = {2, 3, 4};
    std::vector<int> blocks = {1, 2, 3, 4};
    /// Tiles of a thread, or warps on the tensor cores: rows of C (tsmttsm) or of Y (tsmm), and
    /// columns. Empty: all.
    std::vector<int> tiles_m = {};
    std::vector<int> tiles_n = {};
    /// True, false: only plans with or without tensor cores, even where they are slow.
    std::optional<bool> tensor = {};

    bool has_tile(int tile_m, int tile_n) const;
};

/// All legal plans of the parameter space, best by the model first, at most `most`. The plans have
/// no atomics, which can be added to any plan of tsmttsm.
std::vector<TsmttsmPlan> tsmttsm_plans(const ProductShape& shape, const Machine& machine,
                                       std::size_t most);
std::vector<TsmmPlan> tsmm_plans(const ProductShape& shape, const Machine& machine,
                                 std::size_t most);
/// The same for another space; streamed shapes ignore it.
std::vector<TsmttsmPlan> tsmttsm_plans_in(const PlanSpace& space, const ProductShape& shape,
                                          const Machine& machine, std::size_t most);
std::vector<TsmmPlan> tsmm_plans_in(const PlanSpace& space, const ProductShape& shape,
                                    const Machine& machine, std::size_t most);
std::vector<TsmmGramPlan> tsmm_gram_plans(const ProductShape& shape, const Machine& machine,
                                          std::size_t most);

}  // namespace quiver::cuda
