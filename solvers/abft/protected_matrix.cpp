// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/protected_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/abft/product_checksums.hpp"
#include "solvers/abft/row_check.hpp"

namespace quiver {
namespace {

template <class T>
T shift_of(const ApplyOptions<T>& options, int column) {
    const std::span<const T> shift = options.shift;
    return shift.empty() ? T(0) : shift[shift.size() == 1 ? 0 : static_cast<std::size_t>(column)];
}

}  // namespace

template <class T>
ProtectedMatrix<T>::ProtectedMatrix(Context& ctx, SparseMatrix<T>& a, const AbftOptions& options)
    : a_(a),
      place_(ctx.place()),
      guard_(options),
      sums_{std::make_shared<ProductChecksums<T>>(), std::make_shared<ProductChecksums<T>>()} {
    if (options.mode == AbftMode::off) {
        return;
    }
    ctx.comm().agree([&] {
        index_checks_ = a.check_indices();
        norms_ = matrix_sums(ctx, a, options.log_chunk);
        const std::vector<Sum> sums = std::exchange(norms_.sums, {});
        const std::size_t bytes = sums.size() * sizeof(Sum);
        guards_ = ctx.allocate(memory_kind(ctx.place()), bytes, "checksums of the matrix");
        const auto rows = static_cast<std::int64_t>(sums.size() / 2);
        copy(ctx, BlockView<const Sum>(sums.data(), rows, 2, 2),
             BlockView<Sum>(guards_.template as<Sum>(), rows, 2, 2, ctx.place()));
        std::vector<MatrixArray> arrays = a.arrays();
        arrays.push_back({"checksums of the matrix", guards_.template as<void>(), bytes});
        for (const MatrixArray& array : arrays) {
            guarded_.emplace_back(ctx, array.name, array.data, array.bytes);
        }
    });
    largest_row_ = ctx.comm().max(norms_.row_norm);
}

template <class T>
auto ProtectedMatrix<T>::guards(std::int64_t first, std::int64_t rows) const -> BlockView<Sum> {
    const std::int64_t own = a_.row_map().local_rows();
    return BlockView<Sum>(guards_.template as<Sum>(), own + a_.halo_size(), 2, 2, place_)
        .row_range(first, rows);
}

template <class T>
void ProtectedMatrix<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    apply_fused(ctx, x, y, {});
}

template <class T>
Checksum<T> ProtectedMatrix<T>::encode_input(Context& ctx, BlockView<const T> x) const {
    return Checksum<T>(ctx, x, guards(0, x.rows), log_chunk(), guard_.words());
}

template <class T>
void ProtectedMatrix<T>::begin_encoding(Context& ctx, BlockView<const T> x,
                                        ChecksumUnderWay<T>& sums) const {
    sums.begin(ctx, x, guards(0, x.rows), log_chunk(), guard_.words());
}

template <class T>
void ProtectedMatrix<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                     const ApplyOptions<T>& options) {
    const ScopedPolicy kernels(ctx, nullptr);  // no second check by a policy
    start(ctx, x, y, options, false);
    if (current() && current()->waits) {
        return;
    }
    look(ctx, false);
    if (mode() != AbftMode::off) {
        form_dots(ctx, x, y, options);
    }
}

template <class T>
auto ProtectedMatrix<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y,
                               Checksum<T> x_sums) -> const Outcome& {
    require_shape(mode() == AbftMode::off || x_sums.columns() == x.cols, "protected product",
                  "the checksums belong to another block", [&] {
                      return describe(x) + "; checksums of " + std::to_string(x_sums.columns()) +
                             " columns";
                  });
    begin(ctx, x, y);
    return finish(ctx, std::move(x_sums), false);
}

template <class T>
void ProtectedMatrix<T>::begin(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    const ScopedPolicy kernels(ctx, nullptr);
    start(ctx, x, y, {}, true);
}

template <class T>
auto ProtectedMatrix<T>::finish(Context& ctx, Checksum<T> x_sums, bool later_work)
    -> const Outcome& {
    const ScopedPolicy kernels(ctx, nullptr);
    if (current()) {
        current()->x.sums = std::move(x_sums);
    }
    return look(ctx, later_work);
}

