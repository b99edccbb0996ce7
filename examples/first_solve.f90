! SPDX-License-Identifier: BSD-3-Clause
! A first solve in Fortran: a sparse matrix as CSR arrays, its smallest eigenvalues, and whether all
! copies of them were found. The problem is that of first_solve.cpp: the five-point Laplacian of a
! square membrane, with the eigenvalues 4 - 2 cos(p pi / (n + 1)) - 2 cos(q pi / (n + 1)); the second
! and third are equal.
! Build: see README.md beside this file; target first_solve_fortran.
program first_solve
    use, intrinsic :: iso_fortran_env, only: real64
    use quiver
    implicit none
    integer, parameter :: n = 30, p(4) = [1, 1, 2, 2], q(4) = [1, 2, 1, 2]
    integer :: row_start(n * n + 1), column(5 * n * n), entries = 0, x, y
    real(real64) :: value(5 * n * n), exact(4)
    real(real64), allocatable :: found(:)
    real(real64), parameter :: step = acos(-1.0_real64) / (n + 1)
    type(quiver_context) :: context
    type(quiver_operator) :: membrane
    type(quiver_eigen_options) :: options
    type(quiver_eigen_result) :: result
    type(quiver_eigen_info) :: info

    row_start(1) = 1
    do y = 1, n
        do x = 1, n
            call add(x, y, 4.0_real64)
            call add(x - 1, y, -1.0_real64)
            call add(x + 1, y, -1.0_real64)
            call add(x, y - 1, -1.0_real64)
            call add(x, y + 1, -1.0_real64)
            row_start(x + n * (y - 1) + 1) = entries + 1
        end do
    end do

    ! No call has the argument status, so errors stop the program with a message.
    call quiver_context_create(context)
    call quiver_matrix_create(context, row_start, column(1:entries), value(1:entries), membrane)
    options%k = 4
    call quiver_eigensolve(context, membrane, result, options)
    info = quiver_eigen_info_of(result)
    found = quiver_eigen_values(result)
    print "(f10.8)", found
    print "(2a)", "all copies found: ", merge("yes", "no ", info%verified == 1)

    exact = 4 - 2 * cos(p * step) - 2 * cos(q * step)
    if (info%verified /= 1 .or. maxval(abs(found - exact)) > 1e-9) error stop 1
    call quiver_eigen_result_free(result)
    call quiver_operator_free(membrane)
    call quiver_context_free(context)

contains

    subroutine add(x, y, entry)
        integer, intent(in) :: x, y
        real(real64), intent(in) :: entry
        if (x < 1 .or. x > n .or. y < 1 .or. y > n) return
        entries = entries + 1
        column(entries) = x + n * (y - 1)
        value(entries) = entry
    end subroutine
end program
! It prints
!> 0.02052271
!> 0.05120147
!> 0.05120147
!> 0.08188023
!> all copies found: yes
