# SPDX-License-Identifier: BSD-3-Clause
# QUIVER_PUBLIC_HEADERS, relative to PROJECT_SOURCE_DIR: the public headers of the floors, which are
# installed and documented. The list excludes leaves and headers that are private to a floor. Scripts
# (cmake -P) also include this file; they have no CONFIGURE_DEPENDS, because they are not run again
# when a header is added.
set(glob_flags CONFIGURE_DEPENDS)
if(CMAKE_SCRIPT_MODE_FILE)
    set(glob_flags "")
endif()
file(GLOB_RECURSE QUIVER_PUBLIC_HEADERS ${glob_flags} RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/blockvec/*.hpp ${PROJECT_SOURCE_DIR}/kernels/*.hpp ${PROJECT_SOURCE_DIR}/solvers/*.hpp)
list(FILTER QUIVER_PUBLIC_HEADERS EXCLUDE REGEX "^kernels/(host|cuda|hdf5|operations|reference)/")
list(REMOVE_ITEM QUIVER_PUBLIC_HEADERS kernels/dispatch.hpp kernels/leaf_args.hpp kernels/leaves.hpp kernels/operation.hpp
    kernels/operation_table.hpp kernels/precision_lists.hpp
    kernels/sparse/chunk_order.hpp kernels/sparse/exchange.hpp
    kernels/sparse/halo.hpp kernels/sparse/matrix_market_parser.hpp kernels/sparse/product_arrays.hpp kernels/sparse/text_source.hpp
    solvers/eigen/annotated_checkpoint.hpp solvers/eigen/lanczos_basis.hpp solvers/eigen/lobpcg_solver.hpp solvers/linear/linear_columns.hpp solvers/small_dense_eigen.hpp)
