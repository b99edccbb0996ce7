// SPDX-License-Identifier: BSD-3-Clause
// Solves the table problems.txt by the C interface: c_test TABLE. This file is C99, so the header
// must be C99 too.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "quiver.h"

static int failures = 0;

static void expect(int condition, const char* line, const char* what) {
    if (!condition) {
        ++failures;
        printf("%.60s...: %s\n", line, what);
    }
}

static void succeed(quiver_status status, const char* line) {
    if (status != QUIVER_OK) {
        ++failures;
        printf("%.60s...: %s: %s\n", line, quiver_status_name(status), quiver_last_message());
    }
}

/// A rows x cols block of zeros, in memory that the caller frees.
static quiver_block make_block(quiver_type type, int64_t rows, int cols) {
    static const size_t bytes[] = {4, 8, 8, 16};
    return quiver_host_block(type, calloc((size_t)(rows * cols), bytes[type]), rows, cols);
}

static void set(const quiver_block* block, int64_t i, int j, double re, double im) {
    const int64_t at = i * block->ld + j;
    switch (block->type) {
        case QUIVER_S:
            ((float*)block->data)[at] = (float)re;
            break;
        case QUIVER_D:
            ((double*)block->data)[at] = re;
            break;
        case QUIVER_C:
            ((float*)block->data)[2 * at] = (float)re;
            ((float*)block->data)[2 * at + 1] = (float)im;
            break;
        default:
            ((double*)block->data)[2 * at] = re;
            ((double*)block->data)[2 * at + 1] = im;
    }
}

static quiver_scalar get(const quiver_block* block, int64_t i, int j) {
    const int64_t at = i * block->ld + j;
    switch (block->type) {
        case QUIVER_S:
            return quiver_real(((const float*)block->data)[at]);
        case QUIVER_D:
            return quiver_real(((const double*)block->data)[at]);
        case QUIVER_C:
            return quiver_complex(((const float*)block->data)[2 * at],
                                  ((const float*)block->data)[2 * at + 1]);
        default:
            return quiver_complex(((const double*)block->data)[2 * at],
                                  ((const double*)block->data)[2 * at + 1]);
    }
}

static int index_of(const char* word, const char* const* words) {
    for (int i = 0; words[i] != NULL; ++i) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
    }
    printf("the table has the unknown word %s\n", word);
    exit(1);
}
static quiver_type type_of(const char* letter) {
    static const char* const letters[] = {"s", "d", "c", "z", NULL};
    return index_of(letter, letters);
}
static double epsilon(quiver_type type) {
    return type == QUIVER_S || type == QUIVER_C ? FLT_EPSILON : DBL_EPSILON;
}

/// A matrix of the table, in CSR arrays.
typedef struct {
    quiver_type type;
    int n, periodic;
    double diagonal, re, im;
    int64_t* row_start;
    int64_t* column;
    quiver_block value;
} matrix;

static void add(matrix* a, int* entries, int column, double re, double im) {
    if (a->periodic) {
        column = (column + a->n) % a->n;
    }
    if (column >= 0 && column < a->n) {
        a->column[*entries] = column;
        set(&a->value, *entries, 0, re, im);
        ++*entries;
    }
}

/// Reads TYPE n periodic d re im from a line; returns the number of characters read.
static int read_matrix(const char* line, matrix* a) {
    char type[8];
    int read = 0;
    if (sscanf(line, "%*s %*s %7s %d %d %lf %lf %lf%n", type, &a->n, &a->periodic, &a->diagonal,
               &a->re, &a->im, &read) != 6) {
        expect(0, line, "not a matrix");
        exit(1);
    }
    a->type = type_of(type);
    a->row_start = calloc((size_t)a->n + 1, sizeof(int64_t));
    a->column = calloc(3 * (size_t)a->n, sizeof(int64_t));
    a->value = make_block(a->type, 3 * a->n, 1);
    int entries = 0;
    for (int i = 0; i < a->n; ++i) {
        add(a, &entries, i - 1, a->re, -a->im);
        add(a, &entries, i, a->diagonal, 0);
        add(a, &entries, i + 1, a->re, a->im);
        a->row_start[i + 1] = entries;
    }
    return read;
}

static void free_matrix(matrix* a) {
    free(a->row_start);
    free(a->column);
    free(a->value.data);
}

static double norm_bound(const matrix* a) {
    return fabs(a->diagonal) + 2 * hypot(a->re, a->im);
}

