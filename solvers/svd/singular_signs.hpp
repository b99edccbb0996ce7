// SPDX-License-Identifier: BSD-3-Clause
// The signs of singular vectors. Private to solvers/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {

/// Finds for each column the first element whose modulus agrees with the largest modulus to a
/// millionth, so that rounding errors do not decide between equal moduli. The caller passes all
/// rows twice, in parts in host memory: first to measure(), then to place().
template <class T>
class LargestElements {
  public:
    explicit LargestElements(int columns)
        : most(static_cast<std::size_t>(columns)),
          first(most.size(), -none),
          element(most.size()) {}

    /// Updates the largest moduli.
    void measure(BlockView<const T> rows) {
        each(rows, [&](std::int64_t, std::size_t j, T value) {
            most[j] = std::max(most[j], static_cast<double>(std::abs(value)));
        });
    }
    /// Looks for the elements; `row` is the global number of the first of these rows.
    void place(BlockView<const T> rows, std::int64_t row) {
        each(rows, [&](std::int64_t i, std::size_t j, T value) {
            constexpr double nearly = 1 + 1e-6;
            if (first[j] == -none && nearly * static_cast<double>(std::abs(value)) >= most[j]) {
                first[j] = -(row + i);
                element[j] = value;
            }
        });
    }
    /// For each column the factor of modulus 1 that makes its element positive.
    std::vector<T> phases() const {
        std::vector<T> result(element.size(), T(1));
        for (std::size_t j = 0; j < element.size(); ++j) {
            if (std::abs(element[j]) > 0) {
                result[j] = conjugate(element[j]) / std::abs(element[j]);
            }
        }
        return result;
    }

    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::vector<double> most;
    /// The negative numbers of the rows, so that a maximum over the ranks gives the first row.
    std::vector<std::int64_t> first;
    std::vector<T> element;

  private:
    template <class Use>
    static void each(BlockView<const T> rows, Use use) {
        for (std::int64_t i = 0; i < rows.rows; ++i) {
            for (int j = 0; j < rows.cols; ++j) {
                use(i, static_cast<std::size_t>(j), rows.data[i * rows.ld + j]);
            }
        }
    }
};

/// For each column of V the factor of modulus 1 that makes its element of largest modulus positive
/// (the first of equals to a millionth).
template <class T>
std::vector<T> phases_of(const SmallMatrix<T>& v) {
    LargestElements<T> largest(v.cols());
    largest.measure(v.view());
    largest.place(v.view(), 0);
    return largest.phases();
}

/// The same for the rows of all ranks. Collective: three all-reduces. Reads V twice.
template <class T>
std::vector<T> phases_of(Context& ctx, const BlockVector<T>& v) {
    LargestElements<T> largest(v.width());
    const std::int64_t part =
        std::max<std::int64_t>(1, (std::int64_t{1} << 20) / std::max(1, v.width()));
    BlockVector<T> here;
    const auto each_part = [&](auto use) {
        for (std::int64_t from = 0; from < v.rows(); from += part) {
            const BlockView<const T> rows =
                v.view().row_range(from, std::min(part, v.rows() - from));
            if (ctx.place() == Place::host) {
                use(rows, from);
                continue;
            }
            SmallMatrix<T> copied(static_cast<int>(rows.rows), rows.cols);
            copy(ctx, rows, copied.view());
            use(BlockView<const T>(copied.view()), from);
        }
    };
    each_part([&](BlockView<const T> rows, std::int64_t) { largest.measure(rows); });
    ctx.comm().max(std::span<double>(largest.most));
    each_part([&](BlockView<const T> rows, std::int64_t from) {
        largest.place(rows, v.row_map().first_row() + from);
    });
    const std::vector<std::int64_t> mine = largest.first;
    ctx.comm().max(std::span<std::int64_t>(largest.first));
    for (std::size_t j = 0; j < mine.size(); ++j) {
        largest.element[j] = mine[j] == largest.first[j] ? largest.element[j] : T(0);
    }
    ctx.comm().sum(std::span<T>(largest.element));
    return largest.phases();
}

/// V(:, j) <- V(:, j) phases[j].
template <class T>
void multiply_columns(SmallMatrix<T>& v, const std::vector<T>& phases) {
    for (int i = 0; i < v.rows(); ++i) {
        for (int j = 0; j < v.cols(); ++j) {
            v(i, j) *= phases[static_cast<std::size_t>(j)];
        }
    }
}

}  // namespace quiver
