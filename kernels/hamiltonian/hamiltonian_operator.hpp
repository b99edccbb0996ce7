// SPDX-License-Identifier: BSD-3-Clause
// HamiltonianOperator: a Hamiltonian of spins or fermions without a stored matrix.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/hamiltonian/state_basis.hpp"
#include "kernels/hamiltonian/terms.hpp"
#include "kernels/operator.hpp"

namespace quiver {

/// The states of H = model.terms in model.sector; the model must be the same on all ranks. Throws
/// InputError on all ranks if H is not Hermitian, does not conserve the numbers of the sector or
/// does not have its symmetries; the errors of StateBasis. Collective.
std::shared_ptr<const StateBasis> make_state_basis(Context& ctx, const HamiltonianModel& model,
                                                   const StateBasis::KeepGoing& keep_going = {});

/// Y = H X, with entries computed from the bits of the states in every product. A row of Y gathers
/// rows of X in a fixed order: any number of ranks and threads gives the same bits.
///
/// Memory: the tables of StateBasis and of the terms. On several ranks also two bits for each state
/// of the sector, 8 bytes for each row that the rank sends, and in a product the rows of X that it
/// receives, which may be all rows of the other ranks.
/// Cost of a product: 2 sizeof(T) rows width bytes, and for each entry about 10 integer operations
/// without symmetries, about 5 for each element of the group with them; one halo exchange.
template <class T>
class HamiltonianOperator final : public Operator<T> {
  public:
    /// H = model.terms on the states of make_state_basis(). Throws its errors, and InputError on
    /// all ranks if T is real but the matrix complex. Collective.
    HamiltonianOperator(Context& ctx, const HamiltonianModel& model);
    /// The operator of any terms on the states of `basis`, whose search was not interrupted. Throws
    /// as above, but the terms need not be Hermitian. Collective.
    HamiltonianOperator(Context& ctx, std::shared_ptr<const StateBasis> basis,
                        const std::vector<HamiltonianTerm>& terms);
    HamiltonianOperator(HamiltonianOperator&&) noexcept;
    HamiltonianOperator& operator=(HamiltonianOperator&&) noexcept;
    ~HamiltonianOperator() override;

    const std::shared_ptr<const StateBasis>& basis() const;
    /// Rows of X that this rank receives in one product.
    std::int64_t halo_size() const;
    /// The bytes of all tables on this rank, without the rows of a product.
    std::int64_t memory_bytes() const;
    /// This rank's nonzero entries of row `row` (local), with global columns; a column may appear
    /// several times, also the diagonal.
    void for_each_entry(std::int64_t row, const std::function<void(std::int64_t, T)>& use) const;

    const RowMap& row_map() const override;
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;
    /// One pass over X and Y; dots take another one.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override;
    void prepare(Context& ctx, std::span<const int> widths, bool dots = false) override;

  private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace quiver