static quiver_operator* make_operator(quiver_context* context, const matrix* a, const char* line) {
    quiver_csr csr;
    quiver_csr_init(&csr);
    csr.type = a->type;
    csr.index_bits = 64;
    csr.rows = a->n;
    csr.row_start = a->row_start;
    csr.column = a->column;
    csr.value = a->value.data;
    quiver_operator* op = NULL;
    succeed(quiver_matrix_create(context, &csr, &op), line);
    return op;
}

/// The square of ||A x_j - w x_j||, by loops over the CSR arrays.
static double squared_residual(const matrix* a, const quiver_block* x, int j, double w) {
    double sum = 0;
    for (int i = 0; i < a->n; ++i) {
        const quiver_scalar own = get(x, i, j);
        double re = -w * own.re, im = -w * own.im;
        for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; ++k) {
            const quiver_scalar v = get(&a->value, k, 0), y = get(x, a->column[k], j);
            re += v.re * y.re - v.im * y.im;
            im += v.re * y.im + v.im * y.re;
        }
        sum += re * re + im * im;
    }
    return sum;
}

static void eigen(quiver_context* context, const char* line) {
    static const char* const which[] = {
        "smallest",           "largest",   "target", "largest-magnitude",
        "smallest-magnitude", "both-ends", NULL};
    static const char* const methods[] = {"auto",   "lanczos", "chebyshev", "lobpcg",
                                          "filter", "jd",      NULL};
    matrix a;
    const char* rest = line + read_matrix(line, &a);
    char which_word[32], method[32];
    int read = 0;
    quiver_eigen_options options;
    quiver_eigen_options_init(&options);
    if (sscanf(rest, "%31s %lf %31s %d%n", which_word, &options.target, method, &options.k,
               &read) != 4) {
        expect(0, line, "not an eigenproblem");
        exit(1);
    }
    options.which = index_of(which_word, which);
    options.method = index_of(method, methods);
    rest += read;

    quiver_operator* op = make_operator(context, &a, line);
    quiver_eigen_result* result = NULL;
    succeed(quiver_eigensolve(context, op, &options, &result), line);
    quiver_eigen_info info;
    quiver_eigen_info_init(&info);
    succeed(quiver_eigen_result_get(result, &info), line);
    expect(info.count == options.k && info.converged && info.verified, line, "not verified");
    // An eigenvalue of a Hermitian matrix lies within the residual of each computed value. The
    // tolerance bounds the residual; 4 eps cover entries rounded to the type.
    const double bound = (fmax(1e-10, 32 * epsilon(a.type)) + 4 * epsilon(a.type)) * norm_bound(&a);
    for (int j = 0; j < info.count; ++j) {
        char* end = NULL;
        const double exact = strtod(rest, &end);
        expect(end != rest, line, "too few eigenvalues in the table");
        rest = end;
        expect(fabs(info.values[j] - exact) <= bound, line, "wrong eigenvalue");
        expect(sqrt(squared_residual(&a, &info.vectors, j, info.values[j])) <= bound, line,
               "large residual");
    }
    quiver_eigen_result_free(result);
    quiver_operator_free(op);
    free_matrix(&a);
}

static void solve(quiver_context* context, const char* line) {
    static const char* const methods[] = {"cg", "minres", "gmres", "bicgstab", NULL};
    matrix a;
    const char* rest = line + read_matrix(line, &a);
    char method[32], preconditioner[32];
    int columns = 0;
    if (sscanf(rest, "%31s %31s %d", method, preconditioner, &columns) != 3) {
        expect(0, line, "not a linear system");
        exit(1);
    }
    quiver_operator* op = make_operator(context, &a, line);
    quiver_operator* m = NULL;
    if (strcmp(preconditioner, "none") != 0) {
        succeed(quiver_preconditioner_create(context, op, preconditioner, NULL, &m), line);
    }
    quiver_block exact = make_block(a.type, a.n, columns), x = make_block(a.type, a.n, columns),
                 b = make_block(a.type, a.n, columns);
    for (int i = 0; i < a.n; ++i) {
        for (int j = 0; j < columns; ++j) {
            set(&exact, i, j, 1 + (i + 1) * (j + 1) % 7, 0);
        }
    }
    succeed(quiver_spmm(context, op, quiver_real(1), &exact, quiver_real(0), &b), line);
    quiver_linear_options options;
    quiver_linear_options_init(&options);
    options.method = index_of(method, methods);
    options.tol = fmax(1e-10, 32 * epsilon(a.type));
    options.preconditioner = m;
    quiver_linear_result* result = NULL;
    succeed(quiver_linear_solve(context, op, &b, &x, &options, &result), line);
    quiver_linear_info info;
    quiver_linear_info_init(&info);
    succeed(quiver_linear_result_get(result, &info), line);
    expect(info.count == columns && info.converged, line, "not converged");
    // ||x - exact|| <= ||A^-1|| ||b - A x||, and b has the rounding of one product.
    const double inverse = 1 / (fabs(a.diagonal) - 2 * hypot(a.re, a.im));
    for (int j = 0; j < columns; ++j) {
        double error = 0;
        for (int i = 0; i < a.n; ++i) {
            const quiver_scalar p = get(&x, i, j), q = get(&exact, i, j);
            error += (p.re - q.re) * (p.re - q.re) + (p.im - q.im) * (p.im - q.im);
        }
        expect(sqrt(error) <= inverse * (options.tol + 8 * epsilon(a.type)) * info.b_norms[j], line,
               "wrong solution");
        expect(info.column_converged[j] && info.column_iterations[j] > 0, line, "wrong columns");
    }
    quiver_linear_result_free(result);
    quiver_operator_free(m);
    quiver_operator_free(op);
    free(exact.data);
    free(x.data);
    free(b.data);
    free_matrix(&a);
}

