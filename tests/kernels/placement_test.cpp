// SPDX-License-Identifier: BSD-3-Clause
// Tests that the same call on the same values gives the same bits for any position of its operands
// in host memory: far apart or next to each other, at any offset from a cache line.
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/column_ops.hpp"
#include "kernels/mtsm.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
class Placement : public ::testing::Test {
  protected:
    using Call = std::function<void(BlockView<T> x, BlockView<T> y)>;

    /// Runs `call` on two neighbouring blocks of `rows` rows: separate blocks and columns of one
    /// block, in either order, with several gaps. Expects the same bits in both blocks as if Y were
    /// far away.
    void expect_same_bits(std::int64_t rows, int x_cols, int y_cols, const Call& call) {
        const Global<T> x_values = random_global<T>(generator_, rows, x_cols);
        const Global<T> y_values = random_global<T>(generator_, rows, y_cols);
        const auto run = [&](BlockView<T> x, BlockView<T> y) {
            const auto all = [&](auto&& element) {
                for (std::int64_t i = 0; i < rows; ++i) {
                    for (int j = 0; j < x_cols + y_cols; ++j) {
                        j < x_cols ? element(x(i, j), x_values(i, j))
                                   : element(y(i, j - x_cols), y_values(i, j - x_cols));
                    }
                }
            };
            all([](T& here, const T& value) { here = value; });
            call(x, y);
            std::vector<T> result;
            all([&](const T& here, const T&) { result.push_back(here); });
            return result;
        };
        std::vector<T> memory(static_cast<std::size_t>(rows * (x_cols + y_cols + 16)) + 64);
        std::vector<T> elsewhere(memory.size() + 4096);
        for (std::size_t offset = 0; offset < 5; ++offset) {
            for (const int gap : {0, 1, 2, 3, 4, 5, 7, 8, 11, 16}) {
                for (const bool x_first : {true, false}) {
                    for (const bool columns : {false, true}) {
                        const int ld = x_cols + y_cols + gap;
                        const int ldx = columns ? ld : x_cols;
                        const int ldy = columns ? ld : y_cols;
                        T* const first = memory.data() + offset;
                        T* const second =
                            first + gap +
                            (x_first ? x_cols : y_cols) * (columns ? std::int64_t{1} : rows);
                        const BlockView<T> x(x_first ? first : second, rows, x_cols, ldx);
                        const BlockView<T> y(x_first ? second : first, rows, y_cols, ldy);
                        const std::vector<T> near = run(x, y);
                        const std::vector<T> apart =
                            run(x, {elsewhere.data() + 2048, rows, y_cols, ldy});
                        ASSERT_EQ(std::memcmp(near.data(), apart.data(), near.size() * sizeof(T)),
                                  0)
                            << rows << " rows of " << x_cols << " and " << y_cols << ", offset "
                            << offset << ", gap " << gap << (x_first ? ", X first" : ", Y first")
                            << (columns ? ", columns of one block" : "");
                    }
                }
            }
        }
    }
    std::int64_t some_rows() {
        return std::array<std::int64_t, 6>{1, 2, 7, 31, 100, 260}[generator_() % 6];
    }

    Context ctx_{Comm(MPI_COMM_SELF)};
    std::mt19937_64 generator_ = make_generator();
};
TYPED_TEST_SUITE(Placement, Scalars, ScalarName);

TYPED_TEST(Placement, Axpby) {
    using T = TypeParam;
    for (const int n : {1, 2, 3, 4, 5, 8, 17}) {
        const T a = random_value<T>(this->generator_);
        const T b = random_value<T>(this->generator_);
        const std::vector<T> as(static_cast<std::size_t>(n), a);
        const std::vector<T> bs(static_cast<std::size_t>(n), b);
        const std::int64_t rows = this->some_rows();
        for (const T beta : {b, T(0)}) {
            this->expect_same_bits(rows, n, n, [&](BlockView<T> x, BlockView<T> y) {
                axpby(this->ctx_, a, BlockView<const T>(x), beta, y);
            });
        }
        this->expect_same_bits(rows, n, n, [&](BlockView<T> x, BlockView<T> y) {
            axpby(this->ctx_, std::span<const T>(as), BlockView<const T>(x), std::span<const T>(bs),
                  y);
        });
    }
}

TYPED_TEST(Placement, Dots) {
    using T = TypeParam;
    for (const int n : {1, 2, 3, 4, 5, 8, 17}) {
        std::vector<T> sums(static_cast<std::size_t>(n));
        this->expect_same_bits(this->some_rows(), n, n, [&](BlockView<T> x, BlockView<T> y) {
            dots(this->ctx_, BlockView<const T>(x), BlockView<const T>(y), std::span<T>(sums));
            std::copy(sums.begin(), sums.end(), &y(0, 0));
        });
    }
}

TYPED_TEST(Placement, Products) {
    using T = TypeParam;
    for (const int m : {1, 3, 4, 9}) {
        for (const int n : {1, 2, 4, 7}) {
            SmallMatrix<T> c(m, n);
            for (int i = 0; i < m; ++i) {
                for (int j = 0; j < n; ++j) {
                    c(i, j) = random_value<T>(this->generator_);
                }
            }
            const T alpha = random_value<T>(this->generator_);
            const T beta = random_value<T>(this->generator_);
            const std::int64_t rows = this->some_rows();
            this->expect_same_bits(rows, m, n, [&](BlockView<T> x, BlockView<T> y) {
                tsmm(this->ctx_, alpha, BlockView<const T>(x), c, beta, y);
            });
            this->expect_same_bits(rows, m, n, [&](BlockView<T> x, BlockView<T> y) {
                SmallMatrix<T> sum(m, n);
                tsmttsm(this->ctx_, alpha, BlockView<const T>(x), BlockView<const T>(y), T(0), sum);
                y(0, 0) = sum(m - 1, n - 1);
            });
            this->expect_same_bits(rows, m, n, [&](BlockView<T> x, BlockView<T> y) {
                std::vector<T> result(static_cast<std::size_t>(n * m), beta);
                const MatrixOrder order = MatrixOrder::row_major;
                mtsm_adjoint(this->ctx_, alpha,
                             MatrixView<const T>{y.data, rows, n, y.ld, order, Place::host},
                             MatrixView<const T>{x.data, rows, m, x.ld, order, Place::host}, beta,
                             MatrixView<T>{result.data(), n, m, m, order, Place::host});
                y(0, 0) = result.back();
            });
        }
    }
}

}  // namespace
}  // namespace quiver::test
