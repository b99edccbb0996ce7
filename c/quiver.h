// SPDX-License-Identifier: BSD-3-Clause
// quiver.h: the C interface of Quiver (C99 and C++). docs/c.md explains it with examples.
//
// Rules of all functions
// - Every function that can fail returns a status. After a status other than QUIVER_OK,
//   quiver_last_message() returns the reason as a sentence. No C++ exception leaves the library.
// - The structures of options and results begin with `struct_size`. quiver_..._init() sets it to
//   the size that the caller was compiled with, and all other fields to 0. In options, 0 selects
//   the default of every field. A null pointer to options selects all defaults.
// - quiver_..._free() frees a handle. Handles may be freed in any order; a null pointer is a no-op.
//   A handle keeps alive the parts of its context and of other operators that it needs.
// - Operators and results belong to the context that created them. If several threads use one
//   context, their calls wait for each other; contexts are independent.
// - Blocks are row-major. On a GPU, calls enqueue work on the stream of the context; a call that
//   returns host values waits for them.
// - Calls with a context of several ranks are collective: all ranks make the same calls in the same
//   order. If an argument is invalid on one rank only, the call may fail on that rank alone, and
//   the other ranks then wait forever.
#ifndef QUIVER_H
#define QUIVER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define QUIVER_API __attribute__((visibility("default")))
#else
#define QUIVER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The outcome of a call.
typedef int32_t quiver_status;
enum {
    QUIVER_OK = 0,
    /// A solver did not converge, or could not verify that no copy of an eigenvalue is missing. The
    /// result is set and holds the values found so far.
    QUIVER_NOT_CONVERGED = 1,
    /// Any other failure, including one that a callback reported.
    QUIVER_ERROR_OTHER = -1,
    /// Shapes, types, places or aliasing of the arguments disagree.
    QUIVER_ERROR_SHAPE = -2,
    /// An argument is invalid: a null pointer, an option out of range, a matrix that is not
    /// Hermitian.
    QUIVER_ERROR_INPUT = -3,
    /// The build or the machine lacks a requested feature.
    QUIVER_ERROR_UNSUPPORTED = -4,
    /// NaN, infinity, or an inner product that is not positive definite.
    QUIVER_ERROR_NUMERICAL = -5,
    QUIVER_ERROR_MEMORY = -6,
    /// A CUDA call failed.
    QUIVER_ERROR_DEVICE = -7,
    /// An MPI call failed, or MPI is not initialised.
    QUIVER_ERROR_COMM = -8
};

/// Scalar types, by BLAS's letters: float, double, and complex numbers of two floats or doubles.
typedef int32_t quiver_type;
enum { QUIVER_S = 0, QUIVER_D = 1, QUIVER_C = 2, QUIVER_Z = 3 };

/// Host memory, or memory of the context's GPU.
typedef int32_t quiver_place;
enum { QUIVER_HOST = 0, QUIVER_DEVICE = 1 };

/// A coefficient of any scalar type; the imaginary part must be 0 for real types.
typedef struct quiver_scalar {
    double re, im;
} quiver_scalar;

/// A rows x cols matrix in row-major order: element (i, j) is data[i * ld + j], with ld >= cols in
/// elements; ld = 0 means ld = cols. With a communicator, rows counts the rows of this rank.
typedef struct quiver_block {
    void* data;
    int64_t rows;
    int64_t ld;
    int32_t cols;
    quiver_type type;
    quiver_place place;
} quiver_block;

typedef struct quiver_context quiver_context;
typedef struct quiver_operator quiver_operator;
typedef struct quiver_eigen_result quiver_eigen_result;
typedef struct quiver_linear_result quiver_linear_result;

/// The library's version, "0.1.0".
QUIVER_API const char* quiver_version(void);
/// The name of a status, "QUIVER_ERROR_SHAPE".
QUIVER_API const char* quiver_status_name(quiver_status status);
/// The reason if the last call of this thread returned a status other than QUIVER_OK, otherwise
/// empty. Valid until the thread's next call.
QUIVER_API const char* quiver_last_message(void);

