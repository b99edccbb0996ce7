# SPDX-License-Identifier: BSD-3-Clause
"""Topics of texts: the largest singular triplets of a sparse matrix of words and texts.

The program makes 3000 texts of 40 words about one of three topics each. Rows of the matrix are
texts, columns are words. Each right singular vector weighs the words; the left vectors place the
texts in a space with three dimensions, in which the topics are apart. Run the program with
`python examples/svd_topics.py` after `pip install .`.
"""

import numpy as np
import scipy.sparse as sp

import quiver

rng = np.random.default_rng(4)
texts, words, topics = 3000, 900, 3
topic = rng.integers(topics, size=texts)
# A topic has 100 words of its own; half of the words of a text are of its topic.
own = 100 * topic[:, None] + rng.integers(100, size=(texts, 20))
column = np.hstack([own, rng.integers(words, size=(texts, 20))])
row = np.repeat(np.arange(texts), 40)
A = sp.csr_array((np.ones(row.size), (row, column.ravel())), shape=(texts, words))

u, s, vh, info = quiver.svds(A, k=4, full_output=True)
print(f"three values stand out: {bool(s[2] > 2 * s[3])}")
print(f"every copy verified: {info.verified}")

place = quiver.kmeans(u[:, :3] * s[:3], 3, n_init=5).labels
same = [np.bincount(topic[place == group], minlength=topics).max() for group in range(3)]
print(f"texts in the group of their topic: {sum(same)} of {texts}")
assert info.converged

#> three values stand out: True
#> every copy verified: True
#> texts in the group of their topic: 3000 of 3000
