// SPDX-License-Identifier: BSD-3-Clause
// Support for tests of sparse matrices: distributed rows as one dense matrix, temporary files.
#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "blockvec/comm.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "tests/support/shared_folder.hpp"

namespace quiver::test {

using Wide = std::complex<long double>;

template <class T>
Wide widen(T value) {
    if constexpr (is_complex_v<T>) {
        return {value.real(), value.imag()};
    } else {
        return {value, 0};
    }
}

/// `value` in type T; its real part if T is real.
template <class T>
T narrow(std::complex<double> value) {
    if constexpr (is_complex_v<T>) {
        return T(static_cast<real_t<T>>(value.real()), static_cast<real_t<T>>(value.imag()));
    } else {
        return static_cast<T>(value.real());
    }
}

/// A row-major matrix in complex double, which holds the values of every scalar type exactly.
struct Dense {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::vector<std::complex<double>> values;

    Dense(std::int64_t rows_, std::int64_t cols_)
        : rows(rows_), cols(cols_), values(static_cast<std::size_t>(rows_ * cols_)) {}
    std::complex<double>& operator()(std::int64_t i, std::int64_t j) {
        return values[static_cast<std::size_t>(i * cols + j)];
    }
    std::complex<double> operator()(std::int64_t i, std::int64_t j) const {
        return values[static_cast<std::size_t>(i * cols + j)];
    }
    bool operator==(const Dense&) const = default;
};

/// The whole matrix on every rank; checks that the rows satisfy the rules of CsrRows.
template <class T>
Dense gather_dense(const Comm& comm, const CsrRows<T>& rows) {
    Dense dense(rows.map.global_rows(), rows.global_cols);
    EXPECT_EQ(rows.map.ranks(), comm.size());
    EXPECT_EQ(rows.row_start.size(), static_cast<std::size_t>(rows.map.local_rows()) + 1);
    EXPECT_EQ(rows.row_start.back(), rows.nonzeros());
    EXPECT_EQ(rows.value.size(), rows.column.size());
    for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
        const auto begin = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i)]);
        const auto end = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i) + 1]);
        for (std::size_t k = begin; k < end; ++k) {
            EXPECT_TRUE(k == begin || rows.column[k - 1] < rows.column[k]);
            const Wide value = widen(rows.value[k]);
            dense(rows.map.first_row() + i, rows.column[k]) = {static_cast<double>(value.real()),
                                                               static_cast<double>(value.imag())};
        }
    }
    comm.sum(std::span<std::complex<double>>(dense.values));
    return dense;
}

/// A SharedFolder with a function that writes files.
class TemporaryFolder : public SharedFolder {
  public:
    using SharedFolder::SharedFolder;
    /// Rank 0 writes a file; all ranks return its path once it exists.
    std::string write(const std::string& name, const std::string& bytes) const {
        comm_.barrier();
        if (comm_.rank() == 0) {
            std::ofstream(path(name), std::ios::binary) << bytes;
        }
        comm_.barrier();
        return path(name);
    }
    std::string write_gzip(const std::string& name, const std::string& text) const {
        comm_.barrier();
        if (comm_.rank() == 0) {
            gzFile file = gzopen(path(name).c_str(), "wb1");
            gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
            gzclose(file);
        }
        comm_.barrier();
        return path(name);
    }
};

/// The message of the exception that an action throws; "" if it throws nothing. Collective. The
/// test fails if only some ranks throw.
template <class E, class Action>
std::string message_of(const Comm& comm, Action&& action) {
    std::string message;
    try {
        action();
    } catch (const E& error) {
        message = error.what();
    }
    EXPECT_EQ(comm.sum(std::int64_t{message.empty() ? 0 : 1}) % comm.size(), 0)
        << "only some ranks threw";
    return message;
}

}  // namespace quiver::test
