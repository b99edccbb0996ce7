// SPDX-License-Identifier: BSD-3-Clause
// ProductChecksums: the checksums that a sparse product forms, on their way to the host.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "blockvec/host_copy.hpp"
#include "kernels/sparse/product_sums.hpp"
#include "solvers/abft/checksum.hpp"

namespace quiver {

/// Checksums of one product at a time. The sequence is ask(), the product, send(), and at any later
/// time take_y(), take_x(), take_old() and take_dots().
template <class T>
class ProductChecksums {
  public:
    using Sum = checksum_t<T>;

    /// Returns a request for the checksums of Y and, according to the flags, for those of X, those
    /// of the old Y, and the dots x^H y. The dots y^H y are the sums of squares of Y. Discards the
    /// checksums of the last product. The memory grows to that of the widest block.
    SpmmvSums& ask(Context& ctx, int width, bool of_x, bool of_old, bool dots) {
        width_ = width;
        const std::size_t block = 2 * kinds * line();
        const std::size_t blocks = (std::size_t{1} + (of_x ? 1U : 0U) + (of_old ? 1U : 0U)) * block;
        bytes_ = (blocks + (dots ? 2 * line() : 0)) * sizeof(double);
        if (bytes_ > memory_.bytes()) {
            if (ctx.place() == Place::device) {
                copy_.emplace(ctx, bytes_);  // the previous copy is idle, and so is its source
            }
            memory_ = ctx.allocate(memory_kind(ctx.place()), bytes_, "checksums of products");
        }
        auto* const sums = memory_.template as<double>();
        ask_ = SpmmvSums();
        ask_.y = sums;
        ask_.x = of_x ? sums + block : nullptr;
        ask_.old = of_old ? sums + (of_x ? 2 : 1) * block : nullptr;
        ask_.xy = dots ? sums + blocks : nullptr;
        arrived_ = nullptr;
        return ask_;
    }
    /// Enqueues the copy of the sums on a device.
    void send() {
        if (copy_ && bytes_ > 0) {
            copy_->begin(memory_.template as<void>(), bytes_);
        }
    }
    void forget() { ask_ = SpmmvSums(); }
    bool has_dots() const { return ask_.xy != nullptr; }
    bool of_x() const { return ask_.x != nullptr; }
    bool of_old() const { return ask_.old != nullptr; }

    /// Wait for the checksums, but not for later work; `later_work` tells the ledger whether work
    /// was enqueued after them.
    Checksum<T> take_y(bool later_work) { return take(ask_.y, true, ask_.given_of_y, later_work); }
    Checksum<T> take_x(bool later_work) { return take(ask_.x, ask_.plain_of_x, true, later_work); }
    Checksum<T> take_old(bool later_work) { return take(ask_.old, true, false, later_work); }

    /// Stores the dots of this rank; an empty span is not written.
    void take_dots(std::span<T> yy, std::span<T> xy, bool later_work) {
        const Checksum<T> sums = take_y(later_work);
        for (std::size_t j = 0; j < yy.size(); ++j) {
            yy[j] = static_cast<T>(sums.total(checksum_squares, static_cast<int>(j)));
        }
        const double* const from = arrived_ + (ask_.xy - memory_.template as<double>());
        for (std::size_t j = 0; j < xy.size(); ++j) {
            Sum sum(0);
            for (std::size_t part = 0; ask_.stored && part < reals; ++part) {
                const double* const high = from + reals * j + part;
                reinterpret_cast<double*>(&sum)[part] = high[0] + high[line()];
            }
            xy[j] = static_cast<T>(sum);
        }
    }

  private:
    static constexpr std::size_t kinds = SpmmvSums::kinds;
    static constexpr std::size_t reals = is_complex_v<T> ? 2 : 1;
    std::size_t line() const { return reals * static_cast<std::size_t>(width_); }

    /// plain, given: whether the kinds without and with weights were formed; the others become 0.
    Checksum<T> take(const double* place, bool plain, bool given, bool later_work) {
        const std::size_t columns = static_cast<std::size_t>(width_);
        std::vector<Sum> totals(kinds * columns);
        if (columns > 0 && arrived_ == nullptr) {
            arrived_ = copy_ ? static_cast<const double*>(copy_->wait(later_work))
                             : memory_.template as<double>();
        }
        const double* const from = arrived_ + (place - memory_.template as<double>());
        auto* const to = reinterpret_cast<double*>(totals.data());
        // A rank without rows has no product and no sums.
        for (std::size_t at = 0; ask_.stored && at < kinds * line(); ++at) {
            const std::size_t kind = at / line();
            if (kind == checksum_squares || (kind < checksum_squares ? plain : given)) {
                const double* const high = from + 2 * kind * line() + at % line();
                to[at] = high[0] + high[line()];
            }
        }
        for (std::size_t j = 0; is_complex_v<T> && j < columns; ++j) {
            Sum& squares = totals[checksum_squares * columns + j];
            squares = Sum(std::real(squares) + std::imag(squares));
        }
        return Checksum<T>::of_totals(width_, std::move(totals));
    }

    int width_ = 0;
    std::size_t bytes_ = 0;
    SpmmvSums ask_;
    Buffer memory_;
    std::optional<HostCopy> copy_;
    const double* arrived_ = nullptr;
};

}  // namespace quiver