// ---- Contexts -----------------------------------------------------------------------------------

typedef struct quiver_context_options {
    size_t struct_size;
    /// QUIVER_HOST or QUIVER_DEVICE: the place of matrices, blocks and work.
    quiver_place place;
    /// The number of the GPU.
    int32_t device;
    /// Threads of host kernels; 0: OpenMP's default.
    int32_t threads;
    /// 1: the context uses a duplicate of `comm`, an MPI_Fint (in Fortran the communicator itself;
    /// see also quiver_mpi.h). 0: one process; MPI need not be initialised.
    int32_t use_comm;
    int32_t comm;
    /// The caller's cudaStream_t, which must outlive the context and everything created with it.
    /// Null: the context creates its own stream. For CUDA's default stream, pass cudaStreamLegacy.
    void* stream;
} quiver_context_options;

/// *context <- a new context. Errors: INPUT, UNSUPPORTED (no such GPU, or a build without CUDA or
/// MPI), DEVICE, COMM.
QUIVER_API quiver_status quiver_context_create(const quiver_context_options* options,
                                               quiver_context** context);
QUIVER_API void quiver_context_free(quiver_context* context);
/// Waits until all work of the context has finished.
QUIVER_API quiver_status quiver_context_synchronize(quiver_context* context);

// ---- Operators ----------------------------------------------------------------------------------

/// A matrix in compressed sparse rows. Row i has the entries row_start[i] to
/// row_start[i + 1] - 1, in any order. A symmetric matrix has both triangles. Entries with equal
/// row and column are added.
typedef struct quiver_csr {
    size_t struct_size;
    quiver_type type;
    /// 32 or 64: the number of bits of the integers in row_start and column.
    int32_t index_bits;
    /// The place of the three arrays. Arrays on a GPU become a matrix there if the context has one
    /// rank, index_base is 0 and the columns of each row ascend without duplicates; otherwise they
    /// are copied to the host once.
    quiver_place place;
    /// 0 or 1: the number of the first row, column and entry.
    int32_t index_base;
    /// The number of rows or, with a communicator, of the rows of this rank. The ranks hold
    /// consecutive rows in rank order, and columns are global.
    int64_t rows;
    const void* row_start;
    const void* column;
    const void* value;
    /// 0 (on all ranks): the matrix is square. Otherwise its number of columns or, with a
    /// communicator, the number of rows of X that this rank has; the ranks hold consecutive rows of
    /// X in rank order. Solvers and preconditioners take square matrices with cols = 0 or rows.
    int64_t cols;
} quiver_csr;

/// *a <- a copy of the matrix, in the context's place. Errors: SHAPE, INPUT (decreasing offsets, a
/// column out of range), MEMORY.
QUIVER_API quiver_status quiver_matrix_create(quiver_context* context, const quiver_csr* csr,
                                              quiver_operator** a);

/// Replaces the values of a matrix of quiver_matrix_create(); its rows and columns stay. `value`:
/// `count` values, one for each entry in the order of csr.value, in `place`. `type` must be that of
/// the matrix. A symmetric matrix must stay symmetric for the solvers that need one.
/// Preconditioners, inverses and adjoints made before keep the former values; the values of an
/// adjoint have the order of its rows, with ascending columns. With a communicator, all ranks call
/// this. Errors: SHAPE (another number or type of values, or values on a device for a matrix on the
/// host), INPUT (no matrix, a value that is not finite); the matrix then keeps its values.
QUIVER_API quiver_status quiver_matrix_replace_values(quiver_context* context, quiver_operator* a,
                                                      quiver_type type, const void* value,
                                                      int64_t count, quiver_place place);

/// *adjoint <- A^H of a matrix A, as a matrix with memory of its own, in which each entry was sent
/// to the rank of its column. Products with A^H then cost what products with A cost. Errors: INPUT
/// (A is no matrix), MEMORY.
QUIVER_API quiver_status quiver_adjoint_create(quiver_context* context, const quiver_operator* a,
                                               quiver_operator** adjoint);

