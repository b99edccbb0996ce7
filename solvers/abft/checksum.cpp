// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/checksum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {
namespace {

/// sum += value; the rounding error is added to `rest` (Knuth's two-sum).
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

/// True if both sums have the same bits or both are NaN: the bits of a NaN depend on the order of
/// operands.
bool same_sum(double a, double b) {
    return std::memcmp(&a, &b, sizeof(double)) == 0 || (std::isnan(a) && std::isnan(b));
}

/// The row of a chunk in which one word has changed, found from the differences of both word sums
/// (see ChecksumWord). The plain difference determines, modulo 2^32, how much the lower and the
/// upper half of the word have changed. A row fits if these changes and its factor give the mixed
/// difference. Returns -1 if no row fits, or more than one.
template <class Real>
std::int64_t row_of_word(std::uint64_t plain, std::uint64_t mixed, std::int64_t rows) {
    constexpr std::uint64_t modulus = std::uint64_t{1} << 32;
    struct Halves {
        std::uint64_t lower, upper;
    };
    if (plain == 0) {
        return -1;
    }
    std::vector<Halves> possible;
    if constexpr (sizeof(Real) == sizeof(std::uint32_t)) {
        possible.push_back({plain, 0});
    } else {
        const auto add = [&](std::uint64_t lower) {
            const std::uint64_t upper = (plain - lower) >> 32;
            possible.push_back({lower, upper});
            if (upper != 0) {  // no half changes by 2^32
                possible.push_back({lower, upper - modulus});
            }
        };
        add(plain % modulus);
        if (plain % modulus != 0) {
            add(plain % modulus - modulus);
        }
    }
    std::int64_t found = -1;
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::uint32_t factor = word_weight(rows - row);
        for (const auto& [lower, upper] : possible) {
            if (factor * lower + std::uint64_t{~factor} * upper == mixed) {
                if (found >= 0 && found != row) {
                    return -1;
                }
                found = row;
            }
        }
    }
    return found;
}

}  // namespace

template <class T>
Checksum<T>::Checksum(Context& ctx, BlockView<const T> x, BlockView<const Sum> weights,
                      int log_chunk, WordSums words, int block)
    : Checksum(x.rows, x.cols, weights.cols > 0, log_chunk) {
    sums_.resize(sum_count());
    words_.resize(words == WordSums::yes ? word_count() : 0);
    checksum<T>(ctx, log_chunk, x, weights,
                BlockView<Sum>(sums_.data(), lines(), columns_, columns_), words_, block);
    add_up();
}

template <class T>
Checksum<T> Checksum<T>::of_totals(int columns, std::vector<Sum> totals) {
    Checksum sums;
    sums.columns_ = columns;
    sums.kinds_ = checksum_kinds(true);
    sums.totals_ = std::move(totals);
    return sums;
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
                                int log_chunk, WordSums words) {
    shape_ = Checksum<T>(x.rows, x.cols, weights.cols > 0, log_chunk);
    words_ = words == WordSums::yes ? shape_.word_count() : 0;
    const std::size_t sums_bytes = shape_.sum_count() * sizeof(Sum);
    const std::size_t bytes = sums_bytes + words_ * sizeof(std::uint64_t);
    if (bytes > memory_.bytes()) {
        copy_.emplace(ctx, bytes);  // the previous copy is idle, and so is its source
        memory_ = ctx.allocate(memory_kind(ctx.place()), bytes, "checksums");
    }
    checksum<T>(
        ctx, log_chunk, x, weights,
        BlockView<Sum>(memory_.template as<Sum>(), shape_.lines(), x.cols, x.cols, ctx.place()),
        {reinterpret_cast<std::uint64_t*>(memory_.template as<char>() + sums_bytes), words_});
    if (bytes > 0) {
        copy_->begin(memory_.template as<void>(), bytes);
    }
    under_way_ = true;
}

