// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/entry_order.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <functional>
#include <numeric>
#include <tuple>

#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

/// A scalar in the order in which duplicates are summed.
template <class T>
auto ascending_key(T value) {
    if constexpr (is_complex_v<T>) {
        return std::tuple(value.real(), value.imag());
    } else {
        return value;
    }
}

}  // namespace

template <class Index>
EntryOrder EntryOrder::of(std::span<const Index> row_start, std::span<const Index> column,
                          int threads) {
    EntryOrder order;
    const std::int64_t rows = std::ssize(row_start) - 1;
    const auto begin_of = [&](std::int64_t row) {
        return static_cast<std::ptrdiff_t>(row_start[static_cast<std::size_t>(row)] - row_start[0]);
    };
    bool sorted = true;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(&& : sorted)
    for (std::int64_t i = 0; i < rows; ++i) {
        const auto end = column.begin() + begin_of(i + 1);
        sorted = sorted && std::adjacent_find(column.begin() + begin_of(i), end,
                                              std::greater_equal<>()) == end;
    }
    if (sorted) {
        return order;
    }
    order.source.resize(column.size());
    std::iota(order.source.begin(), order.source.end(), std::int64_t{0});
    const auto column_of = [&](std::int64_t entry) {
        return column[static_cast<std::size_t>(entry)];
    };
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t i = 0; i < rows; ++i) {
        const auto begin = order.source.begin() + begin_of(i);
        const auto end = order.source.begin() + begin_of(i + 1);
        std::sort(begin, end, [&](std::int64_t left, std::int64_t right) {
            return std::tuple(column_of(left), left) < std::tuple(column_of(right), right);
        });
        // From the end, so that the entry before is still a number and not a complement.
        for (auto at = end; at - begin > 1; --at) {
            if (column_of(at[-1]) == column_of(at[-2])) {
                at[-1] = ~at[-1];
            }
        }
    }
    return order;
}

template <class T>
std::vector<T> EntryOrder::apply(std::span<const T> value) const {
    std::vector<T> result;
    result.reserve(source.size());
    std::vector<T> equal;
    for (std::size_t i = 0; i < source.size();) {
        equal.assign(1, value[static_cast<std::size_t>(source[i++])]);
        for (; i < source.size() && source[i] < 0; ++i) {
            equal.push_back(value[static_cast<std::size_t>(~source[i])]);
        }
        std::sort(equal.begin(), equal.end(),
                  [](T left, T right) { return ascending_key(left) < ascending_key(right); });
        result.push_back(std::accumulate(equal.begin() + 1, equal.end(), equal.front()));
    }
    return result;
}

template EntryOrder EntryOrder::of(std::span<const std::int32_t>, std::span<const std::int32_t>,
                                   int);
template EntryOrder EntryOrder::of(std::span<const std::int64_t>, std::span<const std::int64_t>,
                                   int);
#define QUIVER_INSTANTIATE(T) template std::vector<T> EntryOrder::apply(std::span<const T>) const;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
