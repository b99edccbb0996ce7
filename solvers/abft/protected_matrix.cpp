// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/protected_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/matrix_sums.hpp"

namespace quiver {
namespace {

constexpr double safety = 4;
constexpr int most_attempts = 3;
/// Relative rounding error of the checksums themselves, in double precision. The checksum of a
/// smooth column may be larger than its norm by the root of the rows.
constexpr double sums_units = 16 * std::numeric_limits<double>::epsilon();

template <class T>
double constant() {
    return safety * (is_complex_v<T> ? 2 : 1) * static_cast<double>(epsilon_v<T>);
}

template <class T>
T shift_of(const ApplyOptions<T>& options, int column) {
    const std::span<const T> shift = options.shift;
    return shift.empty() ? T(0) : shift[shift.size() == 1 ? 0 : static_cast<std::size_t>(column)];
}

}  // namespace

template <class T>
ProtectedMatrix<T>::ProtectedMatrix(Context& ctx, SparseMatrix<T>& a, const AbftOptions& options)
    : a_(a), place_(ctx.place()), options_(options), injector_(options.inject) {
    if (options.mode == AbftMode::off) {
        return;
    }
    ctx.comm().agree([&] {
        const MatrixSums<T> sums = matrix_sums(ctx, a, options.log_chunk);
        std::copy_n(sums.lost, 2, lost_);
        norm_ = std::sqrt(sums.row_norm * sums.column_norm);
        largest_row_ = sums.row_norm;
        longest_row_ = sums.longest_row;
        const std::size_t bytes = sums.sums.size() * sizeof(Sum);
        guards_ = ctx.allocate(memory_kind(ctx.place()), bytes, "checksums of the matrix");
        const auto rows = static_cast<std::int64_t>(sums.sums.size() / 2);
        copy(ctx, BlockView<const Sum>(sums.sums.data(), rows, 2, 2),
             BlockView<Sum>(guards_.template as<Sum>(), rows, 2, 2, ctx.place()));
        std::vector<MatrixArray> arrays = a.arrays();
        arrays.push_back({"checksums of the matrix", guards_.template as<void>(), bytes});
        for (const MatrixArray& array : arrays) {
            Guarded guarded{array, {}};
            guarded.parity.resize(static_cast<std::size_t>(parity_pieces(array.bytes)) *
                                  parity_numbers);
            parity(ctx, array.data, array.bytes, guarded.parity);
            guarded_.push_back(std::move(guarded));
        }
    });
    largest_row_ = ctx.comm().max(largest_row_);
}

template <class T>
auto ProtectedMatrix<T>::guards(std::int64_t first, std::int64_t rows) const
    -> BlockView<const Sum> {
    const std::int64_t own = a_.row_map().local_rows();
    return BlockView<const Sum>(guards_.template as<Sum>(), own + a_.halo_size(), 2, 2, place_)
        .row_range(first, rows);
}

template <class T>
void ProtectedMatrix<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    apply_fused(ctx, x, y, {});
}

template <class T>
Checksum<T> ProtectedMatrix<T>::encode_input(Context& ctx, BlockView<const T> x) const {
    return Checksum<T>(ctx, x, guards(0, x.rows), options_.log_chunk, words_of_input());
}

template <class T>
void ProtectedMatrix<T>::begin_encoding(Context& ctx, BlockView<const T> x,
                                        ChecksumUnderWay<T>& sums) const {
    sums.begin(ctx, x, guards(0, x.rows), options_.log_chunk, words_of_input());
}

template <class T>
void ProtectedMatrix<T>::expect_input(const T* x, Checksum<T> sums) {
    expected_input_ = x;
    expected_sums_ = std::move(sums);
}

template <class T>
void ProtectedMatrix<T>::tell(Context& ctx, const char* where, const char* what) {
    ctx.emit(FaultEvent{where, what, counts_.products, ctx.comm().rank()});
}