static void fill_a(const quiver_block* block) {
    for (int64_t i = 0; i < block->rows; ++i) {
        for (int j = 0; j < block->cols; ++j) {
            set(block, i, j, (double)((3 * i + 5 * j) % 7 - 3), (double)((2 * i + 3 * j) % 5 - 2));
        }
    }
}
static void fill_b(const quiver_block* block) {
    for (int64_t i = 0; i < block->rows; ++i) {
        for (int j = 0; j < block->cols; ++j) {
            set(block, i, j, (double)((i + 2 * j) % 5 - 2), (double)((4 * i + j) % 7 - 3));
        }
    }
}

/// Checks tsmttsm or tsmm; the products are integers and have no rounding error.
static void product(quiver_context* context, const char* line, int is_tsmttsm) {
    char letter[8];
    int rows = 0, m = 0, n = 0, read = 0;
    if (sscanf(line, "%*s %*s %7s %d %d %d%n", letter, &rows, &m, &n, &read) != 4) {
        expect(0, line, "not a product");
        exit(1);
    }
    const char* rest = line + read;
    const quiver_type type = type_of(letter);
    quiver_block a = make_block(type, rows, m), b = make_block(type, is_tsmttsm ? rows : m, n),
                 c = make_block(type, is_tsmttsm ? m : rows, n);
    fill_a(&a);
    fill_b(&b);
    succeed(is_tsmttsm ? quiver_tsmttsm(context, quiver_real(1), &a, &b, quiver_real(0), &c)
                       : quiver_tsmm(context, quiver_real(1), &a, &b, quiver_real(0), &c),
            line);
    for (int64_t i = is_tsmttsm ? 0 : rows - 1; i < c.rows; ++i) {
        for (int j = 0; j < n; ++j) {
            char* end = NULL;
            const double re = strtod(rest, &end);
            const double im = strtod(end, &end);
            expect(end != rest, line, "too few numbers in the table");
            rest = end;
            const quiver_scalar found = get(&c, i, j);
            expect(found.re == re && found.im == im, line, "wrong product");
        }
    }
    free(a.data);
    free(b.data);
    free(c.data);
}

int main(int argc, char** argv) {
    FILE* table = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (table == NULL) {
        printf("usage: c_test TABLE\n");
        return 1;
    }
    quiver_context* context = NULL;
    succeed(quiver_context_create(NULL, &context), "context");
    static char line[4096];
    int eigens = 0, solves = 0, products = 0;
    while (fgets(line, sizeof line, table) != NULL) {
        if (strncmp(line, "eigen ", 6) == 0) {
            eigen(context, line);
            ++eigens;
        } else if (strncmp(line, "solve ", 6) == 0) {
            solve(context, line);
            ++solves;
        } else if (strncmp(line, "tsm", 3) == 0) {
            product(context, line, strncmp(line, "tsmttsm ", 8) == 0);
            ++products;
        } else {
            expect(line[0] == '#', line, "an unknown kind of problem");
        }
    }
    fclose(table);
    quiver_context_free(context);
    printf("%d eigenproblems, %d linear systems, %d products: %d failures\n", eigens, solves,
           products, failures);
    return failures == 0 && eigens >= 8 && solves >= 5 && products >= 8 ? 0 : 1;
}
