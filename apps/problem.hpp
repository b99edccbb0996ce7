// SPDX-License-Identifier: BSD-3-Clause
// The MATRIX argument of a subcommand: a Matrix Market file, - for standard input, or
// gen:NAME,key=value,...
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/comm.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// The help text of a MATRIX argument.
inline constexpr const char* matrix_argument =
    "File, - for standard input, or gen:NAME,key=value,...";

/// Properties of a MATRIX that are known before its entries are read or generated.
struct Problem {
    std::string spec;
    bool generated = false;
    bool complex = false;
    Symmetry symmetry = Symmetry::general;
    /// The size of a file's matrix; -1 for a generated matrix.
    std::int64_t rows = -1;
    std::int64_t cols = -1;
};

/// Reads the header of a file, or finds the generator. Collective; throws InputError on all ranks.
Problem inspect_problem(const Comm& comm, const std::string& spec);

/// `wanted` is auto (z for a complex matrix, else d) or one of s, d, c, z. Throws InputError for a
/// complex matrix in real scalars.
Dtype choose_scalar(const Problem& problem, const std::string& wanted);

/// Reads or generates this rank's rows. `partition` applies to files; generated matrices use only
/// its weights and are always distributed by rows. Collective; throws InputError on all ranks.
template <class T>
CsrRows<T> load_problem(const Comm& comm, const Problem& problem, int threads,
                        Partition partition = Partition::by_nonzeros);

/// Throws InputError "OPTION OUTPUT is WHAT" if `output` is the same file as `matrix`.
void require_not_the_matrix(const std::string& option, const std::string& output,
                            const std::string& matrix,
                            const std::string& what = "the matrix itself");

/// Size of a file in 10^6 bytes; 0 if it is not a file.
double megabytes_of_file(const std::string& path);

/// The reason why solvers that square norms cannot use a matrix; the text is empty if they can.
struct NormRefusal {
    std::string text;
    /// True if the matrix can be scaled: its products do not overflow.
    bool can_be_scaled = true;
};

/// Compares the largest row sum of |a_ij|, which bounds the 2-norm of a Hermitian matrix, with the
/// range of norms that the solvers support (NormRange). Throws InputError on all ranks if an entry
/// is not finite. Collective.
template <class T>
NormRefusal check_norm(const Comm& comm, const Problem& problem, const CsrRows<T>& rows,
                       int threads);

/// Throws InputError on all ranks unless the matrix is square and, to rounding, Hermitian; then
/// sets its symmetry to symmetric or hermitian. The symmetry that a generator declares is trusted;
/// the entries of a file are checked with check_hermitian(). Collective.
template <class T>
void require_hermitian(const Comm& comm, const Problem& problem, CsrRows<T>& rows, int threads);

}  // namespace quiver::apps
