// SPDX-License-Identifier: BSD-3-Clause
// The operands of one case and the reference that its results are held against.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/bench/case.hpp"
#include "apps/bench/provider.hpp"
#include "blockvec/block_vector.hpp"

namespace quiver::apps::bench {

/// Random operands, as many sets of them as it takes to pass `least_bytes` bytes, so that calls
/// that take the sets in turn find none of them in a cache.
///
/// Rows repeat with a prime period: so long double sums over one period, weighted by how often each
/// of its rows occurs, are the exact result of any number of rows, at next to no cost.
template <class T>
class Workload {
  public:
    /// For spmmv, c.rows must be a grid's (Stencil::rows). Throws MemoryError.
    Workload(Context& ctx, const Case& c, double least_bytes);

    std::int64_t sets() const { return sets_; }
    Operands<T> operands(std::int64_t set);
    /// Outputs become NaN; the Y that axpby updates becomes random again.
    void reset();
    /// The largest |computed - reference| / bound of the results in `set`, infinity where one is
    /// not finite. `calls` (at least 1) have worked on that set since the last reset. Checked are
    /// all elements of small results; of tall ones the first and the last rows, random ones, and
    /// that every element is finite.
    double error(std::int64_t set, std::int64_t calls);

  private:
    using Block = BlockVector<T>;
    struct Worst;
    Block make_block(std::int64_t rows, int cols) const;
    void fill_periodic(std::uint64_t seed, Block& block, std::vector<T>& period);
    void check_small(std::int64_t first, Worst& worst);
    void check_row(std::int64_t first, std::int64_t row, const T* computed, std::int64_t calls,
                   Worst& worst) const;
    void check_tall(std::int64_t first, std::int64_t calls, Worst& worst);

    Context& ctx_;
    Case case_;
    std::int64_t stride_ = 0;
    std::int64_t sets_ = 1;
    Block x_, y_, small_;
    /// The first period of X and Y (as after reset) and the small operand, in host memory.
    std::vector<T> x_period_, y_period_, small_host_;
    std::vector<T> result_;
    std::optional<SparseMatrix<T>> matrix_;
};

}  // namespace quiver::apps::bench
