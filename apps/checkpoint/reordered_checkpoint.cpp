// SPDX-License-Identifier: BSD-3-Clause
#include "apps/checkpoint/reordered_checkpoint.hpp"

#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver::apps {

/// The saved state with blocks in the solver's numbering.
template <class T>
class ReorderedCheckpoint<T>::State final : public SavedState<T> {
  public:
    State(const SavedState<T>& inner, const Reordering& reordering)
        : SavedState<T>(inner), inner_(inner), reordering_(reordering) {}

    void read(Context& ctx, const std::string& block, BlockView<T> x) const override {
        BlockVector<T> user;
        ctx.comm().agree(
            [&] { user = BlockVector<T>(ctx, reordering_.user_map(), x.cols, 0, Place::host); });
        inner_.read(ctx, block, user.view());
        reordering_.to_solver(ctx, user.view(), x);
    }
    SmallMatrix<T> matrix(Context& ctx, const std::string& name, int rows,
                          int cols) const override {
        return inner_.matrix(ctx, name, rows, cols);
    }

  private:
    const SavedState<T>& inner_;
    const Reordering& reordering_;
};

template <class T>
ReorderedCheckpoint<T>::ReorderedCheckpoint(Checkpoint<T>& inner, const Reordering& reordering)
    : inner_(inner), reordering_(reordering) {
    if (const SavedState<T>* const state = inner_.saved(); state != nullptr) {
        saved_ = std::make_unique<State>(*state, reordering_);
    }
}

template <class T>
ReorderedCheckpoint<T>::~ReorderedCheckpoint() = default;

template <class T>
bool ReorderedCheckpoint<T>::due() {
    return inner_.due();
}

template <class T>
const SavedState<T>* ReorderedCheckpoint<T>::saved() const {
    return saved_.get();
}

template <class T>
void ReorderedCheckpoint<T>::save(Context& ctx, const SolverState<T>& state) {
    SolverState<T> in_user_order = state;
    std::vector<BlockVector<T>> blocks;
    for (auto& [name, block] : in_user_order.blocks) {
        blocks.push_back(reordering_.to_user<T>(ctx, block));
        block = std::as_const(blocks.back()).view();
    }
    inner_.save(ctx, in_user_order);
}

#define QUIVER_INSTANTIATE(T) template class ReorderedCheckpoint<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
