! SPDX-License-Identifier: BSD-3-Clause
! Solves the table problems.txt by the Fortran module: fortran_test TABLE. Then tests array
! sections, arguments of wrong types, and Fortran functions as operators.
module operators_of_the_test
    use, intrinsic :: iso_c_binding
    use quiver
    implicit none
contains
    ! Y = diag(1, 2, ..., n) X.
    integer(c_int) function diagonal(user, x, y, stream) bind(C)
        type(c_ptr), value :: user, stream
        type(quiver_block), intent(in) :: x, y
        real(c_double), pointer :: from(:, :), to(:, :)
        integer(c_int), pointer :: calls
        integer :: i
        diagonal = 1
        if (c_associated(stream)) return
        call c_f_pointer(user, calls)
        calls = calls + 1
        call quiver_array(x, from)
        call quiver_array(y, to)
        do i = 1, size(from, 2)
            to(:, i) = i * from(:, i)
        end do
        diagonal = 0
    end function

    integer(c_int) function stop_at_once(user, progress) bind(C)
        type(c_ptr), value :: user
        type(quiver_progress), intent(in) :: progress
        integer(c_int), pointer :: calls
        call c_f_pointer(user, calls)
        calls = calls + 1
        stop_at_once = merge(1, 0, progress%wanted == 3 .and. progress%iteration >= 0)
    end function
end module

program fortran_test
    use, intrinsic :: iso_c_binding
    use quiver
    use operators_of_the_test
    implicit none
    type :: matrix
        character(len=1) :: letter
        integer :: n = 0, periodic = 0
        real(c_double) :: d = 0, re = 0, im = 0
    end type
    character(len=20), parameter :: which_words(0:5) = [character(len=20) :: "smallest", "largest", "target", &
        "largest-magnitude", "smallest-magnitude", "both-ends"]
    character(len=20), parameter :: method_words(0:5) = [character(len=20) :: "auto", "lanczos", "chebyshev", "lobpcg", &
        "filter", "jd"]
    character(len=20), parameter :: linear_words(0:3) = [character(len=20) :: "cg", "minres", "gmres", "bicgstab"]
    type(quiver_context) :: context
    character(len=4096) :: line
    character(len=1024) :: table
    character(len=20) :: kind
    integer :: unit, end_of_file, problems = 0, failures = 0

    call get_command_argument(1, table)
    open(newunit=unit, file=trim(table), status="old", action="read")
    call quiver_context_create(context)
    do
        read(unit, "(a)", iostat=end_of_file) line
        if (end_of_file /= 0) exit
        if (line(1:1) == "#") cycle
        problems = problems + 1
        read(line, *) kind
        select case (kind)
        case ("eigen")
            call eigen()
        case ("solve")
            call solve()
        case ("tsmttsm", "tsmm")
            call product_of_blocks()
        case default
            call expect(.false., "an unknown kind of problem")
        end select
    end do
    close(unit)
    line = "beyond the table"
    call sections()
    call callbacks()
    call misuse()
    call quiver_context_free(context)
    print "(i0, a, i0, a)", problems, " problems of the table: ", failures, " failures"
    if (failures > 0 .or. problems < 21) error stop 1

