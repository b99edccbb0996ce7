// SPDX-License-Identifier: BSD-3-Clause
// StateBasis: the basis states of a sector, and their numbers.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/event.hpp"
#include "blockvec/row_map.hpp"
#include "kernels/hamiltonian/terms.hpp"

namespace quiver {

struct StateSpace;

/// The basis states of HamiltonianModel::sector, distributed in contiguous ranges over the ranks.
///
/// Without momentum, reflection and inversion a state is its bits, and row r is the r-th word in
/// ascending order. Two tables of 2^(bits / 2) numbers, for more than 40 bits binomial
/// coefficients, give the row of a word (bits: those of one species if up and down are conserved,
/// else all), so that no list of states is stored. With these symmetries, row r is the normalised
/// combination of the images of a representative, the smallest of its images. Every rank stores all
/// representatives: 9 bytes a state, a small part of the 12 bytes an entry of a stored matrix.
/// Source: Lin, Phys. Rev. B 42 (1990) 6561; Sandvik, AIP Conf. Proc. 1297 (2010) 135, section 4.
class StateBasis {
  public:
    using KeepGoing = std::function<bool(const IterationEvent&)>;
    /// Throws InputError on all ranks for an empty sector or one with too many states. Collective.
    /// Cost with symmetries: about `order()` operations for each state without them. If keep_going
    /// is set, it is called several times a second during this search; if it returns false on any
    /// rank, the search ends on all ranks with a basis that has no states. It must be set on all
    /// ranks or on none.
    StateBasis(Context& ctx, const HamiltonianModel& model, const KeepGoing& keep_going = {});
    StateBasis(const StateBasis&) = delete;
    StateBasis& operator=(const StateBasis&) = delete;
    ~StateBasis();

    /// True if keep_going ended the search.
    bool interrupted() const { return interrupted_; }
    const HamiltonianModel& model() const { return model_; }
    const RowMap& row_map() const { return map_; }
    /// The elements of the symmetry group.
    int order() const;
    /// chi(g) of each element.
    std::vector<std::complex<double>> characters() const;
    /// The bytes of the tables on this rank, in host memory and in the Context's place together.
    std::int64_t memory_bytes() const { return bytes_; }
    /// With host pointers, and with pointers to the Context's place.
    const StateSpace& host_space() const;
    const StateSpace& space() const;

  private:
    struct Tables;
    bool interrupted_ = false;
    HamiltonianModel model_;
    RowMap map_;
    std::int64_t bytes_ = 0;
    std::unique_ptr<Tables> tables_;
};

}  // namespace quiver
