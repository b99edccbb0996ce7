// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs` without its command line: the options and the solve.
#pragma once

#include <string>

#include "apps/checkpoint/checkpoint_folder.hpp"
#include "apps/fault_options.hpp"
#include "apps/outputs.hpp"
#include "apps/row_distribution.hpp"
#include "blockvec/comm.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/precond/preconditioner.hpp"

namespace quiver::apps {

struct EigsOptions {
    std::string matrix;
    std::string mass;
    std::string which = "smallest";
    std::string method = "auto";
    std::string verify = "columns";
    std::string preconditioner = "none";
    /// LOW:HIGH
    std::string window;
    std::string device = "auto";
    RowDistribution rows;
    std::string scalar = "auto";
    Output json;
    Output vectors;
    bool verbose = false;
    bool profile = false;
    /// Which of these options were given.
    bool k_given = false;
    bool which_given = false;
    bool window_given = false;
    bool mass_given = false;
    EigenOptions solver;
    PreconditionerOptions precond;
    CheckpointOptions checkpoint;
    FaultOptions faults;
};

/// The method of the name that --method accepts; automatic for any other text.
Method method_named(const std::string& name);

/// LOW:HIGH. Throws InputError that names the option.
Window parse_window(const std::string& option, const std::string& text);

/// Converts the words of the command line to the options of the solver. Throws InputError for
/// invalid values, for options that exclude each other and, on rank 0, for files that cannot be
/// written.
void resolve_options(EigsOptions& options, int rank);

/// Reads or generates the matrix, solves, verifies and reports. Returns true if every eigenpair has
/// converged and the multiplicities are verified. Collective.
bool run_eigs(const Comm& comm, EigsOptions options);

}  // namespace quiver::apps