template <class T>
void ProtectedMatrix<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                     const ApplyOptions<T>& options) {
    const ScopedPolicy kernels(ctx, nullptr);  // checked here already
    start(ctx, x, y, options, false);
    look(ctx, false);
    if (options_.mode != AbftMode::off) {
        form_dots(ctx, x, y, options);
    }
}

template <class T>
void ProtectedMatrix<T>::begin(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    const ScopedPolicy kernels(ctx, nullptr);
    start(ctx, x, y, {}, true);
}

template <class T>
bool ProtectedMatrix<T>::finish(Context& ctx, Checksum<T> x_sums, bool later_work) {
    const ScopedPolicy kernels(ctx, nullptr);
    if (product_) {
        product_->expected.x = std::move(x_sums);
    }
    return look(ctx, later_work);
}

template <class T>
void ProtectedMatrix<T>::start(Context& ctx, BlockView<const T> x, BlockView<T> y,
                               const ApplyOptions<T>& options, bool sums_follow) {
    product_.reset();
    y_sums_.forget();
    input_restored_ = input_lost_ = false;
    injector_.set_step(++step_);
    const std::vector<MatrixArray> arrays = a_.arrays();
    strike<T>(ctx, FaultPlace::matrix,
              {static_cast<T*>(arrays.front().data),
               static_cast<std::int64_t>(arrays.front().bytes / sizeof(T)), 1, 1, ctx.place()});
    // Injected memory faults ignore const.
    strike<T>(ctx, FaultPlace::input, {const_cast<T*>(x.data), x.rows, x.cols, x.ld, x.place});
    if (options_.mode == AbftMode::off) {
        ++counts_.products;
        a_.apply_fused(ctx, x, y, options);
        strike(ctx, FaultPlace::output, y);
        return;
    }
    strike<Sum>(ctx, FaultPlace::guard,
                {guards_.template as<Sum>(), x.rows + a_.halo_size(), 2, 2, place_});
    ApplyOptions<T> silent = options;
    silent.dot_yy = silent.dot_xy = {};
    Product& product = product_.emplace();
    product.x = x;
    product.y = y;
    product.options = silent;
    Expected& expected = product.expected;
    const bool known =
        expected_input_ == x.data && !expected_sums_.empty() && expected_sums_.columns() == x.cols;
    expected.x_known = known || sums_follow;
    if (!sums_follow) {
        expected.x = known ? std::move(expected_sums_) : encode_input(ctx, x);
    }
    expected_input_ = nullptr;
    if (options.beta != T(0)) {
        expected.old = Checksum<T>(ctx, y, {}, options_.log_chunk, WordSums::no);
        if (options_.mode == AbftMode::correct) {
            product.kept.emplace(
                ctx.memory(), memory_kind(ctx.place()),
                static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols) * sizeof(T));
            product.old = {product.kept->template as<T>(), y.rows, y.cols, y.cols, ctx.place()};
            copy(ctx, BlockView<const T>(y), product.old);
        }
    }
    a_.apply_fused(ctx, x, y, silent);
    strike(ctx, FaultPlace::output, y);
    halo_sums_.begin(ctx, a_.received(x.cols), halo_guards(), options_.log_chunk, WordSums::no);
    y_sums_.begin(ctx, y, {}, options_.log_chunk, WordSums::no);
}

/// Checks the product in flight, if any; returns whether the first comparison passed.
template <class T>
bool ProtectedMatrix<T>::look(Context& ctx, bool later_work) {
    output_ = {};
    if (!product_ || !y_sums_.under_way()) {
        return true;  // no product was begun, or it threw
    }
    ++counts_.products;
    Product& product = *product_;
    complete(product.options, product.x.cols, halo_sums_.take(true), product.expected);
    bool agreed = true;
    if (product.expected.finite) {
        ++counts_.checked;
        output_ = y_sums_.take(later_work);
        agreed = agrees(output_, product.expected);
        if (!agreed) {
            resolve(ctx, product.x, product.y, product.old, product.options, product.expected);
        }
    }
    product_.reset();
    return agreed;
}

