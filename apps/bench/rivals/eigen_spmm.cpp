// SPDX-License-Identifier: BSD-3-Clause
// Compiled once for each instruction set, like eigen_gemm.cpp; QUIVER_EIGEN_MAKE_SPMM is the name
// of the external function.
#include <Eigen/SparseCore>

#include "apps/bench/rivals/eigen_gemm.hpp"

namespace quiver::apps::bench {
namespace {

/// A sparse matrix by rows times a row-major block, or times a vector if the block has one column.
class EigenSpmm final : public Spmm {
  public:
    void run(const SpmmCall<float>& call) override { multiply(call); }
    void run(const SpmmCall<double>& call) override { multiply(call); }
    void run(const SpmmCall<std::complex<float>>& call) override { multiply(call); }
    void run(const SpmmCall<std::complex<double>>& call) override { multiply(call); }

  private:
    template <class T>
    static void multiply(const SpmmCall<T>& call) {
        using Sparse = Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>;
        using Block = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
        using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
        const Eigen::Map<const Sparse> a(call.y.rows, call.x.rows, call.nonzeros, call.row_start,
                                         call.column, call.value);
        if (call.x.cols == 1 && call.x.ld == 1 && call.y.ld == 1) {
            Eigen::Map<Vector>(call.y.data, call.y.rows).noalias() =
                a * Eigen::Map<const Vector>(call.x.data, call.x.rows);
            return;
        }
        using Stride = Eigen::OuterStride<>;
        Eigen::Map<Block, Eigen::Unaligned, Stride>(call.y.data, call.y.rows, call.y.cols,
                                                    Stride(call.y.ld))
            .noalias() = a * Eigen::Map<const Block, Eigen::Unaligned, Stride>(
                                 call.x.data, call.x.rows, call.x.cols, Stride(call.x.ld));
    }
};

}  // namespace

std::unique_ptr<Spmm> QUIVER_EIGEN_MAKE_SPMM() {
    return std::make_unique<EigenSpmm>();
}

}  // namespace quiver::apps::bench
