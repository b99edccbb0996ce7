// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/matrix_storage.hpp"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstddef>
#include <limits>
#include <numeric>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/device_storage.hpp"
#include "kernels/sparse/matrix_arrays.hpp"

namespace quiver {
namespace {

/// Calls use(row, first entry, end of the chunk) for all slots of a part, whose entries are p.chunk
/// apart.
template <class Use>
void for_each_slot(const MatrixStorage& storage, const SparseLayout::Part& p, int threads,
                   Use&& use) {
    const SpmmvRowList list = storage.list_of(p);
    const std::int64_t* start = storage.start.as<std::int64_t>() + p.first_chunk;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t s = 0; s < p.rows; ++s) {
        const std::int64_t row = list.empty() ? p.first_slot + s : list.row_of(s);
        use(static_cast<std::size_t>(row), start[s / p.chunk] + s % p.chunk,
            start[s / p.chunk + 1]);
    }
}

template <class T, class Index>
void replace_on_host(Context& ctx, const MatrixStorage& storage, std::int64_t rows,
                     std::int64_t nonzeros, const T* new_value, Index /*width*/) {
    const auto* column = storage.column.as<const Index>();
    T* value = storage.value.as<T>();
    std::vector<std::int64_t> first(static_cast<std::size_t>(rows) + 1, 0);
    for (const SparseLayout::Part& p : storage.part) {
        for_each_slot(storage, p, ctx.threads(),
                      [&](std::size_t row, std::int64_t e, std::int64_t end) {
                          for (; e < end && column[e] >= 0; e += p.chunk) {
                              ++first[row + 1];
                          }
                      });
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    require_sound_index(first.back() == nonzeros);
    for (const SparseLayout::Part& p : storage.part) {
        for_each_slot(storage, p, ctx.threads(),
                      [&](std::size_t row, std::int64_t e, std::int64_t /*end*/) {
                          for (auto k = first[row]; k < first[row + 1]; ++k, e += p.chunk) {
                              value[e] = new_value[k];
                          }
                      });
    }
}

}  // namespace

void MatrixStorage::arrange(Context& ctx, const SparseLayout& layout, std::int64_t indices) {
    format = layout.format;
    part = layout.part;
    apart = layout.apart;
    count = layout.count;
    stored = layout.stored();
    matrix_entries = layout.matrix_entries();
    wide = indices > std::numeric_limits<std::int32_t>::max();
    start =
        make_array<std::int64_t>(ctx, static_cast<std::int64_t>(layout.start.size()),
                                 "chunk offsets", [&](std::size_t i) { return layout.start[i]; });
    if (ctx.place() == Place::host && format.chunk > 1) {
        full = make_array<std::int32_t>(ctx, static_cast<std::int64_t>(layout.full.size()),
                                        "chunk lengths",
                                        [&](std::size_t i) { return layout.full[i]; });
    }
    const std::vector<std::int64_t> first_rows = layout.list(ctx.threads());
    const auto at = [&](std::size_t i) { return first_rows[i]; };
    list = wide ? make_array<std::int64_t>(ctx, std::ssize(first_rows), "row list", at)
                : make_array<std::int32_t>(ctx, std::ssize(first_rows), "row list", at);
}

SpmmvRowList MatrixStorage::list_of(const SparseLayout::Part& p) const {
    const auto of_part = [&]<class Index>(const Index* all) {
        return all == nullptr ? nullptr : all + p.first_run;
    };
    return {wide ? nullptr : of_part(list.as<const std::int32_t>()),
            wide ? of_part(list.as<const std::int64_t>()) : nullptr,
            std::countr_zero(static_cast<unsigned>(p.run))};
}

template <class T>
void MatrixStorage::replace_values(Context& ctx, std::int64_t rows, std::int64_t nonzeros,
                                   const T* new_value) const {
    if (ctx.place() == Place::host) {
        wide ? replace_on_host(ctx, *this, rows, nonzeros, new_value, std::int64_t{})
             : replace_on_host(ctx, *this, rows, nonzeros, new_value, std::int32_t{});
    } else if constexpr (config::have_cuda) {
        replace_on_device(ctx, *this, rows, nonzeros, new_value);
    }
}

template <class T>
void require_finite(Context& ctx, std::span<const T> value, Place place) {
    bool finite = true;
    if (place == Place::device) {
        if constexpr (config::have_cuda) {
            finite = cuda::values_are_finite(ctx, value.data(), std::ssize(value));
        }
    } else {
#pragma omp parallel for num_threads(ctx.threads()) schedule(static) reduction(&& : finite)
        for (std::size_t k = 0; k < value.size(); ++k) {
            finite = finite && is_finite(value[k]);
        }
    }
    if (!finite) {
        throw InputError("sparse matrix: a new value is not finite");
    }
}

#define QUIVER_INSTANTIATE(T)                                                                   \
    template void MatrixStorage::replace_values(Context&, std::int64_t, std::int64_t, const T*) \
        const;                                                                                  \
    template void require_finite(Context&, std::span<const T>, Place);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