/// sums_follow: the caller passes the checksums of X to finish().
template <class T>
void ProtectedMatrix<T>::start(Context& ctx, BlockView<const T> x, BlockView<T> y,
                               const ApplyOptions<T>& options, bool sums_follow) {
    const auto in_flight = [](const BlockSums<T>* sums) {
        return sums != nullptr && sums->later != nullptr;
    };
    if (!in_flight(options.x_sums) && !in_flight(options.y_sums)) {
        current().reset();  // an unchecked product is left over from a recurrence that threw
    }
    turn_ = 1 - turn_;
    current().reset();
    struck_sums_.forget();
    current_sums().forget();
    guard_.injector.set_step(++step_);
    const MatrixArray entries = a_.arrays().front();
    guard_.strike(
        ctx, FaultPlace::matrix,
        BlockView<T>(static_cast<T*>(entries.data),
                     static_cast<std::int64_t>(entries.bytes / sizeof(T)), 1, 1, ctx.place()));
    guard_.strike(ctx, FaultPlace::input, x);
    if (mode() == AbftMode::off) {
        ++counts().products;
        a_.apply_fused(ctx, x, y, options);
        guard_.strike(ctx, FaultPlace::output, y);
        return;
    }
    guard_.strike(ctx, FaultPlace::guard, guards(0, x.rows + a_.halo_size()));
    Product& product =
        current().emplace(Operand<T>(writable(x), Checksum<T>()), sums_follow, y, options);
    product.summed =
        place_ == Place::host || !guard_.injector.draw(ctx, FaultPlace::output, y).has_value();
    product.waits = place_ == Place::device && product.summed && options.repeatable &&
                    options.x_sums != nullptr && options.y_sums != nullptr &&
                    options.y_sums->may_wait && ctx.comm().size() == 1;
    product.dots = place_ == Place::device && options.beta == T(0) &&
                   !(options.dot_yy.empty() && options.dot_xy.empty());
    prepare_sums(ctx, product);
    if (product.summed) {
        multiply_summed(ctx, product);
    } else {
        multiply_struck(ctx, product);
    }
    if (product_[1 - turn_]) {
        look_at_earlier(ctx);
    }
    halo_sums_.begin(ctx, a_.received(x.cols), halo_guards(), log_chunk(), WordSums::no);
    product.formed = true;
}

/// Takes the checksums of X and of Y before the product from the caller, if they are handed on.
/// Otherwise a pass over the block forms them, unless the product does. A product on a device never
/// forms those of the old Y.
template <class T>
void ProtectedMatrix<T>::prepare_sums(Context& ctx, Product& product) {
    const ApplyOptions<T>& options = product.options;
    const BlockView<const T> x = product.x.block;
    if (options.x_sums != nullptr && options.x_sums->known()) {
        product.x_later = options.x_sums->later;
        product.x.sums = Checksum<T>::of_totals(x.cols, options.x_sums->totals);
        product.x_carried = true;
    } else if (!product.x_known && !product.summed) {
        product.x.sums = encode_input(ctx, x);
    }
    if (options.beta != T(0)) {
        if (options.y_sums != nullptr && options.y_sums->known()) {
            product.old_later = options.y_sums->later;
            product.old_sums = Checksum<T>::of_totals(x.cols, options.y_sums->totals);
        } else if (place_ == Place::device) {
            product.old_sums = Checksum<T>(ctx, product.y, {}, log_chunk(), WordSums::no);
        }
        if (guard_.writes() && !options.repeatable) {
            product.old.emplace(ctx, product.y);
        }
    }
    for (BlockSums<T>* const sums : {options.x_sums, options.y_sums}) {
        if (sums != nullptr) {
            sums->forget();
        }
    }
    if (product.waits) {
        options.x_sums->later = product.x_given = std::make_shared<std::vector<Sum>>();
        options.y_sums->later = product.y_given = std::make_shared<std::vector<Sum>>();
    }
}

/// Computes a product on a device whose Y gets an injected fault. Passes over the blocks form all
/// checksums, so that the kernels need no instructions for faults.
template <class T>
void ProtectedMatrix<T>::multiply_struck(Context& ctx, Product& product) {
    const BlockView<T> y = product.y;
    a_.apply_fused(ctx, product.x.block, y, product.options);
    guard_.strike(ctx, FaultPlace::output, y);
    struck_sums_.begin(ctx, y,
                       product.options.y_sums != nullptr ? guards(0, y.rows) : BlockView<Sum>(),
                       log_chunk(), WordSums::no);
}

