// SPDX-License-Identifier: BSD-3-Clause
// Tests the default Operator::apply_fused, which combines apply() with column operations.
#include "kernels/operator.hpp"

#include <gtest/gtest.h>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

/// diag(1, 2, ..., 7, 1, 2, ...), applied in host memory.
template <class T>
class Diagonal final : public Operator<T> {
  public:
    explicit Diagonal(RowMap map) : map_(std::move(map)) {}
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        ++applications;
        Global<T> values(x.rows, x.cols);
        const BlockView<T> view(values.values.data(), x.rows, x.cols, x.cols);
        copy(ctx, x, view);
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int j = 0; j < x.cols; ++j) {
                values(i, j) *= entry(map_.first_row() + i);
            }
        }
        copy(ctx, view, y);
    }
    static real_t<T> entry(std::int64_t row) { return static_cast<real_t<T>>(1 + row % 7); }

    int applications = 0;

  private:
    RowMap map_;
};

template <class T>
class DefaultApplyFused : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();

    /// All numbers are small integers, so that every order of operations is exact.
    void check(int width, T alpha, T beta, std::size_t shifts, bool with_dots) {
        constexpr std::int64_t rows = 41;
        const RowMap map = uneven_map(ctx, rows);
        Diagonal<T> diagonal(map);
        const auto x = integer_global<T>(generator, rows, width);
        const auto old = beta == T(0) ? poisoned_global<T>(rows, width)
                                      : integer_global<T>(generator, rows, width);
        std::vector<T> shift(shifts);
        std::generate(shift.begin(), shift.end(), [&] { return integer_value<T>(generator); });
        const auto size = static_cast<std::size_t>(width);
        std::vector<T> yy(with_dots ? size : 0);
        std::vector<T> xy(with_dots ? size : 0);
        std::vector<T> xx(with_dots ? size : 0);
        TestBlock<T> x_block(ctx, x, map, layouts[1]);
        TestBlock<T> y_block(ctx, old, map, layouts[2]);

        diagonal.apply_fused(ctx, x_block.view(), y_block.view(), {alpha, beta, shift, yy, xy, xx});

        x_block.expect_unchanged();
        Global<T> expected(map.local_rows(), width);
        std::vector<wide_t<T>> expected_yy(size);
        std::vector<wide_t<T>> expected_xy(size);
        std::vector<wide_t<T>> expected_xx(size);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int j = 0; j < width; ++j) {
                const auto at = static_cast<std::size_t>(j);
                const wide_t<T> s(shifts == 0 ? T(0) : shift[shifts == 1 ? 0 : at]);
                const wide_t<T> entry(Diagonal<T>::entry(i));
                wide_t<T> y = wide_t<T>(alpha) * (entry - s) * wide_t<T>(x(i, j));
                if (beta != T(0)) {
                    y += wide_t<T>(beta) * wide_t<T>(old(i, j));
                }
                expected_yy[at] += reference::conjugate(y) * y;
                const wide_t<T> x_element(x(i, j));
                expected_xy[at] += reference::conjugate(x_element) * y;
                expected_xx[at] += reference::conjugate(x_element) * x_element;
                if (i >= map.first_row() && i < map.first_row() + map.local_rows()) {
                    expected(i - map.first_row(), j) = static_cast<T>(y);
                }
            }
        }
        expect_equal(y_block.result(), expected);
        for (std::size_t j = 0; j < yy.size(); ++j) {
            EXPECT_EQ(wide_t<T>(yy[j]), expected_yy[j]);
            EXPECT_EQ(wide_t<T>(xy[j]), expected_xy[j]);
            EXPECT_EQ(wide_t<T>(xx[j]), expected_xx[j]);
        }
        EXPECT_LE(diagonal.applications, 1);
    }
};
TYPED_TEST_SUITE(DefaultApplyFused, Scalars, ScalarName);

TYPED_TEST(DefaultApplyFused, ComposesShiftCoefficientsAndDots) {
    using T = TypeParam;
    for (const int width : {1, 3, 8}) {
        for (const T alpha : {T(0), T(1), T(-2)}) {
            for (const T beta : {T(0), T(1), T(3)}) {
                for (const int shifts : {0, 1, width}) {
                    this->check(width, alpha, beta, static_cast<std::size_t>(shifts), true);
                    this->check(width, alpha, beta, static_cast<std::size_t>(shifts), false);
                }
            }
        }
    }
}

TYPED_TEST(DefaultApplyFused, RejectsShapesThatDisagree) {
    using T = TypeParam;
    const RowMap map = RowMap::by_rows(this->ctx.comm(), 20);
    Diagonal<T> diagonal(map);
    TestBlock<T> x(this->ctx, Global<T>(20, 3), map, layouts[0]);
    TestBlock<T> y(this->ctx, Global<T>(20, 3), map, layouts[0]);
    const std::vector<T> two(2);
    std::vector<T> result(2);
    EXPECT_THROW(diagonal.apply_fused(this->ctx, x.view(), x.view(), {}), ShapeError);
    EXPECT_THROW(diagonal.apply_fused(this->ctx, x.view(), y.view().columns(0, 2), {}), ShapeError);
    EXPECT_THROW(diagonal.apply_fused(this->ctx, x.view(), y.view(), {T(1), T(0), two, {}, {}}),
                 ShapeError);
    EXPECT_THROW(diagonal.apply_fused(this->ctx, x.view(), y.view(), {T(1), T(0), {}, result, {}}),
                 ShapeError);
    EXPECT_THROW(
        diagonal.apply_fused(this->ctx, x.view(), y.view(), {T(1), T(0), {}, {}, {}, result}),
        ShapeError);
    EXPECT_EQ(diagonal.applications, 0);
}

}  // namespace
}  // namespace quiver::test
