// SPDX-License-Identifier: BSD-3-Clause
// SmallMatrix: the m x n result of a tall & skinny product, in host memory, equal on every rank.
#pragma once

#include <utility>
#include <vector>

#include "blockvec/view.hpp"

namespace quiver {

/// Row-major rows x cols matrix in host memory, initialised to zero. An operation that fills a
/// SmallMatrix writes the same bits on every rank of the communicator.
template <class T>
class SmallMatrix {
  public:
    SmallMatrix() = default;
    SmallMatrix(const SmallMatrix&) = default;
    SmallMatrix& operator=(const SmallMatrix&) = default;
    /// A moved-from matrix is 0 x 0.
    SmallMatrix(SmallMatrix&& other) noexcept
        : rows_(std::exchange(other.rows_, 0)),
          cols_(std::exchange(other.cols_, 0)),
          values_(std::exchange(other.values_, {})) {}
    SmallMatrix& operator=(SmallMatrix&& other) noexcept {
        rows_ = std::exchange(other.rows_, 0);
        cols_ = std::exchange(other.cols_, 0);
        values_ = std::exchange(other.values_, {});
        return *this;
    }
    ~SmallMatrix() = default;
    SmallMatrix(int rows, int cols)
        : rows_(rows),
          cols_(cols),
          values_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols), T(0)) {}
    static SmallMatrix identity(int n) {
        SmallMatrix result(n, n);
        for (int i = 0; i < n; ++i) {
            result(i, i) = T(1);
        }
        return result;
    }

    int rows() const { return rows_; }
    int cols() const { return cols_; }
    T* data() { return values_.data(); }
    const T* data() const { return values_.data(); }
    T& operator()(int i, int j) { return values_[index(i, j)]; }
    const T& operator()(int i, int j) const { return values_[index(i, j)]; }

    BlockView<T> view() { return {values_.data(), rows_, cols_, cols_}; }
    BlockView<const T> view() const { return {values_.data(), rows_, cols_, cols_}; }
    operator BlockView<T>() { return view(); }
    operator BlockView<const T>() const { return view(); }

  private:
    std::size_t index(int i, int j) const {
        return static_cast<std::size_t>(i) * static_cast<std::size_t>(cols_) +
               static_cast<std::size_t>(j);
    }
    int rows_ = 0;
    int cols_ = 0;
    std::vector<T> values_;
};

}  // namespace quiver
