// SPDX-License-Identifier: BSD-3-Clause
// The factorisation of shift-invert by MUMPS. Private to solvers/eigen.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "blockvec/comm.hpp"
#include "solvers/eigen/shift_invert/factorisation.hpp"

namespace quiver {

/// The prediction of MUMPS from the pattern.
struct MumpsForecast {
    /// Entries of the factor, multiply-adds of the factorisation.
    double entries = 0;
    double products = 0;
    /// Memory of this rank and of all ranks, factors and work space.
    double bytes = 0;
    double all_bytes = 0;
};

/// True if this build has MUMPS, MPI is initialised, and QUIVER_MUMPS is not `none`: the answer of
/// rank 0. Collective.
bool mumps_is_available(const Comm& comm);

/// "MUMPS" with the way to make it available on this rank, for messages where it is missing.
std::string missing_mumps();

/// A - sigma B = L D L^H by the multifrontal method with threshold pivoting (1 x 1 and 2 x 2), D
/// with blocks of both sizes; pivots that are zero up to rounding are counted apart. A complex
/// matrix is embedded as the real symmetric [Re -Im; Im Re], which has every eigenvalue twice:
/// MUMPS has no L D L^H. The pattern is analysed once. With several ranks two runs may differ in
/// the last bits. Source: Amestoy, Duff, L'Excellent, Koster, SIAM J. Matrix Anal. Appl. 23 (2001)
/// 15; MUMPS 5 users' guide.
template <class W>
class MumpsFactorisation final : public Factorisation<W> {
  public:
    /// Tells the other ranks to call follow(job).
    using Announce = std::function<void(int job)>;

    /// Analyses the pattern of A - sigma B, all of whose rows are on rank 0 of `comm`. With Comm(),
    /// which is this rank alone, `announce` is not needed. Collective over `comm`: an error of one
    /// rank is thrown on all.
    MumpsFactorisation(const Comm& comm, int threads, const CsrRows<W>& a, const CsrRows<W>* b,
                       Announce announce = {});
    /// Collective.
    ~MumpsFactorisation() override;

    const MumpsForecast& forecast() const;
    /// Called on rank 0. The message of a MemoryError names the megabytes.
    FactorFacts factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) override;
    void solve(BlockView<W> x) override;
    /// Called on the other ranks: takes part in a factorisation or solve of rank 0.
    void follow(int job);

  private:
    struct Data;
    void require_room() const;

    Announce announce_;
    std::unique_ptr<Data> data_;
};

}  // namespace quiver