/// Asks for the checksums that are not known.
template <class T>
SpmmvSums& ProtectedMatrix<T>::ask_sums(Context& ctx, const Product& product) {
    const ApplyOptions<T>& options = product.options;
    SpmmvSums& ask = current_sums().ask(
        ctx, product.y.cols, !product.x_known && !product.x_carried,
        place_ == Place::host && options.beta != T(0) && !product.old_sums.has_totals(),
        product.dots);
    ask.weights = guards_.template as<double>();
    ask.log_chunk = log_chunk();
    ask.plain_of_x = options.x_sums != nullptr || !options.shift.empty();
    ask.given_of_y = options.y_sums != nullptr;
    return ask;
}

/// Computes the product, which forms the checksums that are not known. These checksums are in
/// flight afterwards.
template <class T>
void ProtectedMatrix<T>::multiply_summed(Context& ctx, Product& product) {
    constexpr int reals = is_complex_v<T> ? 2 : 1;
    const BlockView<const T> x = product.x.block;
    SpmmvSums& ask = ask_sums(ctx, product);
    const bool of_x = ask.x != nullptr;
    std::optional<InjectedFault> fault;
    if (place_ == Place::host) {
        fault = guard_.injector.draw(ctx, FaultPlace::output, product.y);
    }
    if (fault) {
        ask.struck_row = fault->row;
        ask.struck_real = reals * fault->column + fault->part;
        ask.struck_bits = std::uint64_t{1} << fault->bit;
    }
    a_.apply_summed(ctx, x, product.y, product.options, ask);
    if (fault) {
        guard_.injector.record<T>(*fault, static_cast<real_t<T>>(ask.before));
        ++counts().injected;
    }
    current_sums().send();
    if (of_x && !current_sums().of_x()) {
        product.x.sums = encode_input(ctx, x);
    }
}

/// Takes the checksums of X and of the old Y. Returns false if they are unknown because an earlier
/// product failed its check.
template <class T>
bool ProtectedMatrix<T>::take_sums(Product& product, bool later_work) {
    if (product.summed && current_sums().of_x()) {
        product.x.sums = current_sums().take_x(later_work);
    }
    if (product.summed && current_sums().of_old()) {
        product.old_sums = current_sums().take_old(later_work);
    }
    bool known = true;
    const auto arrived = [&](const std::shared_ptr<std::vector<Sum>>& from, Checksum<T>& to) {
        if (from != nullptr) {
            to = Checksum<T>::of_totals(product.y.cols, *from);
            known = known && to.has_totals();
        }
    };
    arrived(product.x_later, product.x.sums);
    arrived(product.old_later, product.old_sums);
    return known;
}

/// Checks the product that waited while another one was enqueued. There is no halo, because only
/// products on one rank wait.
template <class T>
void ProtectedMatrix<T>::look_at_earlier(Context& ctx) {
    turn_ = 1 - turn_;
    Product& product = *current();
    ++counts().products;
    const Checksum<T> halo = Checksum<T>::of_totals(
        product.y.cols, std::vector<Sum>(static_cast<std::size_t>(checksum_kinds(true)) *
                                         static_cast<std::size_t>(product.y.cols)));
    bool alarm = false;
    OperandRepair memory;
    if (take_sums(product, true)) {
        const WantedSums<T> wanted = wanted_of(product, halo);
        guard_.bounds = wanted.bounds();
        if (wanted.complete()) {
            ++counts().checked;
            const Checksum<T> found = current_sums().take_y(true);
            alarm = !wanted.holds(found);
            if (!alarm) {
                *product.y_given = found.totals();
                *product.x_given = product.x.sums.totals();
            }
        }
        if (alarm || (!wanted.complete() && finite_norms(product, halo))) {
            memory = repair_memory(ctx);
        }
    }
    current().reset();
    turn_ = 1 - turn_;
    require_sound(ctx, memory);
    if (alarm || memory.found > 0) {
        ++counts().alarms;
        lost_ += guard_.writes() ? 1 : 0;
        guard_.count_fault(ctx, "product", guard_.writes() ? Cure::redone : Cure::failed);
    }
}

