// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/checksum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/column_ops.hpp"

namespace quiver {
namespace {

/// sum += value with what is lost in rest (Knuth's two-sum).
void add(double& sum, double& rest, double value) {
    const double total = sum + value;
    const double part = total - sum;
    rest += (sum - (total - part)) + (value - part);
    sum = total;
}

void add(std::complex<double>& sum, std::complex<double>& rest, std::complex<double> value) {
    double parts[4] = {sum.real(), sum.imag(), rest.real(), rest.imag()};
    add(parts[0], parts[2], value.real());
    add(parts[1], parts[3], value.imag());
    sum = {parts[0], parts[1]};
    rest = {parts[2], parts[3]};
}

bool is_zero_sum(double value) {
    return value == 0;
}
bool is_zero_sum(std::complex<double> value) {
    return value.real() == 0 && value.imag() == 0;
}

/// The row of a chunk whose weight is close to `number` units; -1: none.
std::int64_t row_of_number(double number, std::int64_t rows) {
    const double nearest = std::round(number);
    if (!(std::abs(number - nearest) <= 0.25 && nearest >= 1)) {
        return -1;
    }
    const double wanted = nearest * mixed_weight_unit;
    for (std::int64_t row = 0; row < rows; ++row) {
        if (mixed_weight(row) == wanted) {
            return row;
        }
    }
    return -1;
}

template <class T>
BlockView<T> scratch_block(const Scratch& scratch, const Context& ctx, std::int64_t rows,
                           int cols) {
    return {scratch.as<T>(), rows, cols, cols, ctx.place()};
}

std::size_t block_bytes(std::int64_t rows, int cols, std::size_t element) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * element;
}

}  // namespace

template <class T>
Checksum<T>::Checksum(Context& ctx, BlockView<const T> x, BlockView<const Sum> weights,
                      int log_chunk, int block)
    : Checksum(x.rows, x.cols, weights.cols > 0, log_chunk) {
    sums_.resize(static_cast<std::size_t>(lines() * columns_));
    checksum<T>(ctx, log_chunk, x, weights,
                BlockView<Sum>(sums_.data(), lines(), columns_, columns_), block);
    add_up();
}

template <class T>
Checksum<T>::Checksum(std::int64_t rows, int columns, bool weights, int log_chunk)
    : rows_(rows), columns_(columns), kinds_(checksum_kinds(weights)), log_chunk_(log_chunk) {}

