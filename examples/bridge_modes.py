# SPDX-License-Identifier: BSD-3-Clause
"""The modes of a footbridge, a plane frame of beams on three springs.

Beam elements of Euler and Bernoulli have two unknowns a node, the deflection and the slope. The
bridge is free at both ends: without its springs it has two rigid-body modes, and with them it rocks
at low frequencies. Run the program with `python examples/bridge_modes.py` after `pip install .`.
"""

import numpy as np
import scipy.sparse as sp

import quiver

nodes, length = 201, 40.0  # 200 elements over 40 m
stiffness, mass = 2.1e11 * 8e-4, 1200.0  # E I in N m^2, mass of a metre in kg
h = length / (nodes - 1)

bending = stiffness / h**3 * np.array([[12, 6 * h, -12, 6 * h],
                                       [6 * h, 4 * h**2, -6 * h, 2 * h**2],
                                       [-12, -6 * h, 12, -6 * h],
                                       [6 * h, 2 * h**2, -6 * h, 4 * h**2]])
inertia = mass * h / 420 * np.array([[156, 22 * h, 54, -13 * h],
                                     [22 * h, 4 * h**2, 13 * h, -3 * h**2],
                                     [54, 13 * h, 156, -22 * h],
                                     [-13 * h, -3 * h**2, -22 * h, 4 * h**2]])
places = 2 * np.arange(nodes - 1)[:, None] + np.arange(4)
rows, columns = np.repeat(places, 4, axis=1).ravel(), np.tile(places, (1, 4)).ravel()
shape = (2 * nodes, 2 * nodes)
K = sp.csr_array((np.tile(bending.ravel(), nodes - 1), (rows, columns)), shape=shape)
M = sp.csr_array((np.tile(inertia.ravel(), nodes - 1), (rows, columns)), shape=shape)

free = quiver.modes(K, M, 6)
exact = np.array([4.730041, 7.853205, 10.995608, 14.137165])**2 * np.sqrt(
    stiffness / mass) / (2 * np.pi * length**2)
print(f"free: {free.rigid} rigid modes")
print(f"the others are those of a free beam: "
      f"{bool(np.allclose(free.frequencies[2:], exact, rtol=1e-5))}")

springs = np.zeros(2 * nodes)
springs[[0, nodes - 1, 2 * nodes - 2]] = 3e6  # N / m, at the ends and in the middle
supported = quiver.modes(sp.csr_array(K + sp.diags_array(springs)), M, range=(0, 10))
print(f"on springs: {supported.rigid} rigid modes, {len(supported.frequencies)} modes up to 10 Hz")
print("the lowest:", ", ".join(f"{f:.3f} Hz" for f in supported.frequencies[:3]))

assert free.rigid == 2 and supported.rigid == 0 and supported.info.verified

#> free: 2 rigid modes
#> the others are those of a free beam: True
#> on springs: 0 rigid modes, 6 modes up to 10 Hz
#> the lowest: 1.370 Hz, 1.482 Hz, 3.264 Hz