/// A function of the caller that computes Y = A X. X and Y are in the context's place and have
/// equal shape and any width; their ld may exceed cols. On a GPU the function enqueues its work on
/// `stream`, the context's cudaStream_t. The function returns 0 on success. After any other value
/// the solve ends with QUIVER_ERROR_OTHER on this rank and with QUIVER_ERROR_NUMERICAL on the other
/// ranks, unless these wait in communication of the function itself. The function may call this
/// library.
typedef int (*quiver_apply_function)(void* user, const quiver_block* x, const quiver_block* y,
                                     void* stream);

/// *a <- the linear operator that `function` computes, with `rows` rows (of this rank). `user` is
/// passed to every call. Errors: INPUT.
QUIVER_API quiver_status quiver_operator_create(quiver_context* context, quiver_type type,
                                                int64_t rows, quiver_apply_function function,
                                                void* user, quiver_operator** a);

/// *m <- an approximate inverse of the matrix A, by name: "jacobi", "block-jacobi,size=8",
/// "chebyshev,degree=8", "ic", "ilu", "ldlt,shift=0.5" (docs/solvers.md). For "ldlt" of a pencil,
/// `mass` is B, else null. A and B must be matrices. Errors: INPUT, UNSUPPORTED.
QUIVER_API quiver_status quiver_preconditioner_create(quiver_context* context,
                                                      const quiver_operator* a, const char* name,
                                                      const quiver_operator* mass,
                                                      quiver_operator** m);

/// *inverse <- (A - sigma B)^-1 by a factorisation L D L^H, for `inverse` of quiver_eigen_options.
/// `mass` is B; null: B = I. At most 50,000 rows; of several ranks, rank 0 factorises all. Errors:
/// INPUT.
QUIVER_API quiver_status quiver_inverse_create(quiver_context* context, const quiver_operator* a,
                                               double sigma, const quiver_operator* mass,
                                               quiver_operator** inverse);
QUIVER_API void quiver_operator_free(quiver_operator* a);

// ---- Eigenvalues --------------------------------------------------------------------------------

/// The wanted eigenvalues: at one end of the spectrum, nearest `target`, of largest or smallest
/// magnitude, or k / 2 from the low end and the others from the high end.
enum {
    QUIVER_SMALLEST = 0,
    QUIVER_LARGEST = 1,
    QUIVER_TARGET = 2,
    QUIVER_LARGEST_MAGNITUDE = 3,
    QUIVER_SMALLEST_MAGNITUDE = 4,
    QUIVER_BOTH_ENDS = 5
};
enum {
    QUIVER_EIGEN_AUTO = 0,
    QUIVER_LANCZOS = 1,
    QUIVER_CHEBYSHEV = 2,
    QUIVER_LOBPCG = 3,
    QUIVER_FILTER = 4,
    QUIVER_JACOBI_DAVIDSON = 5,
    QUIVER_DENSE = 6,
    QUIVER_SHIFT_INVERT = 7
};
/// The solver of the correction equations of QUIVER_JACOBI_DAVIDSON. cg: only at an end of the
/// spectrum. gmres: for a preconditioner that is not positive definite. jdqmr: minres whose columns
/// also stop when the estimated residual of their eigenpair no longer falls.
enum {
    QUIVER_INNER_MINRES = 0,
    QUIVER_INNER_CG = 1,
    QUIVER_INNER_GMRES = 2,
    QUIVER_INNER_JDQMR = 3
};
/// Checksums against silent faults, for matrices: none, to find faults, to find and repair them
/// (docs/abft.md).
enum { QUIVER_ABFT_OFF = 0, QUIVER_ABFT_DETECT = 1, QUIVER_ABFT_CORRECT = 2 };

