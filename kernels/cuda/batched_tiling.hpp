// SPDX-License-Identifier: BSD-3-Clause
// The division of work of batched factorisations on a device; see src/batched*.cuh. Pure
// arithmetic, so that a launch and the tests without a GPU compute the same numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {

/// Largest order that is factored in registers.
inline constexpr int largest_in_registers = 64;

/// Overrides of the tiling of batched factorisations, for experiments: "threads=512",
/// "by_thread=0", "panels=1". Fields with their default are left to the library.
struct BatchedSettings {
    /// Threads per block.
    int threads = 0;
    /// 1: one thread factors a matrix; 0: several threads share a matrix.
    int by_thread = -1;
    /// 1: Cholesky by panels in shared memory, also for small matrices.
    int panels = 0;
};

enum class BatchPacking { packed, general, interleaved };

enum class Factorisation { lu, cholesky };

/// How threads share the matrices of a batch.
enum class BatchedDesign {
    /// One thread factors a whole matrix.
    by_thread,
    /// `group` threads share a matrix and, for Cholesky, `split` of them share a row.
    by_rows,
    /// LU: `warps` warps share a matrix in shared memory, which they factor in panels of columns.
    by_panels,
    /// Cholesky in double: the same, with updates on the tensor cores.
    by_tiles
};

/// The tiling of factorisations up to order largest_in_registers.
struct BatchedTiling {
    BatchedDesign design;
    BatchPacking packing;
    bool by_rows;
    int matrices;
    int group = 1;
    int split = 1;
    int warps = 1;
    int threads;
    /// In elements: distance of lines, and padding after a matrix.
    int pitch;
    int gap = 0;
    /// Bytes per word of a packed copy.
    int word = 16;
    std::size_t shared_bytes;

    /// Requires n <= largest_in_registers. Packed matrices start at a multiple of 16 bytes.
    /// If `wish` is impossible, allows() is false and the other members have no meaning.
    constexpr BatchedTiling(Factorisation factorisation, std::size_t scalar_bytes, bool is_complex,
                            int n, BatchPacking packing_, bool by_rows_,
                            const BatchedSettings& wish = {})
        : design(choose_design(factorisation, static_cast<int>(scalar_bytes), is_complex, n,
                               wish.by_thread != 0)),
          packing(packing_),
          by_rows(by_rows_),
          pitch(n) {
        const int size = static_cast<int>(scalar_bytes);
        const int line_bytes = n * size;
        const int matrix_bytes = n * line_bytes;
        const auto is_even_run = [&](int bytes) {
            return bytes % vector == 0 && bytes / vector % 2 == 0;
        };
        if (design == BatchedDesign::by_thread) {
            threads = wish.threads > 0 ? wish.threads : matrix_bytes <= 192 ? 128 : 64;
            matrices = threads;
            // Matrices are an odd number of vectors apart, so that no two threads of a phase use
            // the same bank.
            gap = is_even_run(matrix_bytes) ? vector / size : 0;
        } else if (design == BatchedDesign::by_rows) {
            split = line_bytes > 4 * most_words ? 2 : 1;
            group = 8;
            while (group < n * split) {
                group *= 2;
            }
            threads = wish.threads > 0 ? wish.threads : std::max(group, 64);
            matrices = threads / group;
            pitch += by_rows && is_even_run(line_bytes) ? vector / size : 0;
        } else {
            warps = warps_of(design, size, size == 8 && !is_complex, n);
            // A block of one warp has two matrices if one is not a multiple of the longest word.
            matrices = warps > 1 || matrix_bytes % vector == 0 ? 1 : 2;
            threads = 32 * warps * matrices;
            pitch += is_even_run(line_bytes) ? vector / size : 0;
        }
        const int piece = pitch != n ? line_bytes
                          : gap != 0 ? matrix_bytes
                                     : matrices * matrix_bytes;
        while (piece % word != 0) {
            word /= 2;
        }
        int elements = 0;
        if (design != BatchedDesign::by_thread || packing != BatchPacking::interleaved) {
            elements = round_up(matrices * (n * pitch + gap), vector / size);
        }
        elements += matrices * work_elements(n, vector / size);
        shared_bytes = static_cast<std::size_t>(elements) * scalar_bytes;
    }

    /// True if the tiling has the wished threads, and its shared memory fits.
    constexpr bool allows(const BatchedSettings& wish, std::size_t most_shared_bytes) const {
        const bool is_by_thread = design == BatchedDesign::by_thread;
        const bool threads_fit = threads <= 1024 && threads % 32 == 0 && threads % group == 0 &&
                                 (group <= 32 || threads == group) && threads >= group &&
                                 (wish.threads <= 0 || threads == wish.threads);
        return threads_fit && shared_bytes <= most_shared_bytes &&
               (wish.by_thread < 0 || is_by_thread == (wish.by_thread == 1));
    }

  private:
    static constexpr int vector = 16;
    static constexpr int most_words = 128;  // registers for the elements of a thread
    static constexpr int panel = 8;         // columns