template <class T>
void Checksum<T>::add_up() {
    const auto count = static_cast<std::size_t>(kinds_) * static_cast<std::size_t>(columns_);
    totals_.assign(count, Sum(0));
    std::vector<Sum> rest(count, Sum(0));
    for (std::size_t chunk = 0; chunk < sums_.size(); chunk += count) {
        for (std::size_t i = 0; i < count; ++i) {
            add(totals_[i], rest[i], sums_[chunk + i]);
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        totals_[i] += rest[i];
    }
}

template <class T>
void ChecksumUnderWay<T>::begin(Context& ctx, BlockView<const T> x, BlockView<const Sum> weights,
                                int log_chunk) {
    shape_ = Checksum<T>(x.rows, x.cols, weights.cols > 0, log_chunk);
    const std::int64_t lines = shape_.lines();
    const std::size_t bytes =
        static_cast<std::size_t>(lines) * static_cast<std::size_t>(x.cols) * sizeof(Sum);
    if (bytes > memory_.bytes()) {
        copy_.emplace(ctx, bytes);  // the one before is idle, and so is its source
        memory_ = ctx.allocate(memory_kind(ctx.place()), bytes, "checksums");
    }
    checksum<T>(ctx, log_chunk, x, weights,
                BlockView<Sum>(memory_.template as<Sum>(), lines, x.cols, x.cols, ctx.place()));
    if (bytes > 0) {
        copy_->begin(memory_.template as<void>(), bytes);
    }
    under_way_ = true;
}

template <class T>
Checksum<T> ChecksumUnderWay<T>::take(bool later_work) {
    under_way_ = false;
    Checksum<T> result = std::move(shape_);
    const auto count =
        static_cast<std::size_t>(result.lines()) * static_cast<std::size_t>(result.columns_);
    if (count > 0) {
        const auto* const sums = static_cast<const Sum*>(copy_->wait(later_work));
        result.sums_.assign(sums, sums + count);
    }
    result.add_up();
    return result;
}

template <class T>
std::int64_t Checksum<T>::chunk_rows(std::int64_t chunk) const {
    return std::min(std::int64_t{1} << log_chunk_, rows_ - first_row(chunk));
}

template <class T>
double Checksum<T>::norm(int column) const {
    return std::sqrt(std::real(total(checksum_squares, column)));
}

template <class T>
double Checksum<T>::rounding(std::int64_t chunk, int column) const {
    const double largest = std::sqrt(std::real((*this)(chunk, checksum_squares, column)));
    return 8 * std::numeric_limits<double>::epsilon() *
           (std::abs((*this)(chunk, checksum_plain, column)) +
            std::abs((*this)(chunk, checksum_mixed, column)) + largest);
}

template <class T>
bool Checksum<T>::same(const Checksum& other) const {
    return sums_.size() == other.sums_.size() &&
           (sums_.empty() ||
            std::memcmp(sums_.data(), other.sums_.data(), sums_.size() * sizeof(Sum)) == 0);
}

template <class T>
template <class Difference, class Noise>
std::vector<FaultyChunk> Checksum<T>::find(int columns, Difference&& difference,
                                           Noise&& noise) const {
    std::vector<FaultyChunk> result;
    for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
        FaultyChunk fault{chunk, -1, -1};
        bool one_row = true;
        for (int j = 0; j < columns; ++j) {
            const Sum plain = difference(chunk, checksum_plain, j);
            const Sum mixed = difference(chunk, checksum_mixed, j);
            if (is_zero_sum(plain) && is_zero_sum(mixed)) {
                continue;
            }
            fault.column = fault.column < 0 ? j : fault.column;
            const double number = std::real(mixed / plain) / mixed_weight_unit;
            const std::int64_t in_chunk = row_of_number(number, chunk_rows(chunk));
            const bool clear =
                in_chunk >= 0 && std::abs(plain) >= noise(chunk, j) / mixed_weight_unit;
            const std::int64_t row = clear ? first_row(chunk) + in_chunk : -1;
            one_row = one_row && clear && (fault.row < 0 || fault.row == row);
            fault.row = row;
        }
        if (fault.column >= 0) {
            fault.row = one_row ? fault.row : -1;
            result.push_back(fault);
        }
    }
    return result;
}

template <class T>
std::vector<FaultyChunk> Checksum<T>::nonzero() const {
    return find(
        columns_, [&](std::int64_t chunk, int kind, int j) { return (*this)(chunk, kind, j); },
        [](std::int64_t, int) { return 0.0; });
}

template <class T>
std::vector<FaultyChunk> Checksum<T>::changed_since(const Checksum& before, int first) const {
    return find(
        before.columns(),
        [&](std::int64_t chunk, int kind, int j) {
            const Sum now = (*this)(chunk, kind, first + j);
            const Sum then = before(chunk, kind, j);
            return std::memcmp(&now, &then, sizeof(Sum)) == 0 ? Sum(0) : now - then;
        },
        [&](std::int64_t chunk, int j) { return before.rounding(chunk, j); });
}

namespace {

/// The first row with an element that is infinite or not a number, which has no quotient of sums;
/// large negative: none.
template <class T>
std::int64_t row_not_finite(Context& ctx, BlockView<const T> x) {
    std::vector<T> values(static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols));
    copy(ctx, x, BlockView<T>(values.data(), x.rows, x.cols, x.cols));
    const auto bad =
        std::find_if(values.begin(), values.end(), [](T value) { return !is_finite(value); });
    return bad == values.end() ? std::numeric_limits<std::int64_t>::min() / 2
                               : (bad - values.begin()) / x.cols;
}

}  // namespace