/// Checks the product in flight, if any.
template <class T>
auto ProtectedMatrix<T>::look(Context& ctx, bool later_work) -> const Outcome& {
    outcome_ = {};
    if (!current() || !current()->formed) {
        return outcome_;  // no product was begun, or it threw
    }
    ++counts().products;
    Product& product = *current();
    const bool known = take_sums(product, later_work);
    const Checksum<T> halo = halo_sums_.take(true);
    if (!known) {
        current().reset();
        return outcome_;
    }
    WantedSums<T> wanted = wanted_of(product, halo);
    if (!wanted.complete() && finite_norms(product, halo)) {
        repair_column_sums(ctx, product, wanted);
    }
    guard_.bounds = wanted.bounds();
    if (wanted.complete()) {
        ++counts().checked;
        outcome_.sums =
            product.summed ? current_sums().take_y(later_work) : struck_sums_.take(later_work);
        outcome_.agreed = wanted.holds(outcome_.sums);
    }
    if (!outcome_.agreed && product.options.beta != T(0) && !product.old) {
        resolve_without_old(ctx, product, wanted);
    } else if (!outcome_.agreed) {
        if (product.summed) {
            outcome_.sums = Checksum<T>(ctx, product.y, {}, log_chunk(), WordSums::no);
        }
        RowCheck<T> check = check_of(ctx, product, std::move(wanted));
        if (!recover_rows(ctx, guard_, check, outcome_.sums)) {
            throw NumericalError("product " + std::to_string(counts().products) +
                                 ": its checksums are wrong, and remain wrong after several "
                                 "repetitions on rank " +
                                 std::to_string(ctx.comm().rank()) +
                                 "; the memory of this machine cannot be trusted");
        }
        if (!check.wanted.complete()) {
            outcome_.sums = {};
        }
        current_sums().forget();
        if (product.dots && guard_.writes()) {  // same bits as without a fault
            a_.repeat(ctx, product.x.block, product.y, product.options, &ask_sums(ctx, product));
            current_sums().send();
        }
        lost_ += outcome_.input_lost && product.options.repeatable ? 1 : 0;
    } else {
        hand_on_sums(product);
    }
    current().reset();
    return outcome_;
}

/// Stores the checksums that belong to the caller's blocks, after a product without an alarm.
template <class T>
void ProtectedMatrix<T>::hand_on_sums(const Product& product) {
    if (product.options.y_sums != nullptr) {
        product.options.y_sums->totals = outcome_.sums.totals();
    }
    if (product.options.x_sums != nullptr && outcome_.sums.has_totals()) {
        product.options.x_sums->totals = product.x.sums.totals();
    }
}

template <class T>
WantedSums<T> ProtectedMatrix<T>::wanted_of(const Product& product, const Checksum<T>& halo) const {
    const ApplyOptions<T>& options = product.options;
    const Checksum<T>& own = product.x.sums;
    const double unit = rounding_units<T>();
    const double norm = std::sqrt(norms_.row_norm * norms_.column_norm);
    const Sum alpha = static_cast<Sum>(options.alpha);
    const Sum beta = static_cast<Sum>(options.beta);
    WantedSums<T> wanted(product.y.rows, product.y.cols);
    for (int j = 0; j < product.y.cols; ++j) {
        const Sum shift = static_cast<Sum>(shift_of(options, j));
        const double x = std::hypot(own.norm(j), halo.norm(j));
        const double row =
            rounding_length(static_cast<double>(norms_.longest_row)) * norm + 4 * std::abs(shift);
        for (int k = 0; k < 2; ++k) {
            const Sum own_part = own.total(checksum_first + k, j);
            const Sum halo_part = halo.total(checksum_first + k, j);
            const Sum shifted = shift * own.total(k, j);
            wanted.add(
                0, k, j, alpha * (own_part + halo_part - shifted),
                std::abs(alpha) * (std::abs(own_part) + std::abs(halo_part) + std::abs(shifted)),
                std::abs(alpha) * (unit * row + norms_.lost[k]) * x);
            if (product.old_sums.has_totals()) {
                wanted.add(0, k, j, beta * product.old_sums.total(k, j),
                           4 * unit * std::abs(beta) * product.old_sums.norm(j));
            }
        }
    }
    return wanted;
}

