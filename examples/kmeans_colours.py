# SPDX-License-Identifier: BSD-3-Clause
"""A picture with few colours: the colours of its pixels, clustered by k-means.

The picture is made by the program: four smooth shades and noise. Every pixel is a point with three
columns, red, green and blue; the centres are the new palette. Run the program with
`python examples/kmeans_colours.py` after `pip install .`.
"""

import numpy as np

import quiver

rng = np.random.default_rng(1)
height, width = 120, 160
rows, columns = np.mgrid[0:height, 0:width]
palette = np.array([[200, 40, 40], [40, 160, 60], [50, 70, 200], [230, 200, 60]], dtype=float)
part = 2 * (rows >= height // 2) + (columns >= width // 2)
picture = palette[part] + rng.normal(0, 6, (height, width, 3))

pixels = picture.reshape(-1, 3)
result = quiver.kmeans(pixels, 4, n_init=5)
order = np.argsort(result.centers[:, 0])
print(f"pixels per colour: {result.sizes[order].tolist()}")
print(f"largest error of a palette entry below 0.5: "
      f"{bool(abs(result.centers[order] - palette[np.argsort(palette[:, 0])]).max() < 0.5)}")
reduced = result.centers[result.labels].reshape(picture.shape)
error = np.sqrt(((picture - reduced)**2).mean())
print(f"the rest is noise: {abs(error - 6) < 0.1}")

assert result.converged

#> pixels per colour: [4800, 4800, 4800, 4800]
#> largest error of a palette entry below 0.5: True
#> the rest is noise: True