template <class T>
Checksum<T> ChecksumUnderWay<T>::take(bool later_work) {
    under_way_ = false;
    Checksum<T> result = std::move(shape_);
    const std::size_t count = result.sum_count();
    if (count > 0) {
        const auto* const sums = static_cast<const Sum*>(copy_->wait(later_work));
        const auto* const words = reinterpret_cast<const std::uint64_t*>(sums + count);
        result.sums_.assign(sums, sums + count);
        result.words_.assign(words, words + words_);
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
bool Checksum<T>::same(const Checksum& other) const {
    const auto equal = [](const auto& a, const auto& b) {
        return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    return sums_.size() == other.sums_.size() && equal(sums_, other.sums_) &&
           (!has_words() || !other.has_words() || equal(words_, other.words_));
}

template <class T>
bool Checksum<T>::same_chunk(std::int64_t chunk, const Checksum& alone) const {
    const std::size_t numbers = checksum_kinds(false) * static_cast<std::size_t>(columns_) * reals;
    const std::size_t words = word_kinds * static_cast<std::size_t>(columns_) * reals;
    const auto* const these = reinterpret_cast<const double*>(&sums_[index(chunk, 0, 0)]);
    const bool sums = std::equal(these, these + numbers,
                                 reinterpret_cast<const double*>(alone.sums_.data()), same_sum);
    return sums && std::memcmp(&words_[static_cast<std::size_t>(chunk) * words],
                               alone.words_.data(), words * sizeof(std::uint64_t)) == 0;
}

template <class T>
auto Checksum<T>::changed_word(std::int64_t chunk, int real, const Checksum& after, std::int64_t as,
                               int after_real) const -> ChangedWord {
    const auto difference = [&](ChecksumWord kind) {
        return after.word(as, kind, after_real) - word(chunk, kind, real);
    };
    const std::uint64_t plain = difference(words_plain);
    return {row_of_word<real_t<T>>(plain, difference(words_mixed), chunk_rows(chunk)), plain};
}

template <class T>
std::vector<FaultyChunk> Checksum<T>::changed_since(const Checksum& before, int first) const {
    require_shape(rows_ == before.rows_ && log_chunk_ == before.log_chunk_ && first >= 0 &&
                      first + before.columns_ <= columns_,
                  "changed_since", "the checksums belong to another block", [&] {
                      return std::to_string(rows_) + " x " + std::to_string(columns_) +
                             " from column " + std::to_string(first) + ", chunks of 2^" +
                             std::to_string(log_chunk_) + "; " + std::to_string(before.rows_) +
                             " x " + std::to_string(before.columns_) + ", 2^" +
                             std::to_string(before.log_chunk_);
                  });
    const bool words = has_words() && before.has_words();
    const auto differs = [&](std::int64_t chunk, int j) {
        bool result = false;
        for (const int kind : {checksum_plain, checksum_mixed}) {
            const Sum now = (*this)(chunk, kind, first + j);
            const Sum then = before(chunk, kind, j);
            result = result || !same_sum(std::real(now), std::real(then)) ||
                     !same_sum(std::imag(now), std::imag(then));
        }
        return result;
    };
    std::vector<FaultyChunk> result;
    for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
        FaultyChunk fault{chunk, -1, -1};
        bool one_row = words;
        for (int j = 0; j < before.columns(); ++j) {
            bool changed = differs(chunk, j);
            for (int r = 0; words && r < reals; ++r) {
                const int real = j * reals + r;
                const int now = first * reals + real;
                if (before.word(chunk, words_plain, real) == word(chunk, words_plain, now) &&
                    before.word(chunk, words_mixed, real) == word(chunk, words_mixed, now)) {
                    continue;
                }
                changed = true;
                const std::int64_t at =
                    before.changed_word(chunk, real, *this, chunk, now).row_of_chunk;
                const std::int64_t row = first_row(chunk) + at;
                one_row = one_row && at >= 0 && (fault.row < 0 || fault.row == row);
                fault.row = at < 0 ? -1 : row;
            }
            fault.column = changed && fault.column < 0 ? j : fault.column;
        }
        if (fault.column >= 0) {
            fault.row = one_row ? fault.row : -1;
            result.push_back(fault);
        }
    }
    return result;
}

namespace {

/// The first row with an infinite or NaN element; a large negative number if all elements are
/// finite. Quotients of checksums cannot locate such a row.
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
    Correction result;
    const Checksum<T> wanted(ctx, z, {}, log_chunk);
    for (const FaultyChunk& fault : Checksum<T>(ctx, y, {}, log_chunk).changed_since(wanted)) {
        ++(fault.row >= 0 ? result.rows : result.chunks);
        if (write) {
            const std::int64_t first = wanted.first_row(fault.chunk);
            const std::int64_t rows = wanted.chunk_rows(fault.chunk);
            copy(ctx, z.row_range(first, rows), y.row_range(first, rows));
        }
    }
    return result;
}

namespace {

/// Sets some elements of a row of a chunk to the values that its plain checksums require. Restores
/// the old values unless agrees(j, mixed checksum) then holds for all of them: the mixed checksum
/// tests whether the row was right.
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

/// The only row whose weight may be the quotient of the mixed and plain differences; -1 if there is
/// none or more than one. `noise`, `bound`: the smallest and the largest rounding error that each
/// difference may have.
template <class Sum>
std::int64_t row_of_differences(const std::vector<Sum>& plain, const std::vector<Sum>& mixed,
                                double noise, double bound, std::int64_t rows) {
    double largest = 0;
    for (const Sum value : plain) {
        largest = std::max(largest, std::abs(value));
    }
    double power = 0;  // relative to the largest difference: squares may overflow
    double cross = 0;
    for (std::size_t j = 0; j < plain.size(); ++j) {
        power += std::norm(plain[j] / largest);
        cross += std::real(conjugate(plain[j] / largest) * (mixed[j] / largest));
    }
    const double quotient = cross / power;
    double scatter = 0;
    for (std::size_t j = 0; j < plain.size(); ++j) {
        // A column that alone has a large difference always fits its own quotient: only the others
        // measure the scatter.
        const Sum rest = (mixed[j] - quotient * plain[j]) / largest;
        scatter += std::abs(plain[j]) == largest ? 0 : std::norm(rest);
    }
    constexpr std::size_t enough = 8;  // columns needed to estimate the scatter
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
    using Real = real_t<T>;
    using Word = std::conditional_t<sizeof(Real) == sizeof(double), std::uint64_t, std::uint32_t>;
    constexpr int reals = is_complex_v<T> ? 2 : 1;
    require_shape(x.cols == before.columns() && fault.chunk < before.chunks() &&
                      before.first_row(fault.chunk) + before.chunk_rows(fault.chunk) <= x.rows,
                  "restore", "the checksums belong to another block", [&] {
                      return describe(x) + "; " + std::to_string(before.columns()) +
                             " columns, chunk " + std::to_string(fault.chunk) + " of " +
                             std::to_string(before.chunks());
                  });
    if (!before.has_words()) {
        return false;
    }
    const BlockView<T> chunk =
        x.row_range(before.first_row(fault.chunk), before.chunk_rows(fault.chunk));
    const Checksum<T> faulty(ctx, chunk, {}, before.log_chunk());
    std::vector<std::pair<BlockView<T>, T>> changed;  // elements and their faulty values
    const auto put_back = [&] {
        for (auto it = changed.rbegin(); it != changed.rend(); ++it) {
            copy(ctx, BlockView<const T>(&it->second, 1, 1, 1), it->first);
        }
        return false;
    };
    for (int real = 0; real < reals * x.cols; ++real) {
        const auto [row, difference] = before.changed_word(fault.chunk, real, faulty, 0, real);
        if (difference == 0) {
            continue;
        }
        if (row < 0) {
            return put_back();
        }
        const BlockView<T> element = chunk.row_range(row, 1).columns(real / reals, 1);
        T value;
        const BlockView<T> host(&value, 1, 1, 1);
        copy(ctx, BlockView<const T>(element), host);
        changed.emplace_back(element, value);
        Word word;
        char* const bytes =
            reinterpret_cast<char*>(&value) + static_cast<std::size_t>(real % reals) * sizeof(Real);
        std::memcpy(&word, bytes, sizeof(Word));
        word -= static_cast<Word>(difference);
        std::memcpy(bytes, &word, sizeof(Word));
        copy(ctx, BlockView<const T>(host), element);
    }
    // Compare all sums: words that cancel in some sums show in others.
    return before.same_chunk(fault.chunk, Checksum<T>(ctx, chunk, {}, before.log_chunk())) ||
           put_back();
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
        // The squares of huge elements overflow.
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

template <class T>
bool unchanged_since(Context& ctx, const Checksum<T>& before, BlockView<const T> x) {
    const bool same = Checksum<T>(ctx, x, {}, before.log_chunk()).same(before);
    return ctx.comm().sum(std::int64_t{same ? 0 : 1}) == 0;
}

#define QUIVER_INSTANTIATE(T)                                                           \
    template class Checksum<T>;                                                         \
    template bool unchanged_since(Context&, const Checksum<T>&, BlockView<const T>);    \
    template class ChecksumUnderWay<T>;                                                 \
    template Correction correct(Context&, BlockView<T>, BlockView<const T>, int, bool); \
    template bool restore(Context&, BlockView<T>, const ChunkSums<T>&);                 \
    template bool restore(Context&, BlockView<T>, const FaultyChunk&, const Checksum<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