/// True if X and the halo, and Y before the product, are finite, and so are their squares.
template <class T>
bool ProtectedMatrix<T>::finite_norms(const Product& product, const Checksum<T>& halo) const {
    double sum = 0;
    for (int j = 0; j < product.y.cols; ++j) {
        sum += product.x.sums.norm(j) + halo.norm(j) +
               (product.old_sums.has_totals() ? product.old_sums.norm(j) : 0);
    }
    return std::isfinite(sum);
}

/// Called if the expected checksums are not finite although X, the halo and the old Y are: a column
/// sum of the matrix may have changed in memory. Repairs the memory at once and forms the expected
/// checksums again. If no memory has changed, the sums have overflowed.
template <class T>
void ProtectedMatrix<T>::repair_column_sums(Context& ctx, Product& product, WantedSums<T>& wanted) {
    const OperandRepair found = repair_operands(ctx, product, wanted);
    if (found.found > 0) {
        product.options.y_sums = nullptr;  // formed with the faulty sums
        ++counts().alarms;
        guard_.count_fault(ctx, "product", found.lost() ? Cure::failed : Cure::mended);
    }
}

/// Repairs the memory of the matrix and X, and updates the sums that Y must have. A change of an X
/// whose checksums the caller handed on is found but not repaired. Throws as require_sound().
template <class T>
OperandRepair ProtectedMatrix<T>::repair_operands(Context& ctx, Product& product,
                                                  WantedSums<T>& sums) {
    OperandRepair found = repair_memory(ctx);
    require_sound(ctx, found);
    OperandRepair input;
    if (product.x_known) {
        input = product.x.repair(ctx, guard_);
        outcome_.input_restored = outcome_.input_restored || input.mended > 0;
    }
    const bool carried = product.x_carried;
    if (found.found > 0 || input.lost() || !product.x_known) {
        const bool same = renew_x_sums(ctx, product, sums);
        input.found += carried && found.found == 0 && !same ? 1 : 0;
    }
    outcome_.input_lost = outcome_.input_lost || (guard_.writes() && input.lost());
    found.add(input);
    return found;
}

/// Forms the checksums of the present X and of the halo, and from them the sums that Y must have.
/// Returns true if these sums equal the old ones up to rounding.
template <class T>
bool ProtectedMatrix<T>::renew_x_sums(Context& ctx, Product& product, WantedSums<T>& sums) {
    const BlockView<const T> x = product.x.block;
    product.x.sums = encode_input(ctx, x);
    product.x_carried = false;
    WantedSums<T> now = wanted_of(
        product, Checksum<T>(ctx, a_.received(x.cols), halo_guards(), log_chunk(), WordSums::no));
    const bool same = sums.near(now);
    sums = std::move(now);
    return same;
}

template <class T>
RowCheck<T> ProtectedMatrix<T>::check_of(Context& ctx, Product& product, WantedSums<T> wanted) {
    RowCheck<T> check{"product", product.y, std::move(wanted),
                      {},        {},        product.x_known || product.options.repeatable};
    const BlockView<const T> x = product.x.block;
    check.again = [this, &ctx, &product, x] {
        if (product.old) {
            product.old->put_back(ctx);
        }
        a_.repeat(ctx, x, product.y, product.options);
    };
    check.repair = [this, &ctx, &product](WantedSums<T>& sums) {
        const bool complete = sums.complete();
        OperandRepair found = repair_operands(ctx, product, sums);
        // Infinite or NaN sums now: X has changed, because it was finite before.
        found.found += complete && !sums.complete() ? 1 : 0;
        return found;
    };
    return check;
}