    static constexpr int round_up(int number, int unit) { return ceil_div(number, unit) * unit; }

    static constexpr BatchedDesign choose_design(Factorisation factorisation, int size,
                                                 bool is_complex, int n, bool may_be_by_thread) {
        const bool is_double = size == 8 && !is_complex;
        if (may_be_by_thread && n * n * size <= 4 * most_words) {
            return BatchedDesign::by_thread;
        }
        // Where the measured times cross.
        if (factorisation == Factorisation::lu) {
            return n > 32 || (is_double && n >= 24) ? BatchedDesign::by_panels
                                                    : BatchedDesign::by_rows;
        }
        return is_double && n >= 20 ? BatchedDesign::by_tiles : BatchedDesign::by_rows;
    }

    static constexpr int warps_of(BatchedDesign design, int size, bool is_double, int n) {
        if (design == BatchedDesign::by_tiles) {
            return n <= 48 ? 1 : 4;
        }
        return !is_double && n > 32 && (size == 16 || n > 48) ? 2 : 1;
    }

    /// Elements of shared memory of a matrix beside its own: data that a step broadcasts, for this
    /// step and the previous one, and the rows of U of a panel.
    constexpr int work_elements(int n, int unit) const {
        switch (design) {
            case BatchedDesign::by_thread:
                return 0;
            case BatchedDesign::by_rows:
                return 2 * split * round_up(ceil_div(n, split), unit);
            case BatchedDesign::by_panels:
                return 2 * panel + panel * (round_up(n, panel) - 4);
            case BatchedDesign::by_tiles:
                return 2 * panel;
        }
        return 0;
    }
};

/// The tiling for matrices of T.
template <class T>
constexpr BatchedTiling batched_tiling(Factorisation factorisation, int n, BatchPacking packing,
                                       bool by_rows, const BatchedSettings& wish = {}) {
    return {factorisation, sizeof(T), is_complex_v<T>, n, packing, by_rows, wish};
}

/// The name expression of the kernel.
template <class T>
std::string expression(Factorisation factorisation, const BatchedTiling& tiling, int n) {
    const char* const packing = tiling.packing == BatchPacking::packed ? "quiver::Packing::packed"
                                : tiling.packing == BatchPacking::general
                                    ? "quiver::Packing::general"
                                    : "quiver::Packing::interleaved";
    const bool is_lu = factorisation == Factorisation::lu;
    const std::string name = is_lu ? "lu" : "cholesky";
    switch (tiling.design) {
        case BatchedDesign::by_thread:
            return instance((name + "_by_thread").c_str(), device_name<T>(), n, tiling.threads,
                            tiling.gap, tiling.word, tiling.by_rows, packing);
        case BatchedDesign::by_rows:
            return is_lu
                       ? instance("lu_by_rows", device_name<T>(), n, tiling.matrices, tiling.group,
                                  tiling.pitch, tiling.word, tiling.by_rows, packing)
                       : instance("cholesky_by_rows", device_name<T>(), n, tiling.matrices,
                                  tiling.group, tiling.split, tiling.pitch, tiling.word,
                                  tiling.by_rows, packing);
        case BatchedDesign::by_panels:
        case BatchedDesign::by_tiles:
            break;
    }
    return instance(is_lu ? "lu_by_panels" : "cholesky_by_tiles", device_name<T>(), n,
                    tiling.matrices, tiling.warps, tiling.pitch, tiling.word, tiling.by_rows,
                    packing);
}

/// The tiling of Cholesky factorisations by panels.
struct PanelTiling {
    int width;
    int threads;
    std::size_t shared_bytes;

    constexpr PanelTiling(std::size_t scalar_bytes, int n, bool by_rows)
        : width(scalar_bytes == 16 ? 8 : 16), threads(n <= 256 ? 64 : 128) {
        const int left = width * ((n - 1) / width * width);
        const int diagonal = width * (width + 2);
        const int staged = by_rows ? threads * (width + 1) : 0;
        shared_bytes = static_cast<std::size_t>(left + diagonal + staged) * scalar_bytes;
    }
};

template <class T>
std::string expression(const PanelTiling& tiling, bool by_rows) {
    return instance("cholesky_by_panels", device_name<T>(), tiling.width, tiling.threads, by_rows);
}

/// The tiling of solutions with factors of order n.
struct SolveTiling {
    int lanes = 4;
    int rows;
    int columns;

    constexpr SolveTiling(int n, int right_sides) {
        while (lanes < 32 && lanes < n) {
            lanes *= 2;
        }
        rows = 1;
        while (lanes * rows < n) {
            rows *= 2;
        }
        columns = rows > 4 || right_sides == 1 ? 1 : rows > 2 ? 2 : 4;
    }
};

template <class T>
std::string expression(const SolveTiling& tiling, bool cholesky) {
    return instance("batched_solve", device_name<T>(), tiling.lanes, tiling.rows, tiling.columns,
                    cholesky);
}

}  // namespace quiver::cuda
