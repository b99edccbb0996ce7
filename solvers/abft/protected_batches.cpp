// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/protected_batches.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "solvers/abft/operand.hpp"

namespace quiver {
namespace {

/// Number of elements from the first to the last one of a batch, both included.
template <class T>
std::int64_t extent_of(const MatrixBatch<T>& a) {
    const std::int64_t lines = a.order == MatrixOrder::row_major ? a.rows : a.cols;
    const std::int64_t length = a.order == MatrixOrder::row_major ? a.cols : a.rows;
    const std::int64_t one = (lines - 1) * a.ld + length;
    return a.interleaved ? (one - 1) * a.stride + a.count : (a.count - 1) * a.stride + one;
}

void copy_bytes(Context& ctx, void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    if (ctx.place() == Place::device) {
        device::copy(to, from, bytes, ctx.stream());
    } else {
        std::memcpy(to, from, bytes);
    }
}

/// True if the checksum kernels can read an array.
bool is_aligned(const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 8 == 0;
}

/// True if the batch's description is consistent. An inconsistent batch is passed on unchecked, so
/// that the kernel reports the error.
template <class T>
bool is_regular(const Context& ctx, const MatrixBatch<T>& a) {
    const std::int64_t one = static_cast<std::int64_t>(a.rows - 1) * a.ld + a.rows;
    return a.count > 0 && a.rows > 0 && a.rows == a.cols && a.ld >= a.rows && a.data != nullptr &&
           a.pointers == nullptr && a.place == ctx.place() &&
           (a.interleaved ? a.stride >= a.count : a.count == 1 || a.stride >= one);
}

/// Factors, pivots and statuses of one run, with their parities.
template <class T>
struct Factors {
    MatrixBatch<T> a;
    std::span<int> pivots;
    std::span<int> status;

    std::vector<std::uint64_t> parities(Context& ctx) const {
        std::vector<std::uint64_t> all;
        const auto add = [&](const void* data, std::size_t bytes) {
            std::vector<std::uint64_t> one(static_cast<std::size_t>(parity_pieces(bytes)) *
                                           parity_numbers);
            // The arrays of pivots and of statuses need not start at a multiple of 8 bytes.
            const Scratch aligned =
                ctx.scratch(memory_kind(ctx.place()), is_aligned(data) ? 0 : bytes);
            if (!is_aligned(data)) {
                copy_bytes(ctx, aligned.as<void>(), data, bytes);
            }
            parity(ctx, is_aligned(data) ? data : aligned.as<void>(), bytes, one);
            all.insert(all.end(), one.begin(), one.end());
        };
        add(a.data, static_cast<std::size_t>(extent_of(a)) * sizeof(T));
        add(pivots.data(), pivots.size_bytes());
        add(status.data(), status.size_bytes());
        return all;
    }
    void take(Context& ctx, const Factors& other) const {
        copy_bytes(ctx, a.data, other.a.data, static_cast<std::size_t>(extent_of(a)) * sizeof(T));
        copy_bytes(ctx, pivots.data(), other.pivots.data(), pivots.size_bytes());
        copy_bytes(ctx, status.data(), other.status.data(), status.size_bytes());
    }
};

/// Scratch for factors of the same shape and alignment as `like`.
template <class T>
class Twin {
  public:
    Twin(Context& ctx, const Factors<T>& like)
        : batch_(ctx.memory(), memory_kind(ctx.place()),
                 static_cast<std::size_t>(extent_of(like.a)) * sizeof(T) + alignment),
          pivots_(ctx.memory(), memory_kind(ctx.place()), like.pivots.size_bytes()),
          status_(ctx.memory(), memory_kind(ctx.place()), like.status.size_bytes()),
          factors_{like.a,
                   {pivots_.template as<int>(), like.pivots.size()},
                   {status_.template as<int>(), like.status.size()}} {
        const auto offset = reinterpret_cast<std::uintptr_t>(like.a.data) % alignment;
        factors_.a.data = reinterpret_cast<T*>(batch_.template as<char>() + offset);
    }
    const Factors<T>& factors() const { return factors_; }

  private:
    static constexpr std::size_t alignment = 256;
    Scratch batch_;
    Scratch pivots_;
    Scratch status_;
    Factors<T> factors_;
};

template <class T, class Factor>
void protect(Context& ctx, OperationGuard& guard, const char* operation, const Factors<T>& first,
             Factor&& factor) {
    const bool wanted = guard.begin();
    require_shape(!wanted || first.a.pointers == nullptr, operation,
                  "a protected batch must lie in one piece of memory",
                  [] { return std::string("batch by pointers"); });
    const auto strike = [&](FaultPlace place) {
        if (is_regular(ctx, first.a)) {
            guard.strike(ctx, place,
                         BlockView<T>(first.a.data, extent_of(first.a), 1, 1, first.a.place));
        }
    };
    const bool checked = wanted && is_regular(ctx, first.a) && is_aligned(first.a.data);
    if (!checked) {
        strike(FaultPlace::input);
        factor(first);
        strike(FaultPlace::output);
        return;
    }
    const Twin<T> second(ctx, first);
    const Twin<T> third(ctx, first);
    const std::size_t bytes = static_cast<std::size_t>(extent_of(first.a)) * sizeof(T);
    for (const Twin<T>* twin : {&second, &third}) {
        twin->factors().take(ctx, first);
    }
    GuardedArray source(ctx, "matrices", third.factors().a.data, bytes);
    strike(FaultPlace::input);
    factor(first);
    strike(FaultPlace::output);
    factor(second.factors());
    AbftCounts& counts = guard.counts;
    ++counts.checked;
    const std::vector<std::uint64_t> of_first = first.parities(ctx);
    const std::vector<std::uint64_t> of_second = second.factors().parities(ctx);
    if (of_first == of_second) {
        return;
    }
    ++counts.alarms;
    if (!guard.writes()) {
        guard.count_fault(ctx, operation, Cure::failed);
        return;
    }
    const OperandRepair repair = source.repair(ctx, guard);
    factor(third.factors());
    const std::vector<std::uint64_t> of_third = third.factors().parities(ctx);
    const bool agreed = of_third == of_first || of_third == of_second;
    if (of_third == of_second) {
        first.take(ctx, second.factors());
    }
    guard.count_fault(ctx, operation, agreed && !repair.lost() ? Cure::redone : Cure::failed);
}

}  // namespace

template <class T>
void protected_lu_factor(Context& ctx, OperationGuard& guard, MatrixBatch<T> a,
                         std::span<int> pivots, std::span<int> status) {
    protect<T>(ctx, guard, "lu_factor", {a, pivots, status},
               [&](const Factors<T>& f) { lu_factor(ctx, f.a, f.pivots, f.status); });
}

template <class T>
void protected_cholesky_factor(Context& ctx, OperationGuard& guard, MatrixBatch<T> a,
                               std::span<int> status) {
    protect<T>(ctx, guard, "cholesky_factor", {a, {}, status},
               [&](const Factors<T>& f) { cholesky_factor(ctx, f.a, f.status); });
}

#define QUIVER_INSTANTIATE(T)                                                                    \
    template void protected_lu_factor(Context&, OperationGuard&, MatrixBatch<T>, std::span<int>, \
                                      std::span<int>);                                           \
    template void protected_cholesky_factor(Context&, OperationGuard&, MatrixBatch<T>,           \
                                            std::span<int>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
