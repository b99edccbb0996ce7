// SPDX-License-Identifier: BSD-3-Clause
// A context of the C interface, handles and arrays for its tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/device.hpp"
#include "blockvec/row_map.hpp"
#include "c/quiver_mpi.h"
#include "tests/support/test_context.hpp"

namespace quiver::test {

/// Frees handles.
struct Free {
    void operator()(quiver_context* p) const { quiver_context_free(p); }
    void operator()(quiver_operator* p) const { quiver_operator_free(p); }
    void operator()(quiver_eigen_result* p) const { quiver_eigen_result_free(p); }
    void operator()(quiver_linear_result* p) const { quiver_linear_result_free(p); }
};
template <class T>
using Handle = std::unique_ptr<T, Free>;

/// Calls f(&pointer) and returns a handle that owns the created object.
template <class T, class F>
Handle<T> make(F&& f) {
    T* made = nullptr;
    const quiver_status status = f(&made);
    EXPECT_EQ(status, QUIVER_OK) << quiver_last_message();
    return Handle<T>(made);
}

/// A copy of a vector in memory of the caller, in the place under test.
template <class V>
class Placed {
  public:
    Placed(Context& cpp, const std::vector<V>& values)
        : stream_(cpp.stream()),
          buffer_(cpp.allocate(memory_kind(cpp.place()), values.size() * sizeof(V), "a test")),
          size_(values.size()) {
        if (cpp.place() == Place::device) {
            device::copy(buffer_.as<V>(), values.data(), size_ * sizeof(V), stream_);
            cpp.synchronize();
        } else {
            std::copy(values.begin(), values.end(), buffer_.as<V>());
        }
    }
    V* data() const { return buffer_.template as<V>(); }
    std::vector<V> read(Context& cpp) const {
        std::vector<V> values(size_);
        if (cpp.place() == Place::device) {
            device::copy(values.data(), data(), size_ * sizeof(V), stream_);
            cpp.synchronize();
        } else {
            std::copy_n(data(), size_, values.begin());
        }
        return values;
    }

  private:
    Stream stream_;
    Buffer buffer_;
    std::size_t size_;
};

/// A C context on all ranks in the place under test. It uses the stream of a C++ Context, whose
/// allocations serve as the caller's memory.
struct CInterface : testing::Test {
    Context cpp = test::make_context();
    Handle<quiver_context> context = make<quiver_context>([this](quiver_context** made) {
        quiver_context_options options;
        quiver_context_options_init(&options);
        options.place = test_place() == Place::host ? QUIVER_HOST : QUIVER_DEVICE;
        options.device = cpp.device().id;
        options.stream = test_place() == Place::host ? nullptr : cpp.stream();
        quiver_context_options_set_comm(&options, MPI_COMM_WORLD);
        return quiver_context_create(&options, made);
    });
    quiver_context* ctx() const { return context.get(); }
    static quiver_place place() { return static_cast<quiver_place>(test_place()); }

    /// The symmetric n x n matrix with `diagonal` + i step on the diagonal and `beside` next to it.
    Handle<quiver_operator> tridiagonal(int n, double diagonal, double beside, double step = 0) {
        const RowMap map = RowMap::by_rows(cpp.comm(), n);
        std::vector<int> start{0}, column;
        std::vector<double> value;
        for (auto i = static_cast<int>(map.first_row());
             i < static_cast<int>(map.first_row() + map.local_rows()); ++i) {
            for (int k = std::max(0, i - 1); k <= std::min(n - 1, i + 1); ++k) {
                column.push_back(k);
                value.push_back(k == i ? diagonal + step * i : beside);
            }
            start.push_back(static_cast<int>(column.size()));
        }
        quiver_csr csr;
        quiver_csr_init(&csr);
        csr.type = QUIVER_D;
        csr.index_bits = 32;
        csr.rows = map.local_rows();
        csr.row_start = start.data();
        csr.column = column.data();
        csr.value = value.data();
        return make<quiver_operator>(
            [&](quiver_operator** a) { return quiver_matrix_create(ctx(), &csr, a); });
    }
    /// Eigenvalue j of that matrix for step = 0, ascending.
    static double exact(int n, double diagonal, double beside, int j) {
        return diagonal - 2 * std::abs(beside) * std::cos((j + 1) * std::numbers::pi / (n + 1));
    }
    Handle<quiver_eigen_result> solve(const quiver_operator* a, const quiver_eigen_options& options,
                                      quiver_status expected = QUIVER_OK) {
        quiver_eigen_result* result = nullptr;
        const quiver_status status = quiver_eigensolve(ctx(), a, &options, &result);
        EXPECT_EQ(status, expected) << quiver_last_message();
        return Handle<quiver_eigen_result>(result);
    }
    static quiver_eigen_info info_of(const Handle<quiver_eigen_result>& result) {
        quiver_eigen_info info;
        quiver_eigen_info_init(&info);
        EXPECT_EQ(quiver_eigen_result_get(result.get(), &info), QUIVER_OK);
        return info;
    }
};

inline quiver_eigen_options eigen_options(int k) {
    quiver_eigen_options options;
    quiver_eigen_options_init(&options);
    options.k = k;
    return options;
}

/// Checks a status and that the last message has this part.
inline void expect_error(quiver_status status, quiver_status expected, const char* part) {
    EXPECT_EQ(quiver_status_name(status), std::string(quiver_status_name(expected)));
    EXPECT_NE(std::string(quiver_last_message()).find(part), std::string::npos)
        << "'" << quiver_last_message() << "' lacks '" << part << "'";
}

}  // namespace quiver::test
