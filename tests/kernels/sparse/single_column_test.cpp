// SPDX-License-Identifier: BSD-3-Clause
// Tests of sparse products with one contiguous column, of which eight entries of a row may be
// multiplied at once, against sums in long double.
#include <algorithm>
#include <numeric>
#include <optional>

#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/assemble.hpp"
#include "tests/kernels/sparse/sparse_products.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

template <class T>
class SingleColumn : public ::testing::Test {};
using EveryScalar = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SingleColumn, EveryScalar);

/// Rows without entries, with up to 20, and with all columns.
Dense rows_of_many_lengths(std::mt19937_64& generator, std::int64_t n, bool integers) {
    Dense dense(n, n);
    std::vector<std::int64_t> columns(static_cast<std::size_t>(n));
    std::iota(columns.begin(), columns.end(), 0);
    for (std::int64_t row = 0; row < n; ++row) {
        std::shuffle(columns.begin(), columns.end(), generator);
        const auto some = static_cast<std::int64_t>(generator() % 21);
        const std::int64_t length = generator() % 16 == 0 ? n : std::min(n, some);
        for (std::int64_t k = 0; k < length; ++k) {
            dense(row, columns[static_cast<std::size_t>(k)]) = random_value(generator, integers);
        }
    }
    return dense;
}

template <class T>
SparseMatrix<T> compressed(Context& ctx, const Dense& dense) {
    return SparseMatrix<T>(ctx,
                           rows_from_callback<T>(ctx.comm(), dense.rows, Symmetry::general,
                                                 [&](std::int64_t row, RowEntries<T>& entries) {
                                                     for (std::int64_t c = 0; c < dense.cols; ++c) {
                                                         if (dense(row, c) != 0.0) {
                                                             entries.add(c,
                                                                         narrow<T>(dense(row, c)));
                                                         }
                                                     }
                                                 }),
                           {.kind = SparseFormat::compressed_rows});
}

/// A column of which each rank has its rows, with the same global numbers on all ranks.
template <class T>
struct Column {
    Column(Context& ctx, const RowMap& map, const std::vector<T>& global)
        : block(ctx, map, 1), host(static_cast<std::size_t>(map.local_rows())) {
        std::copy_n(global.begin() + map.first_row(), map.local_rows(), host.begin());
        copy(ctx, view_of_host(), block.view());
        EXPECT_EQ(block.view().ld, 1);
    }
    BlockView<const T> view_of_host() const {
        return {host.data(), block.rows(), 1, 1, Place::host};
    }
    const std::vector<T>& result(Context& ctx) {
        copy(ctx, std::as_const(block).view(),
             BlockView<T>(host.data(), block.rows(), 1, 1, Place::host));
        return host;
    }
    BlockVector<T> block;
    std::vector<T> host;
};

/// Y = alpha (A - shift) X + beta Y and x^H y, with and without checked indices: equal bits, and
/// within the rounding error of the oracle, or exact for integers.
template <class T>
void check_single_column(Context& ctx, std::mt19937_64& generator, bool integers, bool fused) {
    const auto n = static_cast<std::int64_t>(1 + generator() % 150);
    Dense dense = rows_of_many_lengths(generator, n, integers);
    for (std::complex<double>& value : dense.values) {
        value = is_complex_v<T> ? value : value.real();
    }
    SparseMatrix<T> a = compressed<T>(ctx, dense);
    const std::vector<T> x = random_block<T>(generator, n, 1, integers);
    const std::vector<T> old = random_block<T>(generator, n, 1, integers);
    const T alpha = narrow<T>({2, -1});
    const T beta = fused ? narrow<T>({-3, 2}) : T(0);
    const std::vector<T> shifts(fused ? 1 : 0, narrow<T>({1, 2}));
    Column<T> from(ctx, a.row_map(), x);
    std::vector<T> unchecked;
    for (const bool checked : {false, true}) {
        std::optional<decltype(a.check_indices())> checks;
        if (checked) {
            checks.emplace(a.check_indices());
        }
        Column<T> to(ctx, a.row_map(), old);
        std::vector<T> xy(fused ? 1 : 0);
        spmmv(ctx, a, std::as_const(from.block).view(), to.block.view(),
              {alpha, beta, shifts, {}, xy, {}});
        const std::vector<T>& y = to.result(ctx);
        Wide dot = 0;
        long double size = 0;
        for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
            const std::int64_t row = a.row_map().first_row() + i;
            const auto at = [&](std::int64_t r) { return widen(x[static_cast<std::size_t>(r)]); };
            RowProduct product(dense, row, at);
            if (fused) {
                product.add(-widen(shifts[0]), at(row));
            }
            const Wide last = widen(beta) * widen(old[static_cast<std::size_t>(row)]);
            const Wide expected = widen(alpha) * product.sum + last;
            const long double bound =
                4 * epsilon_v<T> *
                ((std::sqrt(product.terms) + 2) * std::abs(widen(alpha)) * product.size +
                 2 * std::abs(last));
            const Wide found = widen(y[static_cast<std::size_t>(i)]);
            EXPECT_LE(std::abs(found - expected), integers ? 0 : bound)
                << "row " << row << " of " << n << (checked ? ", checked" : "");
            dot += std::conj(at(row)) * found;
            size += std::abs(at(row)) * std::abs(found);
        }
        std::complex<double> sums[] = {
            {static_cast<double>(dot.real()), static_cast<double>(dot.imag())},
            static_cast<double>(size)};
        ctx.comm().sum(std::span<std::complex<double>>(sums));
        if (fused) {
            EXPECT_LE(std::abs(widen(xy[0]) - Wide(sums[0].real(), sums[0].imag())),
                      integers ? 0 : 100 * epsilon_v<T> * sums[1].real());
        }
        if (checked) {
            EXPECT_TRUE(std::equal(y.begin(), y.end(), unchecked.begin()));
        }
        unchecked = y;
    }
}

TYPED_TEST(SingleColumn, RowsOfAllLengthsAgreeWithTheOracle) {
    Context ctx = make_context();
    auto generator = make_generator();
    for (int trial = 0; trial < 6; ++trial) {
        for (const bool integers : {false, true}) {
            for (const bool fused : {false, true}) {
                check_single_column<TypeParam>(ctx, generator, integers, fused);
            }
        }
    }
}

}  // namespace
}  // namespace quiver::test
