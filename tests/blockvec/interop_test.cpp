// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/interop.hpp"

#include <complex>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/eigen_interop.hpp"
#include "blockvec/error.hpp"

namespace quiver {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST(Interop, SeesAnEigenMatrixWhereItLies) {
    RowMajor matrix(5, 3);
    const auto view = as_view(matrix);
    EXPECT_EQ(view.rows, 5);
    EXPECT_EQ(view.cols, 3);
    EXPECT_EQ(view.ld, 3);
    EXPECT_EQ(view.place, Place::host);
    for (int i = 0; i < 5; ++i) {
        for (int j = 0; j < 3; ++j) {
            view(i, j) = 10 * i + j;
            EXPECT_EQ(matrix(i, j), 10 * i + j);
        }
    }
}

TEST(Interop, SeesBlocksAndMapsWithTheirStride) {
    RowMajor matrix = RowMajor::Random(6, 9);
    const auto columns = as_view(matrix.middleCols(4, 3));
    EXPECT_EQ(columns.ld, 9);
    EXPECT_EQ(&columns(5, 2), &matrix(5, 6));
    const auto rows = as_view(matrix.middleRows(2, 3));
    EXPECT_EQ(&rows(0, 0), &matrix(2, 0));
    EXPECT_EQ(rows.rows, 3);

    std::vector<std::complex<float>> memory(40);
    Eigen::Map<Eigen::Matrix<std::complex<float>, -1, -1, Eigen::RowMajor>, 0, Eigen::OuterStride<>>
        map(memory.data(), 5, 3, Eigen::OuterStride<>(8));
    const auto mapped = as_view(map);
    EXPECT_EQ(mapped.ld, 8);
    EXPECT_EQ(&mapped(4, 2), &memory[4 * 8 + 2]);
}

TEST(Interop, RefusesRowsThatAreNotContiguous) {
    std::vector<double> memory(40);
    using Map = Eigen::Map<RowMajor, 0, Eigen::Stride<-1, -1>>;
    for (const int rows : {1, 3}) {
        Map map(memory.data(), rows, 4, Eigen::Stride<-1, -1>(8, 2));
        EXPECT_THROW(as_view(map), ShapeError) << rows;
    }
    Map column(memory.data(), 3, 1, Eigen::Stride<-1, -1>(8, 2));
    EXPECT_EQ(as_view(column).ld, 8);
}

TEST(Interop, SeesAVectorAsOneColumn) {
    Eigen::VectorXd vector(7);
    const auto view = as_view(vector);
    EXPECT_EQ(view.rows, 7);
    EXPECT_EQ(view.cols, 1);
    EXPECT_EQ(&view(6, 0), &vector(6));
}

template <class View>
constexpr bool is_view_of_const = std::is_same_v<View, BlockView<const double>>;

TEST(Interop, SeesConstMatricesMapsAndBlocksWithoutWriteAccess) {
    RowMajor writable = RowMajor::Random(6, 9);
    const RowMajor& matrix = writable;
    const auto whole = as_view(matrix);
    EXPECT_TRUE(is_view_of_const<std::remove_const_t<decltype(whole)>>);
    EXPECT_EQ(whole.data, matrix.data());
    EXPECT_EQ(whole.rows, 6);
    EXPECT_EQ(whole.cols, 9);

    const auto columns = as_view(matrix.middleCols(4, 3));
    EXPECT_TRUE(is_view_of_const<std::remove_const_t<decltype(columns)>>);
    EXPECT_EQ(columns.ld, 9);
    EXPECT_EQ(&columns(5, 2), &matrix(5, 6));

    const Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>> map(matrix.data(), 3, 2,
                                                                  Eigen::OuterStride<>(9));
    const auto mapped = as_view(map);
    EXPECT_TRUE(is_view_of_const<std::remove_const_t<decltype(mapped)>>);
    EXPECT_EQ(&mapped(2, 1), &matrix(2, 1));

    const Eigen::VectorXd vector = Eigen::VectorXd::Random(7);
    EXPECT_EQ(&as_view(vector)(6, 0), &vector(6));
    EXPECT_FALSE(is_view_of_const<decltype(as_view(writable))>);
    EXPECT_FALSE(is_view_of_const<decltype(as_view(writable.middleCols(4, 3)))>);
}

TEST(Interop, ShowsAViewToEigen) {
    std::vector<double> memory(21, -1.0);
    const BlockView<double> view(memory.data(), 3, 4, 7);
    as_eigen(view).setConstant(2.0);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 7; ++j) {
            EXPECT_EQ(memory[static_cast<std::size_t>(i * 7 + j)], j < 4 ? 2.0 : -1.0);
        }
    }
    EXPECT_EQ(as_eigen(BlockView<const double>(view)).sum(), 24.0);
    BlockView<double> elsewhere = view;
    elsewhere.place = Place::device;
    EXPECT_THROW(as_eigen(elsewhere), ShapeError);
}

TEST(Interop, TakesRawPointers) {
    std::vector<float> memory(12);
    const auto exact = host_view(memory.data(), 4, 3);
    EXPECT_EQ(&exact(3, 2), &memory[11]);
    const auto padded = host_view(static_cast<const float*>(memory.data()), 2, 3, 5);
    EXPECT_EQ(&padded(1, 2), &memory[7]);
    EXPECT_EQ(device_view(memory.data(), 4, 3).place, Place::device);
}

}  // namespace
}  // namespace quiver
