! SPDX-License-Identifier: BSD-3-Clause
! The Fortran interface of Quiver: the functions of quiver.h for Fortran arrays. docs/c.md explains it.
!
! - Blocks. A block of n rows and b columns (vectors) is an array x(b, n): the row-major order of the
!   library is Fortran's order with the vector number first. Arrays are real or complex of kind 4 or 8
!   and are not copied. Sections such as x(1:k, :) are allowed; x(1::2, :) is an error. Procedures
!   with the same name take type(quiver_block) instead, for example for the memory of a GPU.
! - Errors. If the optional argument `status` is absent, every outcome other than QUIVER_OK, also
!   QUIVER_NOT_CONVERGED, stops the program with its message. If it is present, the caller compares it
!   with QUIVER_OK, and quiver_message() returns the reason.
! - CSR arrays begin with 1 unless index_base = 0.
module quiver
    use, intrinsic :: iso_c_binding
    implicit none
    private

    integer(c_int32_t), parameter, public :: QUIVER_OK = 0, QUIVER_NOT_CONVERGED = 1, QUIVER_ERROR_OTHER = -1, &
        QUIVER_ERROR_SHAPE = -2, QUIVER_ERROR_INPUT = -3, QUIVER_ERROR_UNSUPPORTED = -4, QUIVER_ERROR_NUMERICAL = -5, &
        QUIVER_ERROR_MEMORY = -6, QUIVER_ERROR_DEVICE = -7, QUIVER_ERROR_COMM = -8
    integer(c_int32_t), parameter, public :: QUIVER_S = 0, QUIVER_D = 1, QUIVER_C = 2, QUIVER_Z = 3
    integer(c_int32_t), parameter, public :: QUIVER_HOST = 0, QUIVER_DEVICE = 1
    integer(c_int32_t), parameter, public :: QUIVER_SMALLEST = 0, QUIVER_LARGEST = 1, QUIVER_TARGET = 2, &
        QUIVER_LARGEST_MAGNITUDE = 3, QUIVER_SMALLEST_MAGNITUDE = 4, QUIVER_BOTH_ENDS = 5
    integer(c_int32_t), parameter, public :: QUIVER_EIGEN_AUTO = 0, QUIVER_LANCZOS = 1, QUIVER_CHEBYSHEV = 2, &
        QUIVER_LOBPCG = 3, QUIVER_FILTER = 4, QUIVER_JACOBI_DAVIDSON = 5, &
        QUIVER_DENSE = 6, QUIVER_SHIFT_INVERT = 7
    integer(c_int32_t), parameter, public :: QUIVER_INNER_MINRES = 0, QUIVER_INNER_CG = 1, &
        QUIVER_INNER_GMRES = 2, QUIVER_INNER_JDQMR = 3
    integer(c_int32_t), parameter, public :: QUIVER_ABFT_OFF = 0, QUIVER_ABFT_DETECT = 1, QUIVER_ABFT_CORRECT = 2
    integer(c_int32_t), parameter, public :: QUIVER_CG = 0, QUIVER_MINRES = 1, QUIVER_GMRES = 2, QUIVER_BICGSTAB = 3

    ! Handles.
    type, public :: quiver_context
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: quiver_operator
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: quiver_eigen_result
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: quiver_linear_result
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! The structs of quiver.h. The procedures of this module set struct_size. Dummy arguments of these
    ! types have the attribute target: without it, gfortran assumes that a call does not change the
    ! memory that their pointers point to.
    type, bind(C), public :: quiver_scalar
        real(c_double) :: re = 0, im = 0
    end type
    type, bind(C), public :: quiver_block
        type(c_ptr) :: data = c_null_ptr
        integer(c_int64_t) :: rows = 0, ld = 0
        integer(c_int32_t) :: cols = 0, type = QUIVER_D, place = QUIVER_HOST
    end type
    type, bind(C), public :: quiver_context_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: place = QUIVER_HOST, device = 0, threads = 0, use_comm = 0, comm = 0
        type(c_ptr) :: stream = c_null_ptr
    end type
    type, bind(C) :: quiver_csr
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: type = QUIVER_D, index_bits = 32, place = QUIVER_HOST, index_base = 1
        integer(c_int64_t) :: rows = 0
        type(c_ptr) :: row_start = c_null_ptr, column = c_null_ptr, value = c_null_ptr
        integer(c_int64_t) :: cols = 0
    end type
    type, bind(C), public :: quiver_progress
        integer(c_size_t) :: struct_size
        type(c_ptr) :: solver, stage
        integer(c_int64_t) :: iteration
        integer(c_int32_t) :: converged, wanted
        real(c_double) :: residual, seconds
    end type
    type, bind(C), public :: quiver_eigen_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: k = 0, which = QUIVER_SMALLEST
        real(c_double) :: target = 0, tol = 0
        integer(c_int64_t) :: max_iterations = 0, seed = 0
        integer(c_int32_t) :: method = QUIVER_EIGEN_AUTO, block = 0, max_basis = 0, abft = QUIVER_ABFT_OFF
        integer(c_int32_t) :: use_window = 0, skip_hermitian_check = 0
        real(c_double) :: window_low = 0, window_high = 0
        ! mass, preconditioner and inverse are the component `handle` of operators. start and
        ! constraints are arguments of quiver_eigensolve, which sets them here.
        type(c_ptr) :: mass = c_null_ptr, preconditioner = c_null_ptr, inverse = c_null_ptr
        type(c_ptr) :: start = c_null_ptr, constraints = c_null_ptr
        type(c_funptr) :: progress = c_null_funptr
        type(c_ptr) :: progress_user = c_null_ptr
        real(c_double) :: max_seconds = 0
        integer(c_int32_t) :: inner = QUIVER_INNER_MINRES
    end type
    type, bind(C), public :: quiver_eigen_info
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: count = 0, converged = 0, verified = 0, cluster_cut = 0, interrupted = 0, method = 0
        type(c_ptr) :: values = c_null_ptr, residuals = c_null_ptr
        type(quiver_block) :: vectors
        real(c_double) :: norm_estimate = 0, tolerance = 0, seconds = 0
        integer(c_int64_t) :: iterations = 0, operator_applications = 0, faults = 0
        type(c_ptr) :: message = c_null_ptr
    end type
    type, bind(C), public :: quiver_linear_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: method = QUIVER_CG, x_is_guess = 0
        real(c_double) :: tol = 0
        type(c_ptr) :: column_tol = c_null_ptr
        integer(c_int64_t) :: max_iterations = 0
        integer(c_int32_t) :: restart = 0
        real(c_double) :: shift = 0
        type(c_ptr) :: preconditioner = c_null_ptr
    end type
    ! One element per column: residuals(:) and b_norms(:) of real(c_double), column_iterations(:) of
    ! integer(c_int64_t), column_converged(:) of integer(c_int32_t); c_f_pointer(info%residuals, r,
    ! [info%count]) makes an array of them.
    type, bind(C), public :: quiver_linear_info
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: count = 0, converged = 0
        type(c_ptr) :: residuals = c_null_ptr, b_norms = c_null_ptr
        type(c_ptr) :: column_iterations = c_null_ptr, column_converged = c_null_ptr
        integer(c_int64_t) :: iterations = 0, operator_applications = 0, preconditioner_applications = 0
        real(c_double) :: seconds = 0
        type(c_ptr) :: message = c_null_ptr
    end type

    public :: quiver_message, quiver_context_create, quiver_context_free, quiver_context_synchronize
    public :: quiver_matrix_create, quiver_matrix_replace_values, quiver_adjoint_create, quiver_operator_create, &
        quiver_preconditioner_create, quiver_inverse_create, quiver_operator_free
    public :: quiver_eigensolve, quiver_eigen_info_of, quiver_eigen_values, quiver_eigen_vectors, quiver_eigen_result_free
    public :: quiver_linear_solve, quiver_linear_info_of, quiver_linear_result_free
    public :: quiver_tsmttsm, quiver_tsmm, quiver_spmm, quiver_qr, quiver_orthonormalise, quiver_copy
    public :: quiver_array

    ! Each procedure takes either arrays or values of type(quiver_block).
    interface quiver_linear_solve
        module procedure linear_solve_arrays, linear_solve_blocks
    end interface
    interface quiver_tsmttsm
        module procedure tsmttsm_arrays, tsmttsm_blocks
    end interface
    interface quiver_tsmm
        module procedure tsmm_arrays, tsmm_blocks
    end interface
    interface quiver_spmm
        module procedure spmm_arrays, spmm_blocks
    end interface
    interface quiver_qr
        module procedure qr_arrays, qr_blocks
    end interface
    interface quiver_orthonormalise
        module procedure orthonormalise_arrays, orthonormalise_blocks
    end interface
    ! call quiver_array(block, x) makes x(cols, rows) point to a block in host memory, for example to
    ! one that the function of an operator receives. x becomes null if the block has another scalar
    ! type.
    interface quiver_array
        module procedure array_s, array_d, array_c, array_z
    end interface

    interface
        function c_last_message() bind(C, name="quiver_last_message")
            import
            type(c_ptr) :: c_last_message
        end function
        integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
            import
            type(c_ptr), value :: text
        end function
        integer(c_int32_t) function c_context_create(options, context) bind(C, name="quiver_context_create")
            import
            type(quiver_context_options), intent(in), target :: options
            type(c_ptr), intent(out) :: context
        end function
        subroutine c_context_free(context) bind(C, name="quiver_context_free")
            import
            type(c_ptr), value :: context
        end subroutine
        integer(c_int32_t) function c_context_synchronize(context) bind(C, name="quiver_context_synchronize")
            import
            type(c_ptr), value :: context
        end function
        integer(c_int32_t) function c_matrix_create(context, csr, a) bind(C, name="quiver_matrix_create")
            import
            type(c_ptr), value :: context
            type(quiver_csr), intent(in), target :: csr
            type(c_ptr), intent(out) :: a
        end function
        integer(c_int32_t) function c_matrix_replace_values(context, a, type, value, count, place) &
            bind(C, name="quiver_matrix_replace_values")
            import
            type(c_ptr), value :: context, a, value
            integer(c_int64_t), value :: count
            integer(c_int32_t), value :: type, place
        end function
        integer(c_int32_t) function c_adjoint_create(context, a, adjoint) bind(C, name="quiver_adjoint_create")
            import
            type(c_ptr), value :: context, a
            type(c_ptr), intent(out) :: adjoint
        end function
        integer(c_int32_t) function c_operator_create(context, type, rows, function, user, a) &
            bind(C, name="quiver_operator_create")
            import
            type(c_ptr), value :: context, user
            integer(c_int32_t), value :: type
            integer(c_int64_t), value :: rows
            type(c_funptr), value :: function
            type(c_ptr), intent(out) :: a
        end function
        integer(c_int32_t) function c_preconditioner_create(context, a, name, mass, m) &
            bind(C, name="quiver_preconditioner_create")
            import
            type(c_ptr), value :: context, a, mass
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), intent(out) :: m
        end function
        integer(c_int32_t) function c_inverse_create(context, a, sigma, mass, inverse) bind(C, name="quiver_inverse_create")
            import
            type(c_ptr), value :: context, a, mass
            real(c_double), value :: sigma
            type(c_ptr), intent(out) :: inverse
        end function
        subroutine c_operator_free(a) bind(C, name="quiver_operator_free")
            import
            type(c_ptr), value :: a
        end subroutine
        integer(c_int32_t) function c_eigensolve(context, a, options, result) bind(C, name="quiver_eigensolve")
            import
            type(c_ptr), value :: context, a
            type(quiver_eigen_options), intent(in), target :: options
            type(c_ptr), intent(out) :: result
        end function
        integer(c_int32_t) function c_eigen_result_get(result, info) bind(C, name="quiver_eigen_result_get")
            import
            type(c_ptr), value :: result
            type(quiver_eigen_info), intent(inout) :: info
        end function
        subroutine c_eigen_result_free(result) bind(C, name="quiver_eigen_result_free")
            import
            type(c_ptr), value :: result
        end subroutine
        integer(c_int32_t) function c_linear_solve(context, a, b, x, options, result) bind(C, name="quiver_linear_solve")
            import
            type(c_ptr), value :: context, a, result
            type(quiver_block), intent(in), target :: b, x
            type(quiver_linear_options), intent(in), target :: options
        end function
        integer(c_int32_t) function c_linear_result_get(result, info) bind(C, name="quiver_linear_result_get")
            import
            type(c_ptr), value :: result
            type(quiver_linear_info), intent(inout) :: info
        end function
        subroutine c_linear_result_free(result) bind(C, name="quiver_linear_result_free")
            import
            type(c_ptr), value :: result
        end subroutine
        integer(c_int32_t) function c_tsmttsm(context, alpha, a, b, beta, c) bind(C, name="quiver_tsmttsm")
            import
            type(c_ptr), value :: context
            type(quiver_scalar), value :: alpha, beta
            type(quiver_block), intent(in), target :: a, b, c
        end function
        integer(c_int32_t) function c_tsmm(context, alpha, x, c, beta, y) bind(C, name="quiver_tsmm")
            import
            type(c_ptr), value :: context
            type(quiver_scalar), value :: alpha, beta
            type(quiver_block), intent(in), target :: x, c, y
        end function
        integer(c_int32_t) function c_spmm(context, a, alpha, x, beta, y) bind(C, name="quiver_spmm")
            import
            type(c_ptr), value :: context, a
            type(quiver_scalar), value :: alpha, beta
            type(quiver_block), intent(in), target :: x, y
        end function
        integer(c_int32_t) function c_qr(context, x, q, r) bind(C, name="quiver_qr")
            import
            type(c_ptr), value :: context
            type(quiver_block), intent(in), target :: x, q, r
        end function
        integer(c_int32_t) function c_orthonormalise(context, v, w, rank) bind(C, name="quiver_orthonormalise")
            import
            type(c_ptr), value :: context, v
            type(quiver_block), intent(in), target :: w
            integer(c_int32_t), intent(out) :: rank
        end function
        integer(c_int32_t) function c_copy(context, from, to) bind(C, name="quiver_copy")
            import
            type(c_ptr), value :: context
            type(quiver_block), intent(in), target :: from, to
        end function
    end interface

