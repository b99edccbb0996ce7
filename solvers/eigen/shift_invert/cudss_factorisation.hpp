// SPDX-License-Identifier: BSD-3-Clause
// The factorisation of shift-invert by cuDSS on a GPU. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <memory>

#include "blockvec/context.hpp"
#include "solvers/eigen/shift_invert/factorisation.hpp"

namespace quiver {

/// The size of the factors as cuDSS predicts it from the pattern.
struct CudssForecast {
    /// Entries of the factor.
    double entries = 0;
    /// The largest amount of device memory that the analysis and the factorisation hold at a time.
    double bytes = 0;
};

/// A - sigma B = L D L^H on the Context's GPU, with nested dissection and with Bunch-Kaufman
/// pivoting inside the diagonal blocks of supernodes: D has blocks of 1 and 2 rows. Pivots are not
/// delayed to the parent supernode, so that digits may be lost where MUMPS loses none. The count of
/// eigenvalues and the solves are therefore those of a nearby matrix; ShiftedPencil::factor()
/// measures its distance. Two runs may differ in the last bits. Cost of a solve: two passes over L,
/// and the transfer of the block to the GPU and back. Source:
/// NVIDIA cuDSS 1.0 documentation; Schenk and Gaertner, ETNA 23 (2006) 158.
template <class W>
class CudssFactorisation final : public Factorisation<W> {
  public:
    /// Analyses the pattern of A - sigma B. The Context, for whose rank 0 cudss_is_available(),
    /// must outlive this object. No communication. Throws InputError, MemoryError, DeviceError.
    CudssFactorisation(Context& ctx, const CsrRows<W>& a, const CsrRows<W>* b);
    ~CudssFactorisation() override;

    const CudssForecast& forecast() const;
    /// The first call throws MemoryError with the megabytes if the forecast does not fit the free
    /// device memory.
    FactorFacts factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) override;
    void solve(BlockView<W> x) override;

  private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace quiver
