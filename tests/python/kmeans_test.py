# SPDX-License-Identifier: BSD-3-Clause
"""k-means against SciPy, and against scikit-learn on its own data sets where it is installed."""

import numpy as np
import pytest
import quiver
from scipy.cluster.vq import kmeans2, vq


def blobs(rng, n, d, k, spread, char="d"):
    middles = rng.uniform(-8, 8, (k, d))
    return (middles[np.arange(n) % k] + spread * rng.standard_normal((n, d))).astype(char)


def inertia_of(x, centers, labels):
    return float(((x.astype("d") - centers.astype("d")[labels])**2).sum())


@pytest.mark.parametrize("char", "fd")
def test_follows_scipy_from_given_starts(rng, char):
    for d, k in ((1, 3), (2, 5), (16, 7), (64, 4)):
        x = blobs(rng, 700, d, k, 0.3, char)
        starts = x[:k].copy()
        result = quiver.kmeans(x, k, init=starts, tol=0.0)
        centers, labels = kmeans2(x.astype("d"), starts.astype("d"), iter=result.n_iter,
                                  minit="matrix")
        assert result.converged
        np.testing.assert_array_equal(result.labels, labels)
        np.testing.assert_allclose(result.centers, centers, atol=200 * np.finfo(char).eps)
        np.testing.assert_array_equal(result.sizes, np.bincount(labels, minlength=k))
        np.testing.assert_allclose(result.inertia, inertia_of(x, centers, labels), rtol=1e-5)
        assert result.centers.dtype == np.dtype(char) and result.labels.dtype == np.int32


def test_labels_are_nearest_centres(rng):
    x = blobs(rng, 5000, 3, 12, 1.0)
    result = quiver.kmeans(x, 12, n_init=2)
    labels, distances = vq(x, result.centers)
    np.testing.assert_array_equal(result.labels, labels)
    np.testing.assert_allclose(result.inertia, (distances**2).sum(), rtol=1e-12)
    assert np.all(np.diff(result.history) <= 1e-9 * result.history[0])
    again = quiver.kmeans(x, 12, n_init=2)
    assert again.inertia == result.inertia and np.array_equal(again.centers, result.centers)


@pytest.mark.parametrize("name, k", [("iris", 3), ("iris", 8), ("wine", 3), ("breast_cancer", 2),
                                     ("digits", 10)])
def test_scikit_learn_data_sets(name, k):
    """From the same starts the inertia, the labels and the centres are those of scikit-learn; from
    k-means++ the local minima are as good."""
    datasets = pytest.importorskip("sklearn.datasets")
    cluster = pytest.importorskip("sklearn.cluster")
    x = np.ascontiguousarray(getattr(datasets, "load_" + name)().data, dtype="d")
    starts, _ = cluster.kmeans_plusplus(x, k, random_state=3)
    theirs = cluster.KMeans(k, init=starts, n_init=1, algorithm="lloyd").fit(x)
    ours = quiver.kmeans(x, k, init=starts)
    np.testing.assert_allclose(ours.inertia, theirs.inertia_, rtol=1e-12)
    np.testing.assert_array_equal(ours.labels, theirs.labels_)
    np.testing.assert_allclose(ours.centers, theirs.cluster_centers_, rtol=1e-10, atol=1e-10)

    # Single runs end in local minima that are as good on average.
    runs = range(40)
    theirs = [cluster.KMeans(k, n_init=1, random_state=run).fit(x).inertia_ for run in runs]
    ours = [quiver.kmeans(x, k, seed=run).inertia for run in runs]
    assert np.median(ours) <= 1.02 * np.median(theirs)
    assert min(ours) <= 1.02 * min(theirs)
    assert min(ours) == quiver.kmeans(x, k, n_init=len(runs)).inertia


def test_empty_clusters_move_as_in_scikit_learn(rng):
    cluster = pytest.importorskip("sklearn.cluster")
    x = blobs(rng, 300, 3, 4, 0.3)
    starts = x[:5].copy()
    starts[1], starts[4] = 100, -100
    theirs = cluster.KMeans(5, init=starts, n_init=1, algorithm="lloyd").fit(x)
    ours = quiver.kmeans(x, 5, init=starts)
    assert ours.sizes.min() > 0
    np.testing.assert_allclose(ours.inertia, theirs.inertia_, rtol=1e-12)


def test_layouts_and_types(rng):
    base = blobs(rng, 400, 6, 3, 0.1)
    for x in (base[:, 1:4], base[::2, :3], np.asfortranarray(base), base[::-1],
              base.astype(">f8"), np.round(base).astype(int), base.astype("e"), base.tolist()):
        result = quiver.kmeans(x, 3, n_init=3)
        wide = np.asarray(x, dtype="d")
        np.testing.assert_allclose(result.inertia, inertia_of(wide, result.centers, result.labels),
                                   rtol=1e-3)
    assert quiver.kmeans(base.astype("e"), 3).centers.dtype == np.float32
    before = base.copy()
    quiver.kmeans(base, 3)
    np.testing.assert_array_equal(base, before)


def test_torch(rng):
    torch = pytest.importorskip("torch")
    x = blobs(rng, 300, 2, 3, 0.1)
    result = quiver.kmeans(torch.from_numpy(x), 3)
    assert isinstance(result.labels, torch.Tensor) and isinstance(result.centers, torch.Tensor)
    assert result.inertia == quiver.kmeans(x, 3).inertia


def test_errors(rng):
    x = blobs(rng, 20, 2, 2, 0.1)
    for arguments, match in [
            ((x, 0), "k = 0, but at least one cluster is needed"),
            ((x, 21), "k = 21 clusters, but only 20 points"),
            ((x, 65), "at most 64"),
            ((np.zeros((100, 65)), 2), "65 columns, but 1 to 64"),
            ((x[:, 0], 2), "one dimension"),
            ((np.zeros((0, 2)), 1), "only 0 points")]:
        with pytest.raises(ValueError, match=match):
            quiver.kmeans(*arguments)
    bad = x.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7 of X"):
        quiver.kmeans(bad, 2)
    with pytest.raises(ValueError, match="k x columns = 2 x 2"):
        quiver.kmeans(x, 2, init=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="not 'k-means\\+\\+' or an array"):
        quiver.kmeans(x, 2, init="random")
    for wrong in ({"k": 2.5}, {"k": "3"}, {"k": 2, "n_init": "auto"}, {"k": 2, "seed": None}):
        with pytest.raises(TypeError, match="an integer is expected"):
            quiver.kmeans(np.ones((5, 2)), **wrong)
    with pytest.raises(ValueError, match="seed=-1 is negative"):
        quiver.kmeans(np.ones((5, 2)), 2, seed=-1)
    with pytest.raises(TypeError, match="complex"):
        quiver.kmeans(x + 1j, 2)
    with pytest.raises(ValueError, match="tol=-1.0: a finite number"):
        quiver.kmeans(x, 2, tol=-1.0)