contains

    subroutine expect(condition, what)
        logical, intent(in) :: condition
        character(len=*), intent(in) :: what
        if (condition) return
        failures = failures + 1
        print "(3a)", line(1:60), ": ", what
    end subroutine

    subroutine make_array(letter, cols, rows, x)
        character(len=1), intent(in) :: letter
        integer, intent(in) :: cols, rows
        class(*), allocatable, intent(out) :: x(:, :)
        select case (letter)
        case ("s")
            allocate(real(c_float) :: x(cols, rows))
        case ("d")
            allocate(real(c_double) :: x(cols, rows))
        case ("c")
            allocate(complex(c_float_complex) :: x(cols, rows))
        case default
            allocate(complex(c_double_complex) :: x(cols, rows))
        end select
    end subroutine

    subroutine set(x, j, i, value)
        class(*), intent(inout) :: x(:, :)
        integer, intent(in) :: j, i
        complex(c_double_complex), intent(in) :: value
        select type (x)
        type is (real(c_float))
            x(j, i) = real(value, c_float)
        type is (real(c_double))
            x(j, i) = real(value)
        type is (complex(c_float_complex))
            x(j, i) = cmplx(value, kind=c_float_complex)
        type is (complex(c_double_complex))
            x(j, i) = value
        end select
    end subroutine

    complex(c_double_complex) function get(x, j, i)
        class(*), intent(in) :: x(:, :)
        integer, intent(in) :: j, i
        get = 0
        select type (x)
        type is (real(c_float))
            get = x(j, i)
        type is (real(c_double))
            get = x(j, i)
        type is (complex(c_float_complex))
            get = x(j, i)
        type is (complex(c_double_complex))
            get = x(j, i)
        end select
    end function

    real(c_double) function epsilon_of(letter)
        character(len=1), intent(in) :: letter
        epsilon_of = merge(real(epsilon(1.0_c_float), c_double), epsilon(1.0_c_double), index("sc", letter) > 0)
    end function

    ! Entry (i, k) of a matrix of the table.
    complex(c_double_complex) function entry(a, i, k)
        type(matrix), intent(in) :: a
        integer, intent(in) :: i, k
        complex(c_double_complex) :: beside
        beside = cmplx(a%re, a%im, c_double_complex)
        entry = 0
        if (i == k) entry = a%d
        if (k == i + 1 .or. (a%periodic == 1 .and. k == i + 1 - a%n)) entry = beside
        if (k == i - 1 .or. (a%periodic == 1 .and. k == i - 1 + a%n)) entry = conjg(beside)
    end function

    type(quiver_operator) function operator_of(a)
        type(matrix), intent(in) :: a
        integer(c_int32_t) :: row_start(a%n + 1), column(3 * a%n)
        complex(c_double_complex) :: value(3 * a%n)
        integer :: i, k, step, entries
        entries = 0
        row_start(1) = 1
        do i = 1, a%n
            do step = -1, 1
                k = i + step
                if (a%periodic == 1) k = modulo(k - 1, a%n) + 1
                if (k < 1 .or. k > a%n) cycle
                entries = entries + 1
                column(entries) = k
                value(entries) = entry(a, i, k)
            end do
            row_start(i + 1) = entries + 1
        end do
        select case (a%letter)
        case ("s")
            call quiver_matrix_create(context, row_start, column(1:entries), real(value(1:entries), c_float), operator_of)
        case ("d")
            call quiver_matrix_create(context, int(row_start, c_int64_t), int(column(1:entries), c_int64_t), &
                real(value(1:entries), c_double), operator_of)
        case ("c")
            call quiver_matrix_create(context, row_start - 1, column(1:entries) - 1, &
                cmplx(value(1:entries), kind=c_float_complex), operator_of, index_base=0)
        case default
            call quiver_matrix_create(context, row_start, column(1:entries), value(1:entries), operator_of)
        end select
    end function

    subroutine eigen()
        type(matrix) :: a
        type(quiver_operator) :: op
        type(quiver_eigen_options) :: options
        type(quiver_eigen_result) :: result
        type(quiver_eigen_info) :: info
        class(*), allocatable :: x(:, :)
        character(len=20) :: words(2), which, method
        real(c_double), allocatable :: exact(:), found(:)
        real(c_double) :: bound
        complex(c_double_complex) :: sum
        integer :: i, j, step, k
        read(line, *) words, a%letter, a%n, a%periodic, a%d, a%re, a%im, which, options%target, method, options%k
        allocate(exact(options%k))
        read(line, *) words, a%letter, a%n, a%periodic, a%d, a%re, a%im, which, options%target, method, options%k, exact
        options%which = findloc(which_words, which, 1) - 1
        options%method = findloc(method_words, method, 1) - 1
        op = operator_of(a)
        call quiver_eigensolve(context, op, result, options)
        found = quiver_eigen_values(result)
        info = quiver_eigen_info_of(result)
        call expect(info%verified == 1 .and. size(found) == options%k, "not verified")
        ! As in c_test.c: the residual bounds the error.
        bound = (max(1e-10_c_double, 32 * epsilon_of(a%letter)) + 4 * epsilon_of(a%letter)) &
            * (abs(a%d) + 2 * hypot(a%re, a%im))
        call expect(all(abs(found - exact) <= bound), "wrong eigenvalues")
        call make_array(a%letter, options%k, a%n, x)
        call quiver_eigen_vectors(context, result, x)
        do j = 1, options%k
            do i = 1, a%n
                sum = -found(j) * get(x, j, i)
                do step = -1, 1
                    k = modulo(i + step - 1, a%n) + 1
                    sum = sum + entry(a, i, k) * get(x, j, k)
                end do
                call expect(abs(sum) <= bound, "large residual")
            end do
        end do
        call quiver_eigen_result_free(result)
        call quiver_operator_free(op)
    end subroutine

    subroutine solve()
        type(matrix) :: a
        type(quiver_operator) :: op, m
        type(quiver_linear_options) :: options
        type(quiver_linear_result) :: result
        type(quiver_linear_info) :: info
        real(c_double), pointer :: residuals(:), b_norms(:)
        integer(c_int64_t), pointer :: steps(:)
        integer(c_int32_t), pointer :: has_converged(:)
        class(*), allocatable :: x(:, :), b(:, :), exact(:, :)
        character(len=20) :: words(2), method, preconditioner
        real(c_double) :: error, b_norm
        integer :: i, j, columns
        read(line, *) words, a%letter, a%n, a%periodic, a%d, a%re, a%im, method, preconditioner, columns
        op = operator_of(a)
        options%method = findloc(linear_words, method, 1) - 1
        options%tol = max(1e-10_c_double, 32 * epsilon_of(a%letter))
        if (preconditioner /= "none") then
            call quiver_preconditioner_create(context, op, preconditioner, m)
            options%preconditioner = m%handle
        end if
        call make_array(a%letter, columns, a%n, x)
        call make_array(a%letter, columns, a%n, b)
        call make_array(a%letter, columns, a%n, exact)
        do i = 1, a%n
            do j = 1, columns
                call set(exact, j, i, cmplx(1 + mod(i * j, 7), 0, c_double_complex))
            end do
        end do
        call quiver_spmm(context, op, exact, b)
        call quiver_linear_solve(context, op, b, x, options, result=result)
        info = quiver_linear_info_of(result)
        call expect(info%count == columns .and. info%converged == 1 .and. info%seconds > 0, "the outcome of a solve")
        call c_f_pointer(info%residuals, residuals, [info%count])
        call c_f_pointer(info%b_norms, b_norms, [info%count])
        call c_f_pointer(info%column_iterations, steps, [info%count])
        call c_f_pointer(info%column_converged, has_converged, [info%count])
        call expect(all(has_converged == 1) .and. all(residuals <= options%tol * b_norms), "converged columns")
        call expect(all(steps >= 1) .and. all(steps <= info%iterations), "steps of the columns")
        call expect(info%operator_applications >= sum(steps) .and. &
            (info%preconditioner_applications > 0 .eqv. preconditioner /= "none"), "counts of products")
        do j = 1, columns
            error = 0
            b_norm = 0
            do i = 1, a%n
                error = error + abs(get(x, j, i) - get(exact, j, i)) ** 2
                b_norm = b_norm + abs(get(b, j, i)) ** 2
            end do
            call expect(sqrt(error) <= (options%tol + 8 * epsilon_of(a%letter)) * sqrt(b_norm) &
                / (abs(a%d) - 2 * hypot(a%re, a%im)), "wrong solution")
            call expect(abs(sqrt(b_norm) - b_norms(j)) <= 100 * epsilon_of(a%letter) * b_norms(j), "wrong norm of b")
        end do
        call quiver_linear_result_free(result)
        call quiver_operator_free(m)
        call quiver_operator_free(op)
    end subroutine

    ! Checks tsmttsm or tsmm; the products are integers and have no rounding error.
    subroutine product_of_blocks()
        class(*), allocatable :: a(:, :), b(:, :), c(:, :)
        character(len=20) :: words(2)
        character(len=1) :: letter
        integer :: rows, m, n, i, j, at
        integer, allocatable :: exact(:)
        logical :: is_tsmttsm
        is_tsmttsm = kind == "tsmttsm"
        read(line, *) words, letter, rows, m, n
        allocate(exact(2 * n * merge(m, 1, is_tsmttsm)))
        read(line, *) words, letter, rows, m, n, exact
        call make_array(letter, m, rows, a)
        call make_array(letter, n, merge(rows, m, is_tsmttsm), b)
        call make_array(letter, n, merge(m, rows, is_tsmttsm), c)
        do i = 0, rows - 1
            do j = 0, m - 1
                call set(a, j + 1, i + 1, cmplx(mod(3 * i + 5 * j, 7) - 3, mod(2 * i + 3 * j, 5) - 2, c_double_complex))
            end do
        end do
        do i = 0, size(b, 2) - 1
            do j = 0, n - 1
                call set(b, j + 1, i + 1, cmplx(mod(i + 2 * j, 5) - 2, mod(4 * i + j, 7) - 3, c_double_complex))
            end do
        end do
        if (is_tsmttsm) then
            call quiver_tsmttsm(context, a, b, c)
        else
            call quiver_tsmm(context, a, b, c)
        end if
        at = 1
        do i = merge(1, rows, is_tsmttsm), size(c, 2)
            do j = 1, n
                call expect(get(c, j, i) == cmplx(exact(at), exact(at + 1), c_double_complex), "wrong product")
                at = at + 2
            end do
        end do
    end subroutine

    ! Sections x(first:last, :) are used in place; the elements beside them stay unchanged.
    subroutine sections()
        real(c_double) :: x(5, 100), q(2, 100), r(2, 2), gram(2, 2), c(2, 3)
        integer(c_int32_t) :: rank
        integer :: i
        do i = 1, 100
            x(:, i) = [1, i, i * i, 7, mod(i, 3)]
        end do
        call quiver_tsmttsm(context, x(2:3, :), x(2:3, :), gram)
        call expect(gram(1, 1) == 338350 .and. gram(2, 2) == 2050333330.0_c_double .and. gram(1, 2) == 25502500, "gram")
        call quiver_qr(context, x(1:2, :), q, r)
        call expect(abs(r(1, 1) ** 2 - 100) < 1e-12 .and. r(1, 2) == 0, "R is upper triangular, row-major")
        call expect(maxval(abs(r(2, 1) * q(1, :) + r(2, 2) * q(2, :) - x(2, :))) < 1e-11, "Q R = X")
        c = reshape([1, 0, 0, 1, 1, 1], [2, 3])
        call quiver_tsmm(context, x(1:3, :), c, x(4:5, :), alpha=2.0_c_double, beta=1.0)
        call expect(all(x(4, 1:2) == [11, 17]) .and. all(x(5, 1:2) == [5, 14]) .and. x(3, 2) == 4, "tsmm in a section")
        call quiver_orthonormalise(context, x(1:3, :), rank, v=q)
        call expect(rank == 1, "two of the three columns lie in the span of Q")
    end subroutine

    subroutine callbacks()
        type(quiver_operator) :: op, mass
        type(quiver_eigen_options) :: options
        type(quiver_eigen_result) :: result
        integer(c_int), target :: calls, steps
        integer(c_int32_t) :: status, i
        real(c_double) :: known(1, 40)
        calls = 0
        call quiver_operator_create(context, QUIVER_D, 40_c_int64_t, c_funloc(diagonal), op, c_loc(calls))
        options%k = 3
        known = 0
        known(1, 1) = 1
        call quiver_eigensolve(context, op, result, options, constraints=known)
        call expect(maxval(abs(quiver_eigen_values(result) - [2, 3, 4])) < 40e-10, "eigenvalues of a function")
        call expect(calls > 0, "the function is called")
        call quiver_eigen_result_free(result)

        call quiver_matrix_create(context, [(i, i = 1, 41)], [(i, i = 1, 40)], [(2.0_c_double, i = 1, 40)], mass)
        options%mass = mass%handle
        steps = 0
        options%progress = c_funloc(stop_at_once)
        options%progress_user = c_loc(steps)
        call quiver_eigensolve(context, op, result, options, status=status)
        call expect(status == QUIVER_NOT_CONVERGED .and. steps == 1, "stopped by the progress function")
        call quiver_eigen_result_free(result)
        options%progress = c_null_funptr
        call quiver_eigensolve(context, op, result, options)
        call expect(maxval(abs(quiver_eigen_values(result) - [0.5, 1.0, 1.5])) < 80e-10, "a mass matrix")
        call quiver_eigen_result_free(result)
        call quiver_matrix_replace_values(context, mass, [(4.0_c_double, i = 1, 40)])
        call quiver_eigensolve(context, op, result, options)
        call expect(maxval(abs(quiver_eigen_values(result) - [0.25, 0.5, 0.75])) < 80e-10, "replaced values")
        call quiver_eigen_result_free(result)
        call quiver_matrix_replace_values(context, mass, [(4.0_c_float, i = 1, 40)], status)
        call expect_error(status, QUIVER_ERROR_SHAPE, "another scalar type")
        call quiver_operator_free(mass)
        call quiver_operator_free(op)
    end subroutine

    subroutine misuse()
        real(c_double) :: x(4, 10), y(4, 10), c(4, 4)
        real(c_float) :: narrow(4, 4)
        integer :: whole(4, 10)
        integer(c_int32_t) :: status
        x = 1
        whole = 1
        call quiver_tsmttsm(context, x(1:4:2, :), x(1:2, :), c(1:2, 1:2), status=status)
        call expect_error(status, QUIVER_ERROR_SHAPE, "ld -1")
        call quiver_tsmttsm(context, x, x, narrow, status=status)
        call expect_error(status, QUIVER_ERROR_SHAPE, "scalar type s")
        call quiver_tsmttsm(context, whole, whole, c, status=status)
        call expect_error(status, QUIVER_ERROR_INPUT, "type = -1")
        call quiver_tsmttsm(context, x, x, c, alpha=(0.0_c_double, 1.0_c_double), status=status)
        call expect_error(status, QUIVER_ERROR_INPUT, "imaginary")
        call quiver_qr(context, x, y(1:3, :), c, status=status)
        call expect_error(status, QUIVER_ERROR_SHAPE, "qr: Q must have the shape of X (X: 10 x 4")
        call quiver_qr(context, x, y, c(:, 1:3), status=status)
        call expect_error(status, QUIVER_ERROR_SHAPE, "qr: R must be square with the columns of X (R: 3 x 4")
        call quiver_tsmttsm(context, x(1:3, :), x, c(:, 1:3), status=status)
        call expect(status == QUIVER_OK .and. all(c(:, 1:3) == 10), "a call after errors")
    end subroutine

    subroutine expect_error(status, expected, part)
        integer(c_int32_t), intent(in) :: status, expected
        character(len=*), intent(in) :: part
        character(len=:), allocatable :: message
        message = quiver_message()
        call expect(status == expected .and. index(message, part) > 0, message)
    end subroutine
end program
