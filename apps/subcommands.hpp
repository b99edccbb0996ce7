// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of quiver. Each function adds a subcommand; if it is on the command line,
// `chosen` becomes the action that runs it.
#pragma once

#include <functional>

#include <CLI/App.hpp>

#include "blockvec/comm.hpp"

namespace quiver::apps {

/// Exit statuses of the command.
enum Status : int { success = 0, not_converged = 1, bad_input = 2, failed = 3 };

/// Runs the chosen subcommand on all ranks; returns the exit status.
using Action = std::function<int(const Comm& comm)>;

/// `quiver bench`: times kernels, checks their results and compares them with the machine's
/// ceilings.
void add_bench(CLI::App& app, Action& chosen);
/// `quiver ed`: energies of spins and fermions.
void add_ed(CLI::App& app, Action& chosen);
/// `quiver eigs`: eigenpairs of a Hermitian matrix.
void add_eigs(CLI::App& app, Action& chosen);
/// `quiver embed`: spectral embedding of a graph.
void add_embed(CLI::App& app, Action& chosen);
/// `quiver info`: properties of a matrix or of this machine.
void add_info(CLI::App& app, Action& chosen);
/// `quiver gen`: lists the generators, or writes a matrix as a Matrix Market file.
void add_gen(CLI::App& app, Action& chosen);
/// `quiver kmeans`: clusters of points.
void add_kmeans(CLI::App& app, Action& chosen);
/// `quiver modes`: vibration modes of K x = lambda M x.
void add_modes(CLI::App& app, Action& chosen);
/// `quiver qr`: an orthonormal basis of the columns in an HDF5 file.
void add_qr(CLI::App& app, Action& chosen);
/// `quiver solve`: linear systems with many right-hand sides.
void add_solve(CLI::App& app, Action& chosen);
/// `quiver svd`: singular values and vectors, and principal components.
void add_svd(CLI::App& app, Action& chosen);
/// `quiver tune`: searches for the fastest plans of the dense products on a GPU.
void add_tune(CLI::App& app, Action& chosen);
/// `quiver warm`: compiles the kernels of a GPU ahead of time.
void add_warm(CLI::App& app, Action& chosen);

}  // namespace quiver::apps