/// Used if beta is not 0 and there is no copy of the old Y: the second product is A X alone, into
/// other memory. The alarm is rounding if Y - beta Y_old has the checksums of the second product
/// and all memory is unchanged. Otherwise `correct` repairs the memory of the matrix, and the
/// caller repeats the recurrence.
template <class T>
void ProtectedMatrix<T>::resolve_without_old(Context& ctx, Product& product,
                                             WantedSums<T>& wanted) {
    ++counts().alarms;
    const Kept<T> second(ctx, product.y);
    ApplyOptions<T> alone = product.options;
    alone.beta = T(0);
    a_.repeat(ctx, product.x.block, second.view(), alone);
    const Checksum<T> sums(ctx, second.view(), {}, log_chunk(), WordSums::no);
    const Sum beta = static_cast<Sum>(product.options.beta);
    bool same = true;
    for (int j = 0; j < product.y.cols; ++j) {
        for (int k = 0; k < 2; ++k) {
            const Sum again = sums.total(k, j) + beta * product.old_sums.total(k, j);
            same = same && std::abs(outcome_.sums.total(k, j) - again) <= bound(k, j);
        }
    }
    const OperandRepair memory = repair_memory(ctx);
    require_sound(ctx, memory);
    const bool sound = memory.found == 0 &&
                       (!product.x_known || product.x.repair(ctx, guard_).found == 0) &&
                       (!product.x_carried || renew_x_sums(ctx, product, wanted));
    if (same && sound) {
        ++counts().rounding;
        return;
    }
    outcome_.sums = {};
    if (guard_.writes()) {
        // Y gets finite numbers, so that the products before the repetition can be checked.
        a_.repeat(ctx, product.x.block, product.y, alone);
        ++lost_;
    }
    guard_.count_fault(ctx, "product", guard_.writes() ? Cure::redone : Cure::failed);
}

/// Throws NumericalError, with `correct`, if memory of the matrix cannot be repaired.
template <class T>
void ProtectedMatrix<T>::require_sound(Context& ctx, const OperandRepair& memory) {
    if (guard_.writes() && memory.lost()) {
        ++counts().faults;
        ++counts().failed;
        throw NumericalError(
            "product " + std::to_string(counts().products) +
            ": more than one of 65536 neighbouring words of the matrix has changed in memory on "
            "rank " +
            std::to_string(ctx.comm().rank()) + "; read the matrix again");
    }
}

template <class T>
OperandRepair ProtectedMatrix<T>::repair_memory(Context& ctx) {
    OperandRepair repair;
    for (GuardedArray& array : guarded_) {
        repair.add(array.repair(ctx, guard_));
    }
    return repair;
}

template <class T>
void ProtectedMatrix<T>::audit(Context& ctx) {
    if (mode() == AbftMode::off) {
        return;
    }
    ++counts().basis_checks;
    const OperandRepair repair = repair_memory(ctx);
    guard_.count_memory(repair.found, repair.mended);
    audited_.add(repair);
}

template <class T>
OperatorFaults ProtectedMatrix<T>::faults() const {
    return {mode() != AbftMode::off, guard_.writes(),
            guard_.writes() ? audited_.found - audited_.mended : guard_.counts.faults,
            audited_.mended, lost_};
}

template <class T>
void ProtectedMatrix<T>::form_dots(Context& ctx, BlockView<const T> x, BlockView<const T> y,
                                   const ApplyOptions<T>& options) {
    const std::size_t with_y = options.dot_yy.size() + options.dot_xy.size();
    std::vector<T> sums(with_y + options.dot_xx.size());
    if (sums.empty()) {
        return;
    }
    const std::span<T> yy = std::span<T>(sums).first(options.dot_yy.size());
    const std::span<T> xy = std::span<T>(sums).subspan(yy.size(), options.dot_xy.size());
    const std::span<T> xx = std::span<T>(sums).subspan(with_y);
    const bool formed = current_sums().has_dots();
    if (formed) {
        current_sums().take_dots(yy, xy, false);
    }
    if (!formed && !yy.empty()) {
        dots(ctx, y, y, yy, Reduce::this_rank);
    }
    if (!formed && !xy.empty()) {
        dots(ctx, x, y, xy, Reduce::this_rank);
    }
    if (!xx.empty()) {
        dots(ctx, x, x, xx, Reduce::this_rank);
    }
    ctx.comm().sum(std::span<T>(sums));
    std::copy(yy.begin(), yy.end(), options.dot_yy.begin());
    std::copy(xy.begin(), xy.end(), options.dot_xy.begin());
    std::copy(xx.begin(), xx.end(), options.dot_xx.begin());
}

#define QUIVER_INSTANTIATE(T) template class ProtectedMatrix<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