template <class T>
Correction correct(Context& ctx, BlockView<T> y, BlockView<const T> z, int log_chunk, bool write) {
    const Scratch scratch =
        ctx.scratch(memory_kind(ctx.place()), block_bytes(y.rows, y.cols, sizeof(T)));
    const BlockView<T> d = scratch_block<T>(scratch, ctx, y.rows, y.cols);
    const auto difference = [&](std::int64_t first, std::int64_t count) {
        const BlockView<T> part = d.row_range(0, count);
        copy(ctx, BlockView<const T>(y.row_range(first, count)), part);
        axpby(ctx, T(-1), z.row_range(first, count), T(1), part);
        return Checksum<T>(ctx, part, {}, log_chunk);
    };
    Correction result;
    const Checksum<T> all = difference(0, y.rows);
    for (const FaultyChunk& fault : all.nonzero()) {
        const std::int64_t first = all.first_row(fault.chunk);
        const std::int64_t count = all.chunk_rows(fault.chunk);
        std::int64_t row = fault.row;
        if (!write) {
            ++(row >= 0 ? result.rows : result.chunks);
            continue;
        }
        if (row < 0) {
            const std::int64_t bad =
                row_not_finite(ctx, BlockView<const T>(y.row_range(first, count)));
            row = bad < 0 ? -1 : first + bad;
        }
        if (row >= 0) {
            copy(ctx, z.row_range(row, 1), y.row_range(row, 1));
        }
        if (row >= 0 && difference(first, count).nonzero().empty()) {
            ++result.rows;
        } else {
            copy(ctx, z.row_range(first, count), y.row_range(first, count));
            ++result.chunks;
        }
    }
    return result;
}

template <class T>
bool restore(Context& ctx, BlockView<T> x, const FaultyChunk& fault, const Checksum<T>& before) {
    const std::int64_t first = before.first_row(fault.chunk);
    const BlockView<T> chunk = x.row_range(first, before.chunk_rows(fault.chunk));
    const std::int64_t row =
        fault.row >= 0 ? fault.row : first + row_not_finite(ctx, BlockView<const T>(chunk));
    if (row < first) {
        return false;
    }
    const BlockView<T> target = x.row_range(row, 1);
    std::vector<T> values(static_cast<std::size_t>(x.cols));
    const BlockView<T> host(values.data(), 1, x.cols, x.cols);
    copy(ctx, BlockView<const T>(target), host);
    const std::vector<T> found = values;
    const auto sums_of = [&] { return Checksum<T>(ctx, chunk, {}, before.log_chunk()); };
    std::vector<int> changed;
    const Checksum<T> faulty = sums_of();
    for (int j = 0; j < x.cols; ++j) {
        const auto now = faulty(0, checksum_plain, j);
        const auto then = before(fault.chunk, checksum_plain, j);
        if (std::memcmp(&now, &then, sizeof(now)) != 0) {
            changed.push_back(j);
            host(0, j) = T(0);
        }
    }
    copy(ctx, BlockView<const T>(host), target);
    const Checksum<T> rest = sums_of();
    for (const int j : changed) {
        host(0, j) =
            static_cast<T>(before(fault.chunk, checksum_plain, j) - rest(0, checksum_plain, j));
    }
    copy(ctx, BlockView<const T>(host), target);
    // The mixed sum knows where the row is: it agrees only if that was the one.
    const Checksum<T> restored = sums_of();
    bool good = !changed.empty();
    for (const int j : changed) {
        const auto lost = restored(0, checksum_mixed, j) - before(fault.chunk, checksum_mixed, j);
        good = good && std::abs(lost) <= before.rounding(fault.chunk, j);
    }
    if (!good) {
        copy(ctx, BlockView<const T>(found.data(), 1, x.cols, x.cols), target);
    }
    return good;
}

template class Checksum<float>;
template class Checksum<double>;
template class Checksum<std::complex<float>>;
template class Checksum<std::complex<double>>;
template class ChecksumUnderWay<float>;
template class ChecksumUnderWay<double>;
template class ChecksumUnderWay<std::complex<float>>;
template class ChecksumUnderWay<std::complex<double>>;
template Correction correct(Context&, BlockView<float>, BlockView<const float>, int, bool);
template Correction correct(Context&, BlockView<double>, BlockView<const double>, int, bool);
template Correction correct(Context&, BlockView<std::complex<float>>,
                            BlockView<const std::complex<float>>, int, bool);
template Correction correct(Context&, BlockView<std::complex<double>>,
                            BlockView<const std::complex<double>>, int, bool);
template bool restore(Context&, BlockView<float>, const FaultyChunk&, const Checksum<float>&);
template bool restore(Context&, BlockView<double>, const FaultyChunk&, const Checksum<double>&);
template bool restore(Context&, BlockView<std::complex<float>>, const FaultyChunk&,
                      const Checksum<std::complex<float>>&);
template bool restore(Context&, BlockView<std::complex<double>>, const FaultyChunk&,
                      const Checksum<std::complex<double>>&);

}  // namespace quiver
