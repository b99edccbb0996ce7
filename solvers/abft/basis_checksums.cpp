// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/basis_checksums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "blockvec/scalar_list.hpp"

namespace quiver {

template <class T>
void BasisChecksums<T>::forget_from(int column) {
    while (!parts_.empty() && parts_.back().first + parts_.back().columns > column) {
        for (auto& totals : totals_) {
            totals.resize(static_cast<std::size_t>(parts_.back().first));
        }
        parts_.pop_back();
    }
    rotations_ = parts_.empty() ? 0 : rotations_;
}

template <class T>
void BasisChecksums<T>::append(Checksum<T> sums) {
    const int first = columns();
    for (int j = 0; j < sums.columns(); ++j) {
        totals_[0].push_back(sums.total(checksum_plain, j));
        totals_[1].push_back(sums.total(checksum_mixed, j));
    }
    if (sums.columns() > 0) {
        parts_.push_back({first, columns() - first, std::move(sums)});
    }
}

template <class T>
Checksum<T> BasisChecksums<T>::take_last(int columns) {
    Checksum<T> last;
    if (!parts_.empty() && parts_.back().columns == columns) {
        last = std::move(parts_.back().sums);
    }
    forget_from(this->columns() - columns);
    return last;
}

template <class T>
void BasisChecksums<T>::learn(Context& ctx, BlockView<const T> all) {
    if (all.cols > columns()) {
        append(Checksum<T>(ctx, all.columns(columns(), all.cols - columns()), {}, log_chunk_));
    }
}

template <class T>
void BasisChecksums<T>::rotate(int first, const SmallMatrix<T>& s) {
    if (columns() != first + s.rows()) {
        forget_from(first);
        return;
    }
    for (auto& totals : totals_) {
        const std::vector<Sum> old(totals.begin() + first, totals.end());
        totals.resize(static_cast<std::size_t>(first));
        for (int j = 0; j < s.cols(); ++j) {
            Sum sum(0);
            for (int i = 0; i < s.rows(); ++i) {
                sum += old[static_cast<std::size_t>(i)] * static_cast<Sum>(s(i, j));
            }
            totals.push_back(sum);
        }
    }
    parts_.assign(1, Part{0, columns(), {}});
    ++rotations_;
}

template <class T>
bool BasisChecksums<T>::relation_holds(const Checksum<T>& y, const SmallMatrix<T>& h,
                                       const Checksum<T>& q, const SmallMatrix<T>& r,
                                       int passes) const {
    const double length =
        std::sqrt(static_cast<double>(h.rows())) + std::sqrt(static_cast<double>(h.cols())) + 16;
    // The rounding errors of the checksums themselves, which may be larger than the norms.
    constexpr double sums_units = 16 * std::numeric_limits<double>::epsilon();
    for (int j = 0; j < y.columns(); ++j) {
        double h_squares = 0;
        double r_squares = 0;
        Sum rest[2] = {y.total(checksum_plain, j), y.total(checksum_mixed, j)};
        double size = std::abs(rest[0]) + std::abs(rest[1]);
        const auto subtract = [&](Sum plain, Sum mixed) {
            rest[0] -= plain;
            rest[1] -= mixed;
            size += std::abs(plain) + std::abs(mixed);
        };
        for (int i = 0; i < h.rows(); ++i) {
            const Sum factor = static_cast<Sum>(h(i, j));
            subtract(totals_[0][static_cast<std::size_t>(i)] * factor,
                     totals_[1][static_cast<std::size_t>(i)] * factor);
            h_squares += std::norm(factor);
        }
        for (int i = 0; i < r.rows(); ++i) {
            const Sum factor = static_cast<Sum>(r(i, j));
            subtract(q.total(checksum_plain, i) * factor, q.total(checksum_mixed, i) * factor);
            r_squares += std::norm(factor);
        }
        const double bound = (1 + rotations_) * (rounding_units<T>() * passes * length *
                                                     (std::sqrt(h_squares) + std::sqrt(r_squares)) +
                                                 sums_units * size);
        if (!(std::abs(rest[0]) <= bound && std::abs(rest[1]) <= bound)) {
            return false;
        }
    }
    return true;
}

template <class T>
auto BasisChecksums<T>::verify(Context& ctx, BlockView<T> all, bool write) -> Verdict {
    Verdict verdict;
    Checksum<T> run;
    int run_begin = 0;
    int run_end = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
        Part& part = parts_[p];
        if (part.sums.empty() || part.first + part.columns > all.cols) {
            continue;
        }
        if (part.first >= run_end) {
            // Check parts of the same width in one pass: reading a narrow part of a wide basis
            // costs more than its bytes.
            run_begin = run_end = part.first;
            for (std::size_t q = p; q < parts_.size() && parts_[q].columns == part.columns &&
                                    run_end + part.columns <= all.cols;
                 ++q) {
                run_end += part.columns;
            }
            run = Checksum<T>(ctx, all.columns(run_begin, run_end - run_begin), {}, log_chunk_,
                              WordSums::yes, part.columns);
        }
        const BlockView<T> block = all.columns(part.first, part.columns);
        const std::vector<FaultyChunk> faults =
            run.changed_since(part.sums, part.first - run_begin);
        int restored = 0;
        for (const FaultyChunk& fault : faults) {
            restored += write && restore(ctx, block, fault, part.sums) ? 1 : 0;
        }
        const int found = static_cast<int>(faults.size());
        verdict.found += found;
        verdict.restored += restored;
        if (restored < found) {
            part.sums = Checksum<T>(ctx, block, {},
                                    log_chunk_);  // the present contents are the new reference
        }
    }
    return verdict;
}

