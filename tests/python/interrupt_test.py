# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C ends solves; other threads run while a solve runs."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import quiver
import scipy.sparse as sp


def slow_matrix():
    """A matrix whose eigenvalues are so close that a solve takes minutes."""
    return sp.diags(np.linspace(0, 1, 20000) ** 4 + 1e-12).tocsr()


@pytest.mark.parametrize("solve", [
    lambda a: quiver.eigsh(a, 20, which="SA", method="lanczos", maxiter=10**6),
    lambda a: quiver.eigsh(a, 20, which="SA", method="chebyshev", maxiter=10**6),
    lambda a: quiver.cg(a, np.ones(20000), rtol=1e-16, maxiter=10**7),
    lambda a: quiver.gmres(a, np.ones(20000), rtol=1e-16, maxiter=10**7),
    lambda a: quiver.ed("model:heisenberg,L=32", k=1, sector={"sz": 0, "momentum": 0}),
], ids=["lanczos", "chebyshev", "cg", "gmres", "states"])
def test_ctrl_c_ends_a_solve(solve):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    start = time.process_time()  # CPU time, because other jobs may use most of the machine
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solve(slow_matrix())
    assert time.process_time() - start < 20
    w = quiver.eigsh(sp.identity(9, format="csr"), 1, return_eigenvectors=False)
    np.testing.assert_allclose(w, [1.0])


def test_other_threads_run_during_a_solve():
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    try:
        with pytest.raises(quiver.NoConvergence):
            quiver.eigsh(slow_matrix(), 20, which="SA", method="lanczos", maxiter=60)
    finally:
        end = time.monotonic()
        done.set()
        thread.join()
    inside = [t for t in ticks if start < t < end]
    # With the GIL held, the thread would run only between callbacks.
    assert len(inside) > 20 * (end - start)
