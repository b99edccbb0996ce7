# SPDX-License-Identifier: BSD-3-Clause
"""Positional encodings of a graph, and its clusters: spectral embedding and k-means.

The graph has two components: four villages that a few roads join, and an island. The number of
components is exact, and the embedding separates the villages. Run the program with
`python examples/graph_positions.py` after `pip install '.[scipy]'`.
"""

import numpy as np
import scipy.sparse as sp

import quiver

rng = np.random.default_rng(3)
villages, people = 4, 150
n = villages * people + 20
village = np.arange(n) // people  # 4 for the island


def pairs(count, among):
    """Random pairs of people."""
    return rng.choice(among, size=(2, count))


edges = [pairs(6 * people, np.flatnonzero(village == v)) for v in range(villages)]
edges.append(pairs(200, np.flatnonzero(village == villages)))
edges += [np.array([[v * people + 1], [(v + 1) % villages * people + 2]]) for v in range(villages)]
rows, columns = np.concatenate(edges, axis=1)
A = sp.coo_array((np.ones(rows.size), (rows, columns)), shape=(n, n)).tocsr()

result = quiver.spectral_embedding(A, 4, symmetrise=True)
print(f"components: {result.components}, sizes {result.sizes.tolist()}")
print(f"null vectors beside the first: {(result.eigenvalues == 0).sum()}")

main = result.labels == 0
clusters = quiver.kmeans(result.vectors[main], villages, n_init=5)
print(f"villages found: {len(set(zip(clusters.labels, village[main]))) == villages}")

encoding = quiver.spectral_embedding(A, 4, symmetrise=True, scale="pyg").vectors
print(f"columns of length 1: {bool(np.allclose(np.linalg.norm(encoding, axis=0), 1))}")

assert result.components == 2

#> components: 2, sizes [600, 20]
#> null vectors beside the first: 1
#> villages found: True
#> columns of length 1: True
