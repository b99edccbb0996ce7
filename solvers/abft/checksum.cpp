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

namespace {

/// Gives some elements of a row of a chunk the values that its plain sums ask for. Puts back what
/// was there unless agrees(j, mixed sum) holds for all of them then: that sum knows where the row
/// is.
template <class T, class Agrees>
bool replace_elements(Context& ctx, BlockView<T> chunk, std::int64_t row, int log_chunk,
                      const std::vector<int>& columns, const std::vector<checksum_t<T>>& plain,
                      Agrees&& agrees) {
    const BlockView<T> target = chunk.row_range(row, 1);
    std::vector<T> values(static_cast<std::size_t>(chunk.cols));
    const BlockView<T> host(values.data(), 1, chunk.cols, chunk.cols);
    copy(ctx, BlockView<const T>(target), host);
    const std::vector<T> found = values;
    for (const int j : columns) {
        host(0, j) = T(0);
    }
    copy(ctx, BlockView<const T>(host), target);
    const Checksum<T> rest(ctx, chunk, {}, log_chunk);
    for (const int j : columns) {
        host(0, j) =
            static_cast<T>(plain[static_cast<std::size_t>(j)] - rest(0, checksum_plain, j));
    }
    copy(ctx, BlockView<const T>(host), target);
    const Checksum<T> now(ctx, chunk, {}, log_chunk);
    const bool good = !columns.empty() && std::all_of(columns.begin(), columns.end(), [&](int j) {
        return agrees(j, now(0, checksum_mixed, j));
    });
    if (!good) {
        copy(ctx, BlockView<const T>(found.data(), 1, chunk.cols, chunk.cols), target);
    }
    return good;
}

/// The only row whose weight may be the quotient of the differences of mixed and plain sums; -1:
/// none, or a choice of rows. `noise`: what each difference may be from rounding at least, `bound`
/// at most.
template <class Sum>
std::int64_t row_of_differences(const std::vector<Sum>& plain, const std::vector<Sum>& mixed,
                                double noise, double bound, std::int64_t rows) {
    double largest = 0;
    for (const Sum value : plain) {
        largest = std::max(largest, std::abs(value));
    }
    double power = 0;  // in units of the largest: squares may overflow
    double cross = 0;
    for (std::size_t j = 0; j < plain.size(); ++j) {
        power += std::norm(plain[j] / largest);
        cross += std::real(conjugate(plain[j] / largest) * (mixed[j] / largest));
    }
    const double quotient = cross / power;
    double scatter = 0;
    for (std::size_t j = 0; j < plain.size(); ++j) {
        // A column that is hit alone fits its own quotient: the others tell.
        const Sum rest = (mixed[j] - quotient * plain[j]) / largest;
        scatter += std::abs(plain[j]) == largest ? 0 : std::norm(rest);
    }
    constexpr std::size_t enough = 8;  // columns, to tell how they scatter
    const double spread = 5 * std::sqrt(scatter / static_cast<double>(plain.size() - 1));
    const double unit = plain.size() < enough ? bound / largest : std::max(noise / largest, spread);
    const double reach = 0.25 * mixed_weight_unit + unit / std::sqrt(power);
    std::int64_t result = -1;
    for (std::int64_t row = 0; row < rows; ++row) {
        if (std::abs(mixed_weight(row) - quotient) <= reach) {
            if (result >= 0) {
                return -1;
            }
            result = row;
        }
    }
    return result;
}

}  // namespace

template <class T>
bool restore(Context& ctx, BlockView<T> x, const FaultyChunk& fault, const Checksum<T>& before) {
    const std::int64_t first = before.first_row(fault.chunk);
    const BlockView<T> chunk = x.row_range(first, before.chunk_rows(fault.chunk));
    const std::int64_t row =
        fault.row >= 0 ? fault.row - first : row_not_finite(ctx, BlockView<const T>(chunk));
    if (row < 0) {
        return false;
    }
    std::vector<int> changed;
    std::vector<checksum_t<T>> plain;
    const Checksum<T> faulty(ctx, chunk, {}, before.log_chunk());
    for (int j = 0; j < x.cols; ++j) {
        const auto now = faulty(0, checksum_plain, j);
        plain.push_back(before(fault.chunk, checksum_plain, j));
        if (std::memcmp(&now, &plain.back(), sizeof(now)) != 0) {
            changed.push_back(j);
        }
    }
    return replace_elements(ctx, chunk, row, before.log_chunk(), changed, plain,
                            [&](int j, checksum_t<T> mixed) {
                                return std::abs(mixed - before(fault.chunk, checksum_mixed, j)) <=
                                       before.rounding(fault.chunk, j);
                            });
}

template <class T>
bool restore(Context& ctx, BlockView<T> x, const ChunkSums<T>& wanted) {
    using Sum = checksum_t<T>;
    const std::int64_t first = wanted.chunk << wanted.log_chunk;
    const std::int64_t rows = std::min(std::int64_t{1} << wanted.log_chunk, x.rows - first);
    const BlockView<T> chunk = x.row_range(first, rows);
    const Checksum<T> now(ctx, chunk, {}, wanted.log_chunk);
    std::vector<int> columns;
    std::vector<Sum> difference[2];
    double noise = 0;
    double bound = 0;
    bool finite = true;
    for (int j = 0; j < x.cols; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (!std::isfinite(wanted.bounds[0][at] + wanted.bounds[1][at])) {
            continue;
        }
        columns.push_back(j);
        for (int k = 0; k < 2; ++k) {
            difference[k].push_back(now(0, k, j) - wanted.sums[k][at]);
            finite = finite && is_finite(difference[k].back());
            bound = std::max(bound, 2 * wanted.bounds[k][at]);
        }
        // Of huge elements the squares overflow.
        const double norm = std::sqrt(std::real(now(0, checksum_squares, j)));
        noise = std::max(noise, 8 * static_cast<double>(epsilon_v<T>) *
                                    (std::isfinite(norm) ? norm : std::abs(difference[0].back())));
    }
    const std::int64_t row =
        finite ? row_of_differences(difference[0], difference[1], noise, bound, rows)
               : row_not_finite(ctx, BlockView<const T>(chunk));
    if (row < 0) {
        return false;
    }
    return replace_elements(ctx, chunk, row, wanted.log_chunk, columns, wanted.sums[0],
                            [&](int j, Sum mixed) {
                                const auto at = static_cast<std::size_t>(j);
                                return std::abs(mixed - wanted.sums[1][at]) <= wanted.bounds[1][at];
                            });
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
template bool restore(Context&, BlockView<float>, const ChunkSums<float>&);
template bool restore(Context&, BlockView<double>, const ChunkSums<double>&);
template bool restore(Context&, BlockView<std::complex<float>>,
                      const ChunkSums<std::complex<float>>&);
template bool restore(Context&, BlockView<std::complex<double>>,
                      const ChunkSums<std::complex<double>>&);
template bool restore(Context&, BlockView<float>, const FaultyChunk&, const Checksum<float>&);
template bool restore(Context&, BlockView<double>, const FaultyChunk&, const Checksum<double>&);
template bool restore(Context&, BlockView<std::complex<float>>, const FaultyChunk&,
                      const Checksum<std::complex<float>>&);
template bool restore(Context&, BlockView<std::complex<double>>, const FaultyChunk&,
                      const Checksum<std::complex<double>>&);

}  // namespace quiver