/// The argument of a progress function, which is called after each iteration.
typedef struct quiver_progress {
    size_t struct_size;
    const char* solver;
    /// "search", "verify" or, with a window, "density" (the estimate of the number of eigenvalues).
    const char* stage;
    int64_t iteration;
    /// Pairs that have converged, and the number of wanted pairs: 0 with a window.
    int32_t converged, wanted;
    /// The largest residual of the next wanted pairs, relative to ||A||.
    double residual;
    double seconds;
} quiver_progress;

/// A progress function returns 0 to continue. Any other value stops the solve, which then returns
/// QUIVER_NOT_CONVERGED and the pairs found so far.
typedef int (*quiver_progress_function)(void* user, const quiver_progress* progress);

typedef struct quiver_eigen_options {
    size_t struct_size;
    /// Number of wanted pairs; every copy of a multiple eigenvalue counts. 0: 10.
    int32_t k;
    /// QUIVER_SMALLEST, ...
    int32_t which;
    double target;
    /// A pair has converged when ||A x - lambda B x|| <= tol (||A|| + |lambda| ||B||), ||x|| = 1
    /// (the second term only with B). A tolerance below 32 units of round-off is raised to that
    /// value. 0: 1e-10.
    double tol;
    /// Block steps before the solver gives up; 0: until they bring no progress.
    int64_t max_iterations;
    /// Equal seeds give equal results.
    uint64_t seed;
    /// QUIVER_EIGEN_AUTO, ...
    int32_t method;
    /// The number of columns that a step multiplies at once, and the number of columns of the
    /// search basis; 0: the solver's choice.
    int32_t block, max_basis;
    /// QUIVER_ABFT_OFF, ...
    int32_t abft;
    /// 1: all eigenvalues in [window_low, window_high] are wanted; k and which are ignored.
    int32_t use_window;
    /// 1: omits the test that A and B are Hermitian, which costs a product of each with 4 columns.
    int32_t skip_hermitian_check;
    double window_low, window_high;
    /// B of A x = lambda B x, Hermitian positive definite; null: B = I.
    const quiver_operator* mass;
    /// Positive definite, an approximate inverse of A (of A - sigma B with sigma near the wanted
    /// eigenvalues).
    const quiver_operator* preconditioner;
    /// (A - sigma B)^-1 with sigma near the wanted eigenvalues: shift and invert.
    const quiver_operator* inverse;
    /// Guesses of eigenvectors, any number of columns.
    const quiver_block* start;
    /// Only vectors orthogonal to these columns (in the inner product of B) are wanted.
    const quiver_block* constraints;
    quiver_progress_function progress;
    void* progress_user;
    /// Ends the solve after this time, with QUIVER_NOT_CONVERGED and the pairs found so far; 0: no
    /// limit.
    double max_seconds;
    /// QUIVER_INNER_MINRES, ...
    int32_t inner;
} quiver_eigen_options;

/// The outcome of an eigensolve. The pointers belong to the result handle.
typedef struct quiver_eigen_info {
    size_t struct_size;
    /// Number of pairs: k, or all in the window; fewer if the solver gave up.
    int32_t count;
    /// 1 if all wanted pairs have converged and `verified` is 1.
    int32_t converged;
    /// 1 if a search has shown that no copy of a wanted eigenvalue is missing.
    int32_t verified;
    /// 1 if the wanted set ends inside a cluster; the choice of its members is then arbitrary.
    int32_t cluster_cut;
    /// 1 if the progress function stopped the solve.
    int32_t interrupted;
    /// The algorithm that ran, QUIVER_LANCZOS, ...
    int32_t method;
    /// `count` eigenvalues, ascending, and ||A x - lambda B x|| / ||x|| of each pair, in host
    /// memory.
    const double* values;
    const double* residuals;
    /// Eigenvectors, rows x count, (B-)orthonormal, in the context's place. Copy them with
    /// quiver_copy().
    quiver_block vectors;
    /// An estimate of ||A||, and the tolerance that the solver used.
    double norm_estimate, tolerance;
    double seconds;
    int64_t iterations;
    /// Products with A, counted by column.
    int64_t operator_applications;
    /// Silent faults found.
    int64_t faults;
    /// The reason if the solver did not converge, otherwise empty.
    const char* message;
} quiver_eigen_info;

