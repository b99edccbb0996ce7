// SPDX-License-Identifier: BSD-3-Clause
// Saves and restores the search space of block Jacobi-Davidson. H, G and W are not saved: one block
// product with V computes them again.
#include <algorithm>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/jacobi_davidson/jada_basis.hpp"

namespace quiver {

template <class T>
void JadaBasis<T>::save(SolverState<T>& state) const {
    const auto number = [&](const char* name, auto value) {
        state.numbers[name] = {static_cast<double>(value)};
    };
    number("locked", locked_);
    number("size", size_);
    number("refined", refined_);
    number("norm", norm_);
    number("products", products_);
    number("applications", applications());
    number("random_streams", random_streams_);
    state.numbers["locked_values"] = locked_value_;
    state.numbers["locked_residuals"] = locked_residual_;
    state.blocks["basis"] = basis_.columns(fixed_, locked_ + size_);
}

template <class T>
void JadaBasis<T>::restore(const SavedState<T>& state) {
    forget_search_space();
    const int locked = state.count("locked", max_locked_);
    const int size = state.count("size", std::min<std::int64_t>(max_search_, rows_ - locked));
    locked_value_ = state.values("locked_values", locked);
    locked_residual_ = state.values("locked_residuals", locked);
    norm_ = std::max(norm_, state.number("norm"));
    random_streams_ = static_cast<std::uint64_t>(state.whole("random_streams", 0, most_count));
    state.read(ctx_, "basis", basis_.columns(fixed_, locked + size));
    if (locked > 0 && orthonormalise(fixed_, locked, false) < locked) {
        state.refuse("its " + std::to_string(locked) + " locked pairs are linearly dependent");
    }
    locked_ = locked;
    ++epoch_;
    if (size > 0) {
        expand(size);
    }
    refined_ = state.flag("refined");
    products_ = state.whole("products", 0, most_count);
    // Products of this run are added to the restored count.
    norm_applications_ = state.whole("applications", 0, most_count) - a_.applications();
}

#define QUIVER_INSTANTIATE(T)                                \
    template void JadaBasis<T>::save(SolverState<T>&) const; \
    template void JadaBasis<T>::restore(const SavedState<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