contains

    ! The message of the last call, if its status was not QUIVER_OK; otherwise empty.
    function quiver_message() result(text)
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: address
        integer :: i
        address = c_last_message()
        call c_f_pointer(address, letters, [c_strlen(address)])
        allocate(character(len=size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function

    ! Stores the code in `status` if present; otherwise any code but QUIVER_OK ends the program.
    subroutine finish(code, status)
        integer(c_int32_t), intent(in) :: code
        integer(c_int32_t), intent(out), optional :: status
        if (present(status)) then
            status = code
        else if (code /= QUIVER_OK) then
            error stop "quiver: " // quiver_message()
        end if
    end subroutine

    ! ---- Arrays as blocks ----

    integer(c_intptr_t) function address_of(pointer)
        type(c_ptr), intent(in) :: pointer
        address_of = transfer(pointer, address_of)
    end function

    ! The block x(cols, rows). If the elements of a row are not contiguous, ld is -1, which is an error
    ! in every call.
    function block_of(x) result(block)
        class(*), intent(in), target :: x(:, :)
        type(quiver_block) :: block
        integer(c_intptr_t) :: bytes, step
        type(c_ptr) :: first, right, below
        integer :: i, j
        block%cols = size(x, 1)
        block%rows = size(x, 2, c_int64_t)
        block%ld = block%cols
        i = min(2, size(x, 1))
        j = min(2, size(x, 2))
        bytes = 1
        block%type = -1
        first = c_null_ptr
        right = c_null_ptr
        below = c_null_ptr
        if (size(x) == 0) then
            i = 1
            j = 1
        end if
        select type (x)
        type is (real(c_float))
            block%type = QUIVER_S
            bytes = c_sizeof(0.0_c_float)
            if (size(x) > 0) call corners(c_loc(x(1, 1)), c_loc(x(i, 1)), c_loc(x(1, j)))
        type is (real(c_double))
            block%type = QUIVER_D
            bytes = c_sizeof(0.0_c_double)
            if (size(x) > 0) call corners(c_loc(x(1, 1)), c_loc(x(i, 1)), c_loc(x(1, j)))
        type is (complex(c_float_complex))
            block%type = QUIVER_C
            bytes = 2 * c_sizeof(0.0_c_float)
            if (size(x) > 0) call corners(c_loc(x(1, 1)), c_loc(x(i, 1)), c_loc(x(1, j)))
        type is (complex(c_double_complex))
            block%type = QUIVER_Z
            bytes = 2 * c_sizeof(0.0_c_double)
            if (size(x) > 0) call corners(c_loc(x(1, 1)), c_loc(x(i, 1)), c_loc(x(1, j)))
        end select
        block%data = first
        step = address_of(below) - address_of(first)
        if (j == 2) block%ld = step / bytes
        if (j == 2 .and. mod(step, bytes) /= 0) block%ld = -1
        if (i == 2 .and. address_of(right) - address_of(first) /= bytes) block%ld = -1
    contains
        subroutine corners(at_first, at_right, at_below)
            type(c_ptr), intent(in) :: at_first, at_right, at_below
            first = at_first
            right = at_right
            below = at_below
        end subroutine
    end function

    subroutine array_s(block, x)
        type(quiver_block), intent(in), target :: block
        real(c_float), pointer, intent(out) :: x(:, :)
        nullify(x)
        if (block%type == QUIVER_S) call c_f_pointer(block%data, x, [block%ld, block%rows])
        if (associated(x)) x => x(1:block%cols, :)
    end subroutine

    subroutine array_d(block, x)
        type(quiver_block), intent(in), target :: block
        real(c_double), pointer, intent(out) :: x(:, :)
        nullify(x)
        if (block%type == QUIVER_D) call c_f_pointer(block%data, x, [block%ld, block%rows])
        if (associated(x)) x => x(1:block%cols, :)
    end subroutine

    subroutine array_c(block, x)
        type(quiver_block), intent(in), target :: block
        complex(c_float_complex), pointer, intent(out) :: x(:, :)
        nullify(x)
        if (block%type == QUIVER_C) call c_f_pointer(block%data, x, [block%ld, block%rows])
        if (associated(x)) x => x(1:block%cols, :)
    end subroutine

    subroutine array_z(block, x)
        type(quiver_block), intent(in), target :: block
        complex(c_double_complex), pointer, intent(out) :: x(:, :)
        nullify(x)
        if (block%type == QUIVER_Z) call c_f_pointer(block%data, x, [block%ld, block%rows])
        if (associated(x)) x => x(1:block%cols, :)
    end subroutine

    ! An optional coefficient: real or complex of kind 4 or 8.
    function scalar_of(value, otherwise) result(scalar)
        class(*), intent(in), optional :: value
        real(c_double), intent(in) :: otherwise
        type(quiver_scalar) :: scalar
        scalar%re = otherwise
        if (.not. present(value)) return
        select type (value)
        type is (real(c_float))
            scalar%re = value
        type is (real(c_double))
            scalar%re = value
        type is (complex(c_float_complex))
            scalar%re = real(value)
            scalar%im = aimag(value)
        type is (complex(c_double_complex))
            scalar%re = real(value)
            scalar%im = aimag(value)
        class default
            error stop "quiver: alpha and beta must be real or complex numbers of kind 4 or 8"
        end select
    end function

    ! ---- Contexts ----

    subroutine quiver_context_create(context, options, status)
        type(quiver_context), intent(out) :: context
        type(quiver_context_options), intent(in), optional, target :: options
        integer(c_int32_t), intent(out), optional :: status
        type(quiver_context_options) :: given
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        call finish(c_context_create(given, context%handle), status)
    end subroutine

    subroutine quiver_context_free(context)
        type(quiver_context), intent(inout) :: context
        call c_context_free(context%handle)
        context%handle = c_null_ptr
    end subroutine

    subroutine quiver_context_synchronize(context, status)
        type(quiver_context), intent(in) :: context
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_context_synchronize(context%handle), status)
    end subroutine

    ! ---- Operators ----

    ! A sparse matrix from this rank's rows: row i has the entries row_start(i) .. row_start(i + 1) - 1
    ! of column and value. Integers have 4 or 8 bytes. cols: for a matrix that is not square, the number
    ! of its columns or, with a communicator, of the rows of X that this rank has.
    subroutine quiver_matrix_create(context, row_start, column, value, a, index_base, status, cols)
        type(quiver_context), intent(in) :: context
        class(*), intent(in), target :: row_start(:), column(:), value(:)
        type(quiver_operator), intent(out) :: a
        integer(c_int32_t), intent(in), optional :: index_base
        integer(c_int32_t), intent(out), optional :: status
        integer(c_int64_t), intent(in), optional :: cols
        type(quiver_csr) :: csr
        integer(c_int32_t) :: column_bits
        csr%struct_size = c_sizeof(csr)
        csr%rows = size(row_start, kind=c_int64_t) - 1
        if (present(index_base)) csr%index_base = index_base
        if (present(cols)) csr%cols = cols
        call look_at_vector(row_start, csr%index_bits, csr%row_start)
        call look_at_vector(column, column_bits, csr%column)
        call look_at_vector(value, csr%type, csr%value)
        if (column_bits /= csr%index_bits) csr%index_bits = 0
        call finish(c_matrix_create(context%handle, csr, a%handle), status)
    end subroutine

    ! Replaces the values of a matrix of quiver_matrix_create; its rows and columns stay. `value` has the
    ! type of the matrix and one value for each entry, in the same order.
    subroutine quiver_matrix_replace_values(context, a, value, status)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        class(*), intent(in), target :: value(:)
        integer(c_int32_t), intent(out), optional :: status
        integer(c_int32_t) :: type
        integer(c_int64_t) :: count
        type(c_ptr) :: address
        call look_at_vector(value, type, address)
        count = size(value, kind=c_int64_t)
        call finish(c_matrix_replace_values(context%handle, a%handle, type, address, count, QUIVER_HOST), status)
    end subroutine

    ! A^H of a matrix, as a matrix with memory of its own.
    subroutine quiver_adjoint_create(context, a, adjoint, status)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        type(quiver_operator), intent(out) :: adjoint
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_adjoint_create(context%handle, a%handle, adjoint%handle), status)
    end subroutine

    ! The address of a contiguous vector. `type` becomes its scalar type, or 32 or 64 for integers of so
    ! many bits, or -1 for any other vector.
    subroutine look_at_vector(x, type, address)
        class(*), intent(in), target :: x(:)
        integer(c_int32_t), intent(out) :: type
        type(c_ptr), intent(out) :: address
        type = -1
        address = c_null_ptr
        if (.not. is_contiguous(x)) return
        select type (x)
        type is (integer(c_int32_t))
            type = 32
            if (size(x) > 0) address = c_loc(x(1))
        type is (integer(c_int64_t))
            type = 64
            if (size(x) > 0) address = c_loc(x(1))
        type is (real(c_float))
            type = QUIVER_S
            if (size(x) > 0) address = c_loc(x(1))
        type is (real(c_double))
            type = QUIVER_D
            if (size(x) > 0) address = c_loc(x(1))
        type is (complex(c_float_complex))
            type = QUIVER_C
            if (size(x) > 0) address = c_loc(x(1))
        type is (complex(c_double_complex))
            type = QUIVER_Z
            if (size(x) > 0) address = c_loc(x(1))
        end select
    end subroutine

    ! Y = A X by a function of the caller, with the interface
    !     integer(c_int) function f(user, x, y, stream) bind(C)
    !         type(c_ptr), value :: user, stream
    !         type(quiver_block), intent(in), target :: x, y
    ! that returns 0 on success; quiver_array makes pointers of x and y. Pass c_funloc(f).
    subroutine quiver_operator_create(context, type, rows, function, a, user, status)
        type(quiver_context), intent(in) :: context
        integer(c_int32_t), intent(in) :: type
        integer(c_int64_t), intent(in) :: rows
        type(c_funptr), value :: function
        type(quiver_operator), intent(out) :: a
        type(c_ptr), intent(in), optional :: user
        integer(c_int32_t), intent(out), optional :: status
        type(c_ptr) :: given
        given = c_null_ptr
        if (present(user)) given = user
        call finish(c_operator_create(context%handle, type, rows, function, given, a%handle), status)
    end subroutine

    type(c_ptr) function handle_of(a)
        type(quiver_operator), intent(in), optional :: a
        handle_of = c_null_ptr
        if (present(a)) handle_of = a%handle
    end function

    ! An approximate inverse by name: "jacobi", "ic", "chebyshev,degree=8", ...
    subroutine quiver_preconditioner_create(context, a, name, m, mass, status)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        character(len=*), intent(in) :: name
        type(quiver_operator), intent(out) :: m
        type(quiver_operator), intent(in), optional :: mass
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_preconditioner_create(context%handle, a%handle, trim(name) // c_null_char, handle_of(mass), &
            m%handle), status)
    end subroutine

    ! (A - sigma B)^-1 by a factorisation.
    subroutine quiver_inverse_create(context, a, sigma, inverse, mass, status)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        real(c_double), intent(in) :: sigma
        type(quiver_operator), intent(out) :: inverse
        type(quiver_operator), intent(in), optional :: mass
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_inverse_create(context%handle, a%handle, sigma, handle_of(mass), inverse%handle), status)
    end subroutine

    subroutine quiver_operator_free(a)
        type(quiver_operator), intent(inout) :: a
        call c_operator_free(a%handle)
        a%handle = c_null_ptr
    end subroutine

    ! ---- Eigenvalues ----

    ! The pairs of A x = lambda B x that the options select. start: guesses of eigenvectors.
    ! constraints: only vectors orthogonal to these columns are wanted. If the status is
    ! QUIVER_NOT_CONVERGED, the result holds the pairs found so far.
    subroutine quiver_eigensolve(context, a, result, options, start, constraints, status)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        type(quiver_eigen_result), intent(out) :: result
        type(quiver_eigen_options), intent(in), optional, target :: options
        class(*), intent(in), optional, target :: start(:, :), constraints(:, :)
        integer(c_int32_t), intent(out), optional :: status
        type(quiver_eigen_options) :: given
        type(quiver_block), target :: start_block, constraints_block
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        if (present(start)) then
            start_block = block_of(start)
            given%start = c_loc(start_block)
        end if
        if (present(constraints)) then
            constraints_block = block_of(constraints)
            given%constraints = c_loc(constraints_block)
        end if
        call finish(c_eigensolve(context%handle, a%handle, given, result%handle), status)
    end subroutine

    ! The outcome of a solve. Its pointers are valid until the result is freed.
    function quiver_eigen_info_of(result) result(info)
        type(quiver_eigen_result), intent(in) :: result
        type(quiver_eigen_info) :: info
        info%struct_size = c_sizeof(info)
        call finish(c_eigen_result_get(result%handle, info))
    end function

    ! A copy of the eigenvalues, ascending.
    function quiver_eigen_values(result) result(values)
        type(quiver_eigen_result), intent(in) :: result
        real(c_double), allocatable :: values(:)
        real(c_double), pointer :: borrowed(:)
        type(quiver_eigen_info) :: info
        info = quiver_eigen_info_of(result)
        call c_f_pointer(info%values, borrowed, [info%count])
        values = borrowed
    end function

    ! x(count, rows) <- a copy of the eigenvectors, one in each x(j, :).
    subroutine quiver_eigen_vectors(context, result, x, status)
        type(quiver_context), intent(in) :: context
        type(quiver_eigen_result), intent(in) :: result
        class(*), intent(inout), target :: x(:, :)
        integer(c_int32_t), intent(out), optional :: status
        type(quiver_eigen_info) :: info
        info = quiver_eigen_info_of(result)
        call finish(c_copy(context%handle, info%vectors, block_of(x)), status)
    end subroutine

    subroutine quiver_eigen_result_free(result)
        type(quiver_eigen_result), intent(inout) :: result
        call c_eigen_result_free(result%handle)
        result%handle = c_null_ptr
    end subroutine

    ! ---- Linear systems ----

    ! x <- the solution of (A - shift I) x = b for each b(j, :). If the status is
    ! QUIVER_NOT_CONVERGED, x and the result are set as well.
    subroutine linear_solve_arrays(context, a, b, x, options, status, result)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        class(*), intent(in), target :: b(:, :)
        class(*), intent(inout), target :: x(:, :)
        type(quiver_linear_options), intent(in), optional, target :: options
        integer(c_int32_t), intent(out), optional :: status
        type(quiver_linear_result), intent(out), optional :: result
        call linear_solve_blocks(context, a, block_of(b), block_of(x), options, status, result)
    end subroutine

    subroutine linear_solve_blocks(context, a, b, x, options, status, result)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        type(quiver_block), intent(in), target :: b, x
        type(quiver_linear_options), intent(in), optional, target :: options
        integer(c_int32_t), intent(out), optional :: status
        type(quiver_linear_result), intent(out), optional, target :: result
        type(quiver_linear_options) :: given
        type(c_ptr) :: handle
        handle = c_null_ptr
        if (present(result)) handle = c_loc(result%handle)
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        call finish(c_linear_solve(context%handle, a%handle, b, x, given, handle), status)
    end subroutine

    ! The outcome of a solve. Its pointers are valid until the result is freed.
    function quiver_linear_info_of(result) result(info)
        type(quiver_linear_result), intent(in) :: result
        type(quiver_linear_info) :: info
        info%struct_size = c_sizeof(info)
        call finish(c_linear_result_get(result%handle, info))
    end function

    subroutine quiver_linear_result_free(result)
        type(quiver_linear_result), intent(inout) :: result
        call c_linear_result_free(result%handle)
        result%handle = c_null_ptr
    end subroutine

    ! ---- Products of blocks; alpha is 1 and beta is 0 if not given ----

    ! C = alpha A^H B + beta C for a(m, rows), b(n, rows), c(n, m).
    subroutine tsmttsm_arrays(context, a, b, c, alpha, beta, status)
        type(quiver_context), intent(in) :: context
        class(*), intent(in), target :: a(:, :), b(:, :)
        class(*), intent(inout), target :: c(:, :)
        class(*), intent(in), optional :: alpha, beta
        integer(c_int32_t), intent(out), optional :: status
        call tsmttsm_blocks(context, block_of(a), block_of(b), block_of(c), alpha, beta, status)
    end subroutine

    subroutine tsmttsm_blocks(context, a, b, c, alpha, beta, status)
        type(quiver_context), intent(in) :: context
        type(quiver_block), intent(in), target :: a, b, c
        class(*), intent(in), optional :: alpha, beta
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_tsmttsm(context%handle, scalar_of(alpha, 1.0_c_double), a, b, scalar_of(beta, 0.0_c_double), c), &
            status)
    end subroutine

    ! Y = alpha X C + beta Y for x(m, rows), c(n, m), y(n, rows).
    subroutine tsmm_arrays(context, x, c, y, alpha, beta, status)
        type(quiver_context), intent(in) :: context
        class(*), intent(in), target :: x(:, :), c(:, :)
        class(*), intent(inout), target :: y(:, :)
        class(*), intent(in), optional :: alpha, beta
        integer(c_int32_t), intent(out), optional :: status
        call tsmm_blocks(context, block_of(x), block_of(c), block_of(y), alpha, beta, status)
    end subroutine

    subroutine tsmm_blocks(context, x, c, y, alpha, beta, status)
        type(quiver_context), intent(in) :: context
        type(quiver_block), intent(in), target :: x, c, y
        class(*), intent(in), optional :: alpha, beta
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_tsmm(context%handle, scalar_of(alpha, 1.0_c_double), x, c, scalar_of(beta, 0.0_c_double), y), status)
    end subroutine

    ! Y = alpha A X + beta Y for any operator A.
    subroutine spmm_arrays(context, a, x, y, alpha, beta, status)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        class(*), intent(in), target :: x(:, :)
        class(*), intent(inout), target :: y(:, :)
        class(*), intent(in), optional :: alpha, beta
        integer(c_int32_t), intent(out), optional :: status
        call spmm_blocks(context, a, block_of(x), block_of(y), alpha, beta, status)
    end subroutine

    subroutine spmm_blocks(context, a, x, y, alpha, beta, status)
        type(quiver_context), intent(in) :: context
        type(quiver_operator), intent(in) :: a
        type(quiver_block), intent(in), target :: x, y
        class(*), intent(in), optional :: alpha, beta
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_spmm(context%handle, a%handle, scalar_of(alpha, 1.0_c_double), x, scalar_of(beta, 0.0_c_double), y), &
            status)
    end subroutine

    ! X = Q R for x(n, rows), q(n, rows); r(n, n) holds R in row-major order, so r(j, i) = R_ij.
    subroutine qr_arrays(context, x, q, r, status)
        type(quiver_context), intent(in) :: context
        class(*), intent(in), target :: x(:, :)
        class(*), intent(inout), target :: q(:, :), r(:, :)
        integer(c_int32_t), intent(out), optional :: status
        call qr_blocks(context, block_of(x), block_of(q), block_of(r), status)
    end subroutine

    subroutine qr_blocks(context, x, q, r, status)
        type(quiver_context), intent(in) :: context
        type(quiver_block), intent(in), target :: x, q, r
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_qr(context%handle, x, q, r), status)
    end subroutine

    ! Orthonormalises W against V: w(1:rank, :) becomes an orthonormal basis of the part that W adds to
    ! the span of V.
    subroutine orthonormalise_arrays(context, w, rank, v, status)
        type(quiver_context), intent(in) :: context
        class(*), intent(inout), target :: w(:, :)
        integer(c_int32_t), intent(out) :: rank
        class(*), intent(in), optional, target :: v(:, :)
        integer(c_int32_t), intent(out), optional :: status
        if (present(v)) then
            call orthonormalise_blocks(context, block_of(w), rank, block_of(v), status)
        else
            call orthonormalise_blocks(context, block_of(w), rank, status=status)
        end if
    end subroutine

    subroutine orthonormalise_blocks(context, w, rank, v, status)
        type(quiver_context), intent(in) :: context
        type(quiver_block), intent(in), target :: w
        integer(c_int32_t), intent(out) :: rank
        type(quiver_block), intent(in), optional, target :: v
        integer(c_int32_t), intent(out), optional :: status
        type(c_ptr) :: basis
        basis = c_null_ptr
        if (present(v)) basis = c_loc(v)
        call finish(c_orthonormalise(context%handle, basis, w, rank), status)
    end subroutine

    ! To <- From, between any two places.
    subroutine quiver_copy(context, from, to, status)
        type(quiver_context), intent(in) :: context
        type(quiver_block), intent(in), target :: from, to
        integer(c_int32_t), intent(out), optional :: status
        call finish(c_copy(context%handle, from, to), status)
    end subroutine

end module
