// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/pencil/identity_mass.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

template <class T>
CsrRows<T> identity_rows(const RowMap& map) {
    CsrRows<T> rows;
    rows.map = map;
    rows.global_cols = map.global_rows();
    rows.symmetry = Symmetry::symmetric;
    for (std::int64_t row = 0; row < map.local_rows(); ++row) {
        rows.column.push_back(map.first_row() + row);
        rows.value.push_back(T(1));
        rows.row_start.push_back(row + 1);
    }
    return rows;
}

}  // namespace

SizeRange size_range(const Comm& comm, const std::vector<double>& sizes) {
    double least = std::numeric_limits<double>::infinity();
    double largest = 0;
    for (const double size : sizes) {
        largest = std::max(largest, size);
        least = size > 0 ? std::min(least, size) : least;
    }
    return {-comm.max(-least), comm.max(largest)};
}

template <class T>
double stiff_row_ratio() {
    return 1 / std::sqrt(static_cast<double>(epsilon_v<T>));
}

template <class T>
bool is_stiff(Context& ctx, const Operator<T>& a) {
    const auto* const stored = dynamic_cast<const SparseMatrix<T>*>(&a);
    if (stored == nullptr) {
        return false;
    }
    std::vector<double> sizes;
    ctx.comm().agree([&] {
        sizes.resize(static_cast<std::size_t>(a.row_map().local_rows()), 0.0);
        stored->for_each_entry(ctx, [&](std::size_t row, std::int64_t, T value) {
            sizes[row] = std::max(sizes[row], static_cast<double>(std::abs(value)));
        });
    });
    const SizeRange range = size_range(ctx.comm(), sizes);
    return range.largest > range.least * stiff_row_ratio<T>();
}

template <class T>
IdentityMass<T>::IdentityMass(Context& ctx, const EigenProblem<T>& problem) : problem_(problem) {
    if (problem.b == nullptr && is_stiff(ctx, problem.a)) {
        b_.emplace(ctx, identity_rows<T>(problem.a.row_map()));
        problem_.b = &*b_;
    }
}

#define QUIVER_INSTANTIATE(T)                             \
    template double stiff_row_ratio<T>();                 \
    template bool is_stiff(Context&, const Operator<T>&); \
    template class IdentityMass<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
