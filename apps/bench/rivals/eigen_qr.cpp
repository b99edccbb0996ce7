// SPDX-License-Identifier: BSD-3-Clause
// Compiled once for each instruction set, like eigen_gemm.cpp; QUIVER_EIGEN_MAKE_QR is the name of
// the external function.
#include <Eigen/Dense>

#include "apps/bench/rivals/eigen_gemm.hpp"

namespace quiver::apps::bench {
namespace {

/// Householder QR of a column-major copy, as a user of Eigen writes it.
class EigenQr final : public Qr {
  public:
    void run(const QrCall<float>& call) override { factor(call); }
    void run(const QrCall<double>& call) override { factor(call); }
    void run(const QrCall<std::complex<float>>& call) override { factor(call); }
    void run(const QrCall<std::complex<double>>& call) override { factor(call); }

  private:
    template <class T>
    static auto map(const BlockView<T>& view) {
        using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
        return Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>(
            view.data, view.rows, view.cols, Eigen::OuterStride<>(view.ld));
    }

    template <class T>
    static void factor(const QrCall<T>& call) {
        using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
        auto x = map(call.x);
        const Eigen::Index n = x.cols();
        const Eigen::HouseholderQR<Matrix> qr{Matrix(x)};
        map(call.r) = Matrix(qr.matrixQR().topRows(n).template triangularView<Eigen::Upper>());
        const Matrix q = qr.householderQ() * Matrix::Identity(x.rows(), n);
        x = q;
    }
};

}  // namespace

std::unique_ptr<Qr> QUIVER_EIGEN_MAKE_QR() {
    return std::make_unique<EigenQr>();
}

}  // namespace quiver::apps::bench