template <class T>
void ProtectedMatrix<T>::complete(const ApplyOptions<T>& options, int width,
                                  const Checksum<T>& halo, Expected& expected) {
    const std::int64_t own = a_.row_map().local_rows();
    const double c = constant<T>();
    const Sum alpha = static_cast<Sum>(options.alpha);
    const Sum beta = static_cast<Sum>(options.beta);
    expected.sums.clear();
    expected.finite = true;
    bound_.clear();
    for (int j = 0; j < width; ++j) {
        const Sum shift = static_cast<Sum>(shift_of(options, j));
        const double x = std::hypot(expected.x.norm(j), halo.norm(j));
        const double old = expected.old.empty() ? 0 : expected.old.norm(j);
        expected.finite = expected.finite && std::isfinite(x) && std::isfinite(old);
        const double product =
            (std::sqrt(static_cast<double>(longest_row_)) + 4) * norm_ + 4 * std::abs(shift);
        for (int k = 0; k < 2; ++k) {
            const Sum own_part = expected.x.total(checksum_first + k, j);
            const Sum halo_part = halo.total(checksum_first + k, j);
            const Sum shifted = shift * expected.x.total(k, j);
            const Sum old_part = expected.old.empty() ? Sum(0) : beta * expected.old.total(k, j);
            const Sum sum = alpha * (own_part + halo_part - shifted) + old_part;
            const double size =
                std::abs(alpha) * (std::abs(own_part) + std::abs(halo_part) + std::abs(shifted)) +
                std::abs(old_part);
            expected.sums.push_back(sum);
            bound_.push_back(std::abs(alpha) * (c * product + lost_[k]) * x +
                             4 * c * std::abs(beta) * old + sums_units * size +
                             static_cast<double>(std::numeric_limits<real_t<T>>::min()) *
                                 static_cast<double>(own));
        }
    }
}

template <class T>
bool ProtectedMatrix<T>::agrees(const Checksum<T>& y, const Expected& expected) const {
    for (int j = 0; j < y.columns(); ++j) {
        for (int k = 0; k < 2; ++k) {
            const auto at = static_cast<std::size_t>(2 * j + k);
            // Written so that NaN fails the comparison.
            if (!(std::abs(y.total(k, j) - expected.sums[at]) <= bound_[at])) {
                return false;
            }
        }
    }
    return true;
}

