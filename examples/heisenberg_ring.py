# SPDX-License-Identifier: BSD-3-Clause
"""The gap of Heisenberg rings, by exact diagonalisation of the momentum sectors.

The lowest state of a ring of N spins is a singlet, the lowest excited states are a triplet; their
distance, the gap, falls with N. The singlet has momentum 0 or pi, the triplet the other one. Run the
program with `python examples/heisenberg_ring.py` after `pip install .`.
"""

import quiver


def lowest(sites, sz, momentum):
    return quiver.ed(f"model:heisenberg,L={sites}", k=1, sector={"sz": sz, "momentum": momentum})


for sites in (8, 12, 16):
    singlet, triplet = (0, sites // 2) if sites % 4 == 0 else (sites // 2, 0)
    ground = lowest(sites, 0, singlet)
    excited = lowest(sites, 1, triplet)
    gap = excited.energies[0] - ground.energies[0]
    print(f"{sites} spins: {ground.n_states} states, energy {ground.energies[0]:.6f}, gap {gap:.6f}")
    assert ground.converged and excited.converged
    # Bethe's energy of the infinite ring is 1/4 - log 2 a site; finite rings lie below.
    assert ground.energies[0] / sites < 0.25 - 0.693147

#> 8 spins: 10 states, energy -3.651093, gap 0.522674
#> 12 spins: 80 states, energy -5.387391, gap 0.355848
#> 16 spins: 810 states, energy -7.142296, gap 0.270190