template <class T>
auto BasisChecksums<T>::rotated(int first, const SmallMatrix<T>& s) const
    -> std::optional<WantedSums<T>> {
    std::vector<const Part*> v;
    int column = first;
    for (const Part& part : parts_) {
        if (part.first == column && !part.sums.empty()) {
            v.push_back(&part);
            column += part.columns;
        }
    }
    if (v.empty() || column != first + s.rows() || column != columns()) {
        return std::nullopt;
    }
    const auto width = static_cast<std::size_t>(s.cols());
    std::vector<Sum> factor(s.data(), s.data() + static_cast<std::size_t>(s.rows()) * width);
    std::vector<double> length(width);
    for (std::size_t at = 0; at < factor.size(); ++at) {
        length[at % width] += std::norm(factor[at]);
    }
    constexpr double sums_units = 16 * std::numeric_limits<double>::epsilon();
    const double unit = rounding_units<T>() / 4 * rounding_length(s.rows());
    const Checksum<T>& shape = v.front()->sums;
    const std::int64_t chunks = shape.chunks();
    const std::int64_t rows =
        chunks == 0 ? 0 : shape.first_row(chunks - 1) + shape.chunk_rows(chunks - 1);
    WantedSums<T> wanted(rows, s.cols(), log_chunk_);
    std::vector<Sum> sums(width);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const double alike = std::max(4.0, std::sqrt(static_cast<double>(shape.chunk_rows(chunk))));
        for (int k = 0; k < 2; ++k) {
            std::fill(sums.begin(), sums.end(), Sum(0));
            double squares = 0;
            double sizes = 0;
            const Sum* row = factor.data();
            for (const Part* part : v) {
                for (int l = 0; l < part->columns; ++l, row += width) {
                    const Sum value = part->sums(chunk, k, l);
                    squares += std::real(part->sums(chunk, checksum_squares, l));
                    sizes += std::norm(value);
                    for (std::size_t j = 0; j < width; ++j) {
                        sums[j] += multiply(value, row[j]);
                    }
                }
            }
            const double bound = unit * alike * std::sqrt(squares) + sums_units * std::sqrt(sizes);
            for (std::size_t j = 0; j < width; ++j) {
                wanted.add(chunk, k, static_cast<int>(j), sums[j], bound * std::sqrt(length[j]));
            }
        }
    }
    return wanted;
}

template <class T>
auto BasisChecksums<T>::restore_rows(Context& ctx, BlockView<T> block, const WantedSums<T>& wanted,
                                     Checksum<T>& sums) const -> Verdict {
    Verdict verdict;
    for (std::int64_t chunk = 0; chunk < wanted.chunks(); ++chunk) {
        if (!wanted.holds(sums, chunk)) {
            ++verdict.found;
            verdict.restored += restore(ctx, block, wanted.of_chunk(chunk)) ? 1 : 0;
        }
    }
    if (verdict.restored > 0) {
        sums = Checksum<T>(ctx, block, {}, log_chunk_);
    }
    return verdict;
}

#define QUIVER_INSTANTIATE(T) template class BasisChecksums<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
