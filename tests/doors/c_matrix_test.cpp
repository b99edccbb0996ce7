// SPDX-License-Identifier: BSD-3-Clause
// Tests of the matrices of the C interface: CSR arrays of all types, adjoints, new values, errors.
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/scalar.hpp"
#include "tests/doors/c_interface_support.hpp"

namespace quiver::test {
namespace {

/// Checks Y = 2 A X + 3 Y and Y = 2 A^H X + 3 Y for a rows x cols matrix of small integers, from
/// CSR arrays with the given index width and base. The columns of a row are in descending order.
template <class T, class Index>
void check_products(CInterface& test, quiver_type type, Index base, std::int64_t rows,
                    std::int64_t cols) {
    const RowMap range = RowMap::by_rows(test.cpp.comm(), rows);
    const RowMap domain = RowMap::by_rows(test.cpp.comm(), cols);
    const auto small = [](std::int64_t number) {
        const auto real = static_cast<float>(number % 5 - 2);
        if constexpr (is_complex_v<T>) {
            return T(real, static_cast<float>(number % 3 - 1));
        } else {
            return T(real);
        }
    };
    const auto entry = [&](std::int64_t i, std::int64_t j) {
        return (i + 2 * j) % 3 == 0 ? small(i + 4 * j) : T(0);
    };
    std::vector<Index> start{base}, column;
    std::vector<T> value;
    for (auto i = range.first_row(); i < range.first_row() + range.local_rows(); ++i) {
        for (std::int64_t j = cols - 1; j >= 0; --j) {
            column.push_back(static_cast<Index>(j) + base);
            value.push_back(entry(i, j));
        }
        start.push_back(static_cast<Index>(column.size()) + base);
    }
    const Placed<Index> start_there(test.cpp, start), column_there(test.cpp, column);
    const Placed<T> value_there(test.cpp, value);
    quiver_csr csr;
    quiver_csr_init(&csr);
    csr.type = type;
    csr.index_bits = 8 * sizeof(Index);
    csr.index_base = static_cast<std::int32_t>(base);
    csr.place = CInterface::place();
    csr.rows = range.local_rows();
    csr.cols = rows == cols ? 0 : domain.local_rows();
    csr.row_start = start_there.data();
    csr.column = column_there.data();
    csr.value = value_there.data();
    const auto a = make<quiver_operator>(
        [&](quiver_operator** made) { return quiver_matrix_create(test.ctx(), &csr, made); });
    EXPECT_EQ(column_there.read(test.cpp), column) << "the caller's arrays stay as they are";
    const auto adjoint = make<quiver_operator>(
        [&](quiver_operator** made) { return quiver_adjoint_create(test.ctx(), a.get(), made); });
    const auto check = [&](const quiver_operator* op, const RowMap& to, const RowMap& from,
                           const auto& entry_of) {
        std::vector<T> x, expected;
        for (auto j = from.first_row(); j < from.first_row() + from.local_rows(); ++j) {
            x.push_back(small(j));
        }
        for (auto i = to.first_row(); i < to.first_row() + to.local_rows(); ++i) {
            T sum(0);
            for (std::int64_t j = 0; j < from.global_rows(); ++j) {
                sum += entry_of(i, j) * small(j);
            }
            expected.push_back(T(2) * sum + T(3));
        }
        const Placed<T> x_there(test.cpp, x), y_there(test.cpp, std::vector<T>(expected.size(), 1));
        const auto block = [&](const Placed<T>& there, const RowMap& map) {
            return quiver_block_of(CInterface::place(), type, there.data(), map.local_rows(), 1);
        };
        const quiver_block x_block = block(x_there, from), y_block = block(y_there, to);
        ASSERT_EQ(quiver_spmm(test.ctx(), op, quiver_real(2), &x_block, quiver_real(3), &y_block),
                  QUIVER_OK)
            << quiver_last_message();
        EXPECT_EQ(y_there.read(test.cpp), expected);
    };
    check(a.get(), range, domain, entry);
    check(adjoint.get(), domain, range,
          [&](std::int64_t i, std::int64_t j) { return conjugate(entry(j, i)); });
    if (rows != cols) {
        quiver_eigen_result* result = nullptr;
        EXPECT_EQ(quiver_eigensolve(test.ctx(), a.get(), nullptr, &result), QUIVER_ERROR_SHAPE);
        EXPECT_NE(std::string(quiver_last_message()).find("must be square"), std::string::npos);
    }
}

TEST_F(CInterface, TakesCsrArraysOfAllTypesIndexWidthsAndBases) {
    for (const int base : {0, 1}) {
        for (const auto& [rows, cols] : {std::pair{23, 23}, std::pair{13, 40}, std::pair{40, 13}}) {
            check_products<float, std::int32_t>(*this, QUIVER_S, base, rows, cols);
            check_products<double, std::int64_t>(*this, QUIVER_D, base, rows, cols);
            check_products<std::complex<float>, std::int64_t>(*this, QUIVER_C, base, rows, cols);
            check_products<std::complex<double>, std::int32_t>(*this, QUIVER_Z, base, rows, cols);
        }
    }
}

TEST_F(CInterface, ReplacedValuesChangeTheEigenvalues) {
    const int n = 30;
    const auto a = tridiagonal(n, 2, -1);
    const RowMap map = RowMap::by_rows(cpp.comm(), n);
    std::vector<double> value;
    for (std::int64_t i = map.first_row(); i < map.first_row() + map.local_rows(); ++i) {
        for (std::int64_t k = std::max<std::int64_t>(0, i - 1);
             k <= std::min<std::int64_t>(n - 1, i + 1); ++k) {
            value.push_back(k == i ? 5 : -2);
        }
    }
    const Placed<double> there(cpp, value);
    const auto replace = [&](const void* values, std::size_t count, quiver_place where) {
        return quiver_matrix_replace_values(ctx(), a.get(), QUIVER_D, values,
                                            static_cast<std::int64_t>(count), where);
    };
    for (const bool in_place : {false, true}) {
        ASSERT_EQ(in_place ? replace(there.data(), value.size(), place())
                           : replace(value.data(), value.size(), QUIVER_HOST),
                  QUIVER_OK)
            << quiver_last_message();
        const auto result = solve(a.get(), eigen_options(3));
        const quiver_eigen_info info = info_of(result);
        for (int j = 0; j < 3; ++j) {
            EXPECT_NEAR(info.values[j], exact(n, 5, -2, j), 1e-8);
        }
    }
    expect_error(replace(value.data(), value.size() - 1, QUIVER_HOST), QUIVER_ERROR_SHAPE,
                 "new values");
    expect_error(replace(nullptr, value.size(), QUIVER_HOST), QUIVER_ERROR_INPUT, "null pointer");
    expect_error(
        quiver_matrix_replace_values(ctx(), a.get(), QUIVER_Z, value.data(), 1, QUIVER_HOST),
        QUIVER_ERROR_SHAPE, "another scalar type");
    value.back() = std::numeric_limits<double>::infinity();
    expect_error(replace(value.data(), value.size(), QUIVER_HOST), QUIVER_ERROR_INPUT,
                 "not finite");
}

TEST_F(CInterface, WrongMatricesAreRefused) {
    const auto make_csr = [&](std::vector<int> start, std::vector<int> column,
                              std::vector<double> value, int base) {
        quiver_csr csr;
        quiver_csr_init(&csr);
        csr.type = QUIVER_D;
        csr.index_bits = 32;
        csr.index_base = base;
        csr.rows = static_cast<std::int64_t>(start.size()) - 1;
        csr.row_start = start.data();
        csr.column = column.data();
        csr.value = value.data();
        quiver_operator* a = nullptr;
        const quiver_status status = quiver_matrix_create(ctx(), &csr, &a);
        return std::pair(status, Handle<quiver_operator>(a));
    };
    // Not symmetric.
    const auto [status, a] = make_csr({0, 2, 3}, {0, 1, 1}, {1, 2, 1}, 0);
    ASSERT_EQ(status, QUIVER_OK) << quiver_last_message();
    EXPECT_EQ(solve(a.get(), eigen_options(1), QUIVER_ERROR_INPUT), nullptr);
    EXPECT_NE(std::string(quiver_last_message()).find("not Hermitian"), std::string::npos);

    expect_error(make_csr({0, 1, 2}, {0, 1 << 20}, {1, 2}, 0).first, QUIVER_ERROR_INPUT, "1048576");
    expect_error(make_csr({0, 1, 2}, {0, 1}, {1, 2}, 1).first, QUIVER_ERROR_INPUT, "begins with 0");
    expect_error(make_csr({0, 1, 2}, {0, 1}, {1, 2}, 2).first, QUIVER_ERROR_INPUT,
                 "index_base = 2");
    quiver_csr csr;
    quiver_csr_init(&csr);
    quiver_operator* none = nullptr;
    expect_error(quiver_matrix_create(ctx(), &csr, &none), QUIVER_ERROR_INPUT, "index_bits = 0");
    csr.index_bits = 64;
    csr.type = 4;
    expect_error(quiver_matrix_create(ctx(), &csr, &none), QUIVER_ERROR_INPUT, "type = 4");
}

}  // namespace
}  // namespace quiver::test
