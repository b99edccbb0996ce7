// SPDX-License-Identifier: BSD-3-Clause
// A first solve in C: a sparse matrix as CSR arrays, its smallest eigenvalues, and whether all
// copies of them were found. The problem is that of first_solve.cpp: the five-point Laplacian of a
// square membrane, with the eigenvalues 4 - 2 cos(p pi / (n + 1)) - 2 cos(q pi / (n + 1)); the
// second and third are equal. Build: see README.md beside this file; target first_solve_c.
#include <math.h>
#include <quiver.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 30 };

static int32_t row_start[n * n + 1], column[5 * n * n];
static double value[5 * n * n];
static int entries = 0;

static void add(int x, int y, double entry) {
    if (x >= 0 && x < n && y >= 0 && y < n) {
        column[entries] = x + n * y;
        value[entries] = entry;
        ++entries;
    }
}

/// Ends the program with the library's message unless the call was successful.
static void check(quiver_status status) {
    if (status != QUIVER_OK) {
        fprintf(stderr, "%s: %s\n", quiver_status_name(status), quiver_last_message());
        exit(1);
    }
}

int main(void) {
    for (int y = 0; y < n; ++y) {
        for (int x = 0; x < n; ++x) {
            add(x, y, 4.0);
            add(x - 1, y, -1.0);
            add(x + 1, y, -1.0);
            add(x, y - 1, -1.0);
            add(x, y + 1, -1.0);
            row_start[x + n * y + 1] = entries;
        }
    }
    quiver_context* context;
    check(quiver_context_create(NULL, &context));  // this process and its threads

    quiver_csr csr;
    quiver_csr_init(&csr);
    csr.type = QUIVER_D;
    csr.index_bits = 32;
    csr.rows = n * n;
    csr.row_start = row_start;
    csr.column = column;
    csr.value = value;
    quiver_operator* membrane;
    check(quiver_matrix_create(context, &csr, &membrane));

    quiver_eigen_options options;
    quiver_eigen_options_init(&options);
    options.k = 4;
    quiver_eigen_result* result;
    check(quiver_eigensolve(context, membrane, &options, &result));

    quiver_eigen_info info;
    quiver_eigen_info_init(&info);
    check(quiver_eigen_result_get(result, &info));
    double error = 0;
    for (int j = 0; j < info.count; ++j) {
        static const int p[] = {1, 1, 2, 2}, q[] = {1, 2, 1, 2};
        const double step = acos(-1.0) / (n + 1);
        const double exact = 4 - 2 * cos(p[j] * step) - 2 * cos(q[j] * step);
        printf("%.8f\n", info.values[j]);
        error = fmax(error, fabs(info.values[j] - exact));
    }
    printf("all copies found: %s\n", info.verified ? "yes" : "not verified");
    const int good = error < 1e-9 && info.verified;
    quiver_eigen_result_free(result);
    quiver_operator_free(membrane);
    quiver_context_free(context);
    return good ? 0 : 1;
}
// It prints
//> 0.02052271
//> 0.05120147
//> 0.05120147
//> 0.08188023
//> all copies found: yes