/// *result <- eigenpairs of A x = lambda B x with Hermitian A. QUIVER_NOT_CONVERGED also sets the
/// result. Errors: SHAPE, INPUT (also a matrix that is not Hermitian), NUMERICAL, OTHER.
QUIVER_API quiver_status quiver_eigensolve(quiver_context* context, const quiver_operator* a,
                                           const quiver_eigen_options* options,
                                           quiver_eigen_result** result);
/// Fills in the info; its pointers are valid until the result is freed.
QUIVER_API quiver_status quiver_eigen_result_get(const quiver_eigen_result* result,
                                                 quiver_eigen_info* info);
QUIVER_API void quiver_eigen_result_free(quiver_eigen_result* result);

// ---- Linear systems -----------------------------------------------------------------------------

/// cg: Hermitian positive definite; minres: Hermitian; gmres, bicgstab: any operator.
enum { QUIVER_CG = 0, QUIVER_MINRES = 1, QUIVER_GMRES = 2, QUIVER_BICGSTAB = 3 };

typedef struct quiver_linear_options {
    size_t struct_size;
    /// QUIVER_CG, ...
    int32_t method;
    /// 1: X holds a first guess. 0: the first guess is 0, and the contents of X are ignored.
    int32_t x_is_guess;
    /// Column j has converged when ||b_j - (A - shift I) x_j|| <= tol ||b_j||. 0: 1e-10.
    double tol;
    /// One tolerance for each column instead of `tol`; null: `tol` for all columns.
    const double* column_tol;
    /// The largest number of steps of a column; 0: 1000.
    int64_t max_iterations;
    /// Steps of gmres before it restarts; 0: 30.
    int32_t restart;
    double shift;
    /// An approximate inverse, positive definite for cg and minres.
    const quiver_operator* preconditioner;
} quiver_linear_options;

/// The outcome of a linear solve. The arrays have one element per column and belong to the handle.
typedef struct quiver_linear_info {
    size_t struct_size;
    int32_t count;
    /// 1 if all columns have converged.
    int32_t converged;
    /// For each column: ||b - (A - shift I) x||, ||b||, the number of steps, and 1 if it has
    /// converged.
    const double* residuals;
    const double* b_norms;
    const int64_t* column_iterations;
    const int32_t* column_converged;
    int64_t iterations;
    int64_t operator_applications, preconditioner_applications;
    double seconds;
    /// The reason why the first of the unconverged columns did not converge; empty if all
    /// converged.
    const char* message;
} quiver_linear_info;

/// X <- the solution of (A - shift I) X = B, for all columns at once. B, X: rows x n in the
/// context's place, without overlap. `result` may be null. QUIVER_NOT_CONVERGED also sets X and the
/// result. Errors: SHAPE, INPUT, OTHER.
QUIVER_API quiver_status quiver_linear_solve(quiver_context* context, const quiver_operator* a,
                                             const quiver_block* b, const quiver_block* x,
                                             const quiver_linear_options* options,
                                             quiver_linear_result** result);
/// Fills in the info; its pointers are valid until the result is freed.
QUIVER_API quiver_status quiver_linear_result_get(const quiver_linear_result* result,
                                                  quiver_linear_info* info);
QUIVER_API void quiver_linear_result_free(quiver_linear_result* result);

// ---- Products of blocks -------------------------------------------------------------------------

/// C = alpha A^H B + beta C, summed over the rows of all ranks. A: rows x m, B: rows x n, in the
/// context's place; C: m x n in either place. beta = 0 overwrites C. A and B may overlap, C
/// overlaps neither. Errors: SHAPE.
QUIVER_API quiver_status quiver_tsmttsm(quiver_context* context, quiver_scalar alpha,
                                        const quiver_block* a, const quiver_block* b,
                                        quiver_scalar beta, const quiver_block* c);

