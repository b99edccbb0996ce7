// SPDX-License-Identifier: BSD-3-Clause
// A checkpoint that keeps the state of a solver in host memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver::test {

/// A deep copy of a state.
template <class T>
struct KeptState {
    struct Block {
        int cols = 0;
        std::vector<T> values;
    };
    std::string solver;
    StateNumbers numbers;
    std::map<std::string, SmallMatrix<T>> matrices;
    std::map<std::string, Block> blocks;
};

template <class T>
class KeptSavedState : public SavedState<T> {
  public:
    explicit KeptSavedState(const KeptState<T>& kept)
        : SavedState<T>(kept.solver, kept.numbers, "kept state"), kept_(kept) {}

    void read(Context& ctx, const std::string& block, BlockView<T> x) const override {
        const auto at = kept_.blocks.find(block);
        if (x.cols > 0 && (at == kept_.blocks.end() || at->second.cols != x.cols)) {
            this->refuse("no such block " + block);
        }
        if (x.cols > 0) {
            copy(ctx, BlockView<const T>(at->second.values.data(), x.rows, x.cols, x.cols), x);
        }
    }
    SmallMatrix<T> matrix(Context&, const std::string& name, int rows, int cols) const override {
        const auto at = kept_.matrices.find(name);
        if (at == kept_.matrices.end() || at->second.rows() != rows || at->second.cols() != cols) {
            this->refuse("no such matrix " + name);
        }
        return at->second;
    }

  private:
    const KeptState<T>& kept_;
};

/// Requests the state of every iteration and keeps the last one.
template <class T>
class MemoryCheckpoint : public Checkpoint<T> {
  public:
    MemoryCheckpoint() = default;
    explicit MemoryCheckpoint(const KeptState<T>& from)
        : saved_(std::make_unique<KeptSavedState<T>>(from)) {}

    bool due() override { return true; }
    const SavedState<T>* saved() const override { return saved_.get(); }
    void save(Context& ctx, const SolverState<T>& state) override {
        ++saves;
        kept.emplace();
        kept->solver = state.solver;
        kept->numbers = state.numbers;
        kept->matrices = state.matrices;
        for (const auto& [name, block] : state.blocks) {
            auto& to = kept->blocks[name];
            to.cols = block.cols;
            to.values.resize(static_cast<std::size_t>(block.rows * block.cols));
            copy(ctx, block, BlockView<T>(to.values.data(), block.rows, block.cols, block.cols));
        }
    }

    std::optional<KeptState<T>> kept;
    int saves = 0;

  private:
    std::unique_ptr<KeptSavedState<T>> saved_;
};

}  // namespace quiver::test
