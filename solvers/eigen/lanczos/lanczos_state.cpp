// SPDX-License-Identifier: BSD-3-Clause
// Saves and restores the basis of block Lanczos.
#include <algorithm>
#include <cstdint>
#include <string>

#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

template <class T>
void LanczosBasis<T>::save(SolverState<T>& state, const std::string& prefix) {
    settle();
    const auto number = [&](const char* name, auto value) {
        state.numbers[prefix + name] = {static_cast<double>(value)};
    };
    number("locked", locked_);
    number("size", size_);
    number("next", next_);
    number("last_width", last_width_);
    number("size_at_ritz", size_at_ritz_);
    number("refined", refined_);
    number("norm", norm_);
    number("steps", steps_);
    number("applications", applications());
    number("random_streams", random_streams_);
    state.numbers[prefix + "locked_values"] = locked_value_;
    state.numbers[prefix + "locked_residuals"] = locked_residual_;
    state.matrices[prefix + "h"] = h_;
    state.matrices[prefix + "coupling"] = part(coupling_, 0, next_, 0, last_width_);
    state.blocks[prefix + "basis"] = basis_.columns(fixed_, locked_ + size_ + next_);
}

template <class T>
void LanczosBasis<T>::restore(const SavedState<T>& state, const std::string& prefix) {
    locked_ = state.count(prefix + "locked", max_locked_);
    size_ = state.count(prefix + "size", capacity());
    next_ = state.count(prefix + "next", rows_ - locked_ - size_);
    last_width_ = state.count(prefix + "last_width", size_);
    size_at_ritz_ = state.count(prefix + "size_at_ritz", size_);
    refined_ = state.flag(prefix + "refined");
    norm_ = std::max(norm_, state.number(prefix + "norm"));
    steps_ = state.whole(prefix + "steps", 0, most_count);
    applications_before_ = state.whole(prefix + "applications", 0, most_count);
    random_streams_ =
        static_cast<std::uint64_t>(state.whole(prefix + "random_streams", 0, most_count));
    locked_value_ = state.values(prefix + "locked_values", locked_);
    locked_residual_ = state.values(prefix + "locked_residuals", locked_);
    h_ = state.matrix(ctx_, prefix + "h", size_, size_);
    coupling_ = state.matrix(ctx_, prefix + "coupling", next_, last_width_);
    const int columns = locked_ + size_ + next_;
    if (columns > basis_.capacity() - fixed_) {
        state.refuse("a basis of " + std::to_string(columns) +
                     " columns, but there is room only for " +
                     std::to_string(basis_.capacity() - fixed_));
    }
    state.read(ctx_, prefix + "basis", basis_.columns(fixed_, columns));
    take_snapshot();
}

#define QUIVER_INSTANTIATE(T)                                                 \
    template void LanczosBasis<T>::save(SolverState<T>&, const std::string&); \
    template void LanczosBasis<T>::restore(const SavedState<T>&, const std::string&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