template <class T>
void ProtectedMatrix<T>::resolve(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                 BlockView<const T> old, const ApplyOptions<T>& options,
                                 Expected& expected) {
    ++counts_.alarms;
    const bool write = options_.mode == AbftMode::correct;
    if (options.beta != T(0) && !write) {
        resolve_without_old(ctx, x, y, options, expected);
        return;
    }
    const Scratch scratch =
        ctx.scratch(memory_kind(ctx.place()), static_cast<std::size_t>(y.rows) *
                                                  static_cast<std::size_t>(y.cols) * sizeof(T));
    const BlockView<T> z(scratch.template as<T>(), y.rows, y.cols, y.cols, ctx.place());
    bool repaired = false;
    const auto replace = [&](Checksum<T>& sums) {
        const Correction correction =
            correct(ctx, y, BlockView<const T>(z), options_.log_chunk, write);
        ++counts_.faults;
        if (write) {
            // A repaired memory word counts as mended even if the product had to be repeated.
            const bool mended = !input_lost_ && (correction.chunks == 0 || repaired);
            ++(mended ? counts_.mended : counts_.redone);
            output_ = std::move(sums);
        }
        tell(ctx, "product", !write ? "found" : correction.chunks == 0 ? "mended" : "redone");
    };
    Checksum<T> previous;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        if (options.beta != T(0)) {
            copy(ctx, old, z);
        }
        a_.repeat(ctx, x, z, options);
        Checksum<T> sums(ctx, z, {}, options_.log_chunk, WordSums::no);
        if (agrees(sums, expected)) {
            replace(sums);
            return;
        }
        const Repair repair = repair_memory(ctx);
        if (write && repair.mended < repair.found) {
            ++counts_.faults;
            ++counts_.failed;
            throw NumericalError(
                "product " + std::to_string(counts_.products) +
                ": more than one of 65536 neighbouring words of the matrix has changed in memory "
                "on rank " +
                std::to_string(ctx.comm().rank()) + "; read the matrix again");
        }
        const bool memory = repair.found > 0;
        const bool input = repair_input(ctx, x, expected);
        if ((memory || input) && !write) {
            ++counts_.faults;
            return;
        }
        repaired = repaired || memory || input;
        if (memory || input_lost_ || !expected.x_known) {
            expected.x = encode_input(ctx, x);
            const Checksum<T> halo(ctx, a_.received(x.cols), halo_guards(), options_.log_chunk,
                                   WordSums::no);
            complete(options, x.cols, halo, expected);
            if (!expected.finite) {
                output_ = {};  // X was finite when its checksums were formed
                ++counts_.faults;
                counts_.failed += write ? 1 : 0;
                tell(ctx, "operand", write ? "not mended" : "found");
                return;
            }
        }
        const bool as_before = !memory && !input;
        if (as_before && sums.same(output_)) {
            if (agrees(sums, expected)) {
                ++counts_.faults;  // the checksums themselves were wrong
                counts_.mended += write ? 1 : 0;
                tell(ctx, "sums", write ? "mended" : "found");
            } else {
                ++counts_.rounding;
            }
            return;
        }
        if (as_before && sums.same(previous)) {
            ++counts_.rounding;  // rounding, and a fault in the first Y as well
            replace(sums);
            return;
        }
        previous = std::move(sums);
    }
    ++counts_.faults;
    counts_.failed += write ? 1 : 0;
    tell(ctx, "product", write ? "not mended" : "found");
    if (write) {
        throw NumericalError("product " + std::to_string(counts_.products) +
                             ": its checksums are wrong, and remain wrong after " +
                             std::to_string(most_attempts) + " repetitions on rank " +
                             std::to_string(ctx.comm().rank()) +
                             "; the memory of this machine cannot be trusted");
    }
}

/// `detect` with beta: the old Y is overwritten, so the second product is made without it. The
/// alarm is rounding if Y - beta Y_old has the checksums of the second product and all memory is
/// unchanged.
template <class T>
void ProtectedMatrix<T>::resolve_without_old(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                             const ApplyOptions<T>& options,
                                             const Expected& expected) {
    const Scratch scratch =
        ctx.scratch(memory_kind(ctx.place()), static_cast<std::size_t>(y.rows) *
                                                  static_cast<std::size_t>(y.cols) * sizeof(T));
    const BlockView<T> z(scratch.template as<T>(), y.rows, y.cols, y.cols, ctx.place());
    ApplyOptions<T> alone = options;
    alone.beta = T(0);
    a_.repeat(ctx, x, z, alone);
    Expected second = expected;
    const Checksum<T> sums(ctx, z, {}, options_.log_chunk, WordSums::no);
    for (int j = 0; j < y.cols; ++j) {
        for (int k = 0; k < 2; ++k) {
            second.sums[static_cast<std::size_t>(2 * j + k)] =
                sums.total(k, j) + static_cast<Sum>(options.beta) * expected.old.total(k, j);
        }
    }
    const bool same = agrees(output_, second);
    const bool sound = repair_memory(ctx).found == 0 && !repair_input(ctx, x, expected);
    if (same && sound) {
        ++counts_.rounding;
        return;
    }
    ++counts_.faults;
    tell(ctx, "product", "found");
}

