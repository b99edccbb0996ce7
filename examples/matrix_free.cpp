// SPDX-License-Identifier: BSD-3-Clause
// A matrix-free Hamiltonian: a class derived from Operator, which eigensolve() accepts like a
// matrix. The Hamiltonian is that of a ring of L spins in a transverse field, H = - sum s^z_i
// s^z_i+1 - h sum s^x_i, in the basis of s^z. Its ground state is known (Pfeuty 1970): with k =
// pi/L, 3 pi/L, ..., (2 L - 1) pi/L and e_k^2 = 1 + h^2 - 2 h cos k, the energy is - sum e_k, and
// the mean of s^x is the mean of (h - cos k) / e_k.
// Build: see README.md beside this file; target matrix_free.
#include <bit>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "solvers/eigen/eigensolver.hpp"

using namespace quiver;

class TransverseIsing final : public Operator<double> {
  public:
    TransverseIsing(const Comm& comm, int spins, double field)
        : spins_(spins), field_(field), map_(RowMap::by_rows(comm, std::int64_t{1} << spins)) {}

    const RowMap& row_map() const override { return map_; }

    /// Y = H X. Bit i of a row's number is spin i, so flipping a spin gives the number of another
    /// row.
    void apply(Context&, BlockView<const double> x, BlockView<double> y) override {
        for (std::uint32_t state = 0; state < x.rows; ++state) {
            const std::uint32_t next = (state >> 1) | ((state & 1) << (spins_ - 1));
            const double bonds = 2.0 * std::popcount(state ^ next) - spins_;
            for (int j = 0; j < x.cols; ++j) {
                double flipped = 0;
                for (int i = 0; i < spins_; ++i) {
                    flipped += x(state ^ (1u << i), j);
                }
                y(state, j) = bonds * x(state, j) - field_ * flipped;
            }
        }
    }

  private:
    int spins_;
    double field_;
    RowMap map_;
};

int main() {
    const int spins = 10;
    const double field = 1.5;
    Context ctx;
    TransverseIsing hamiltonian(ctx.comm(), spins, field);
    const auto result =
        eigensolve(ctx, EigenProblem<double>{hamiltonian}, {.k = 1, .method = Method::lanczos});

    double energy = 0, magnetisation = 0;
    for (int m = 1; m < 2 * spins; m += 2) {
        const double k = m * std::numbers::pi / spins;
        const double excitation = std::sqrt(1 + field * field - 2 * field * std::cos(k));
        energy -= excitation;
        magnetisation += (field - std::cos(k)) / excitation / spins;
    }
    // The mean of s^x, computed from the eigenvector.
    const BlockView<const double> ground = result.vectors;
    double mean = 0;
    for (std::uint32_t state = 0; state < ground.rows; ++state) {
        for (int i = 0; i < spins; ++i) {
            mean += ground(state, 0) * ground(state ^ (1u << i), 0) / spins;
        }
    }
    std::printf("energy %.8f, known %.8f\n", result.eigenvalues[0], energy);
    std::printf("magnetisation %.6f, known %.6f\n", mean, magnetisation);
    const bool good = result.converged && std::abs(result.eigenvalues[0] - energy) < 1e-8 &&
                      std::abs(mean - magnetisation) < 1e-6;
    return good ? 0 : 1;
}
// It prints
//> energy -16.72302491, known -16.72302491
//> magnetisation 0.875242, known 0.875242