/// Y = alpha X C + beta Y. X: rows x m, Y: rows x n, in the context's place; C: m x n in either
/// place. beta = 0 overwrites Y. Either X and Y do not overlap, or both start at the same element
/// with the same ld (a product in place). C overlaps neither. Errors: SHAPE.
QUIVER_API quiver_status quiver_tsmm(quiver_context* context, quiver_scalar alpha,
                                     const quiver_block* x, const quiver_block* c,
                                     quiver_scalar beta, const quiver_block* y);

/// Y = alpha A X + beta Y for any operator A. Y: rows x n, X: rows x n, or cols x n if the matrix
/// has cols, in the context's place, without overlap. beta = 0 overwrites Y. Errors: SHAPE, OTHER.
QUIVER_API quiver_status quiver_spmm(quiver_context* context, const quiver_operator* a,
                                     quiver_scalar alpha, const quiver_block* x, quiver_scalar beta,
                                     const quiver_block* y);

/// X = Q R with Q^H Q = I and R upper triangular. X, Q: rows x n in the context's place, without
/// overlap; R: n x n, host memory. Errors: SHAPE, NUMERICAL (X has NaN or infinity).
QUIVER_API quiver_status quiver_qr(quiver_context* context, const quiver_block* x,
                                   const quiver_block* q, const quiver_block* r);

/// Orthonormalises W against V. The first *rank columns of W become an orthonormal basis of the
/// part that W adds to the span of V, so that W^H W = I and V^H W = 0 there; the other columns are
/// undefined. V: rows x p, orthonormal, or null; W: rows x n, both in the context's place, without
/// overlap. `rank` may be null. Errors: SHAPE, NUMERICAL.
QUIVER_API quiver_status quiver_orthonormalise(quiver_context* context, const quiver_block* v,
                                               const quiver_block* w, int32_t* rank);

/// To <- From, between any two places. Types of the same kind (S and D, C and Z) are converted. If
/// one place is the host, the copy is complete when the call returns. No overlap. Errors: SHAPE.
QUIVER_API quiver_status quiver_copy(quiver_context* context, const quiver_block* from,
                                     const quiver_block* to);

// ---- Functions of the header --------------------------------------------------------------------

/// Sets struct_size, and all other fields to 0.
static inline void quiver_context_options_init(quiver_context_options* options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}
static inline void quiver_csr_init(quiver_csr* csr) {
    memset(csr, 0, sizeof *csr);
    csr->struct_size = sizeof *csr;
}
static inline void quiver_eigen_options_init(quiver_eigen_options* options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}
static inline void quiver_eigen_info_init(quiver_eigen_info* info) {
    memset(info, 0, sizeof *info);
    info->struct_size = sizeof *info;
}
static inline void quiver_linear_options_init(quiver_linear_options* options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}
static inline void quiver_linear_info_init(quiver_linear_info* info) {
    memset(info, 0, sizeof *info);
    info->struct_size = sizeof *info;
}

static inline quiver_scalar quiver_complex(double re, double im) {
    quiver_scalar value;
    value.re = re;
    value.im = im;
    return value;
}
static inline quiver_scalar quiver_real(double re) {
    return quiver_complex(re, 0.0);
}

/// A block with contiguous rows. The data of a block that is only read may be const.
static inline quiver_block quiver_block_of(quiver_place place, quiver_type type, const void* data,
                                           int64_t rows, int32_t cols) {
    quiver_block block;
    block.data = (void*)(uintptr_t)data;
    block.rows = rows;
    block.ld = cols;
    block.cols = cols;
    block.type = type;
    block.place = place;
    return block;
}
static inline quiver_block quiver_host_block(quiver_type type, const void* data, int64_t rows,
                                             int32_t cols) {
    return quiver_block_of(QUIVER_HOST, type, data, rows, cols);
}
static inline quiver_block quiver_device_block(quiver_type type, const void* data, int64_t rows,
                                               int32_t cols) {
    return quiver_block_of(QUIVER_DEVICE, type, data, rows, cols);
}

#ifdef __cplusplus
}
#endif

#endif