template <class T>
auto ProtectedMatrix<T>::repair_memory(Context& ctx) -> Repair {
    Repair repair;
    for (const Guarded& guarded : guarded_) {
        std::vector<std::uint64_t> now(guarded.parity.size());
        parity(ctx, guarded.array.data, guarded.array.bytes, now);
        for (ParityFault fault = find_fault(guarded.parity, now); fault.piece >= 0;
             fault = find_fault(guarded.parity, now, fault.piece + 1)) {
            ++repair.found;
            const bool write = options_.mode == AbftMode::correct && fault.word >= 0;
            if (write) {
                unsigned char mask[8];
                std::memcpy(mask, &fault.bits, sizeof(mask));
                const std::size_t first = static_cast<std::size_t>(fault.word) * 8;
                flip_bits(ctx, static_cast<char*>(guarded.array.data) + first,
                          std::span<const unsigned char>(mask).first(
                              std::min<std::size_t>(8, guarded.array.bytes - first)));
                ++repair.mended;
            }
            tell(ctx, guarded.array.name,
                 options_.mode != AbftMode::correct ? "found"
                 : write                            ? "mended"
                                                    : "not mended");
        }
    }
    return repair;
}

template <class T>
bool ProtectedMatrix<T>::repair_input(Context& ctx, BlockView<const T> x,
                                      const Expected& expected) {
    if (!expected.x_known || input_lost_) {
        return false;
    }
    const Checksum<T> now(ctx, x, {}, options_.log_chunk);
    const std::vector<FaultyChunk> faults = now.changed_since(expected.x);
    if (options_.mode == AbftMode::correct) {
        for (const FaultyChunk& fault : faults) {
            // The product promises not to write X; restoring X returns it to its correct contents.
            const BlockView<T> block(const_cast<T*>(x.data), x.rows, x.cols, x.ld, x.place);
            const bool restored = restore(ctx, block, fault, expected.x);
            (restored ? input_restored_ : input_lost_) = true;
            tell(ctx, "operand", restored ? "mended" : "not mended");
        }
    }
    return !faults.empty();
}

template <class T>
void ProtectedMatrix<T>::audit(Context& ctx) {
    if (options_.mode == AbftMode::off) {
        return;
    }
    ++counts_.basis_checks;
    const Repair repair = repair_memory(ctx);
    counts_.faults += repair.found;
    counts_.mended += repair.mended;
    counts_.failed += options_.mode == AbftMode::correct ? repair.found - repair.mended : 0;
    audited_.found += repair.found;
    audited_.mended += repair.mended;
}

template <class T>
OperatorFaults ProtectedMatrix<T>::faults() const {
    const bool corrects = options_.mode == AbftMode::correct;
    return {options_.mode != AbftMode::off, corrects,
            corrects ? audited_.found - audited_.mended : counts_.faults, audited_.mended};
}

template <class T>
void ProtectedMatrix<T>::form_dots(Context& ctx, BlockView<const T> x, BlockView<const T> y,
                                   const ApplyOptions<T>& options) const {
    std::vector<T> sums(options.dot_yy.size() + options.dot_xy.size());
    if (sums.empty()) {
        return;
    }
    const std::span<T> yy = std::span<T>(sums).first(options.dot_yy.size());
    const std::span<T> xy = std::span<T>(sums).subspan(options.dot_yy.size());
    if (!yy.empty()) {
        dots(ctx, y, y, yy, Reduce::this_rank);
    }
    if (!xy.empty()) {
        dots(ctx, x, y, xy, Reduce::this_rank);
    }
    ctx.comm().sum(std::span<T>(sums));
    std::copy(yy.begin(), yy.end(), options.dot_yy.begin());
    std::copy(xy.begin(), xy.end(), options.dot_xy.begin());
}

#define QUIVER_INSTANTIATE(T) template class ProtectedMatrix<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
