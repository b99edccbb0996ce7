// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/operators.hpp"

#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "c/shared/renumbered.hpp"
#include "kernels/dense_operator.hpp"
#include "python/src/arrays.hpp"

namespace quiver::python {

bool check_signals() {
    return call_python([] {
        if (PyErr_CheckSignals() != 0) {
            nb::raise_python_error();
        }
    });
}

namespace {

using nb::literals::operator""_a;

/// A block as an array without an owner, valid during the callback: a NumPy array, or on a device
/// an object with the DLPack protocol.
template <class T, class... Options>
nb::object array_of(const Context& ctx, BlockView<T> block) {
    using Scalar = std::remove_const_t<T>;
    const std::size_t shape[2] = {static_cast<std::size_t>(block.rows),
                                  static_cast<std::size_t>(block.cols)};
    const std::int64_t strides[2] = {block.ld, 1};
    // X is passed as writable: several libraries cannot import read-only arrays by DLPack, and
    // torch warns about read-only arrays of NumPy. The Python layer gives functions a read-only X
    // if it is an array of NumPy.
    auto* const data = const_cast<Scalar*>(block.data);
    if (block.place == Place::host) {
        return nb::cast(nb::ndarray<nb::numpy, Scalar>(data, 2, shape, nb::none(), strides,
                                                       dlpack_type<Scalar>()),
                        nb::rv_policy::reference);
    }
    return nb::cast(nb::ndarray<Scalar>(data, 2, shape, nb::none(), strides, dlpack_type<Scalar>(),
                                        nb::device::cuda::value, ctx.device().id),
                    nb::rv_policy::reference);
}

/// Y = f(X). The Python layer has wrapped the user's function as f(X, Y), which writes to Y. Base:
/// Operator<T>, or DenseOperator<T> if f multiplies by a dense array.
template <class T, class Base>
class PythonOperator final : public Base {
  public:
    PythonOperator(const Comm& comm, std::int64_t local_rows, nb::object function)
        : map_(RowMap::by_local_rows(comm, local_rows)), function_(std::move(function)) {}
    PythonOperator(const PythonOperator&) = delete;
    PythonOperator& operator=(const PythonOperator&) = delete;
    ~PythonOperator() override {
        const nb::gil_scoped_acquire gil;
        function_.reset();
    }

    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const bool done = call_python([&] { function_(array_of(ctx, x), array_of(ctx, y)); });
        if (!done) {
            throw Error(ErrorKind::other, "the function of an operator raised an exception");
        }
    }

  private:
    RowMap map_;
    nb::object function_;
};

RowPartition partition_of(const std::string& name) {
    for (const RowPartition partition :
         {RowPartition::automatic, RowPartition::rows, RowPartition::graph}) {
        if (name == to_string(partition)) {
            return partition;
        }
    }
    throw InputError("partition='" + name + "' is not one of auto, rows, graph");
}

/// A sparse matrix from this rank's rows, with global columns. columns: the rows of X on this rank;
/// none for a square matrix. like: a matrix whose partition this one gets.
AnyOperator make_matrix(std::shared_ptr<SharedContext> shared, const std::string& dtype,
                        const InputArray& row_start, const InputArray& column,
                        const InputArray& value, std::optional<std::int64_t> columns,
                        const std::string& partition, const AnyOperator* like) {
    const doors::MatrixPartition rows{partition_of(partition), like};
    return visit_dtype(dtype_of(dtype), [&]<class T>() {
        const auto make = [&]<class Index>(Index /*width*/) {
            return run(*shared, [&](Context&) {
                return doors::matrix_from_csr<T, Index>(
                    shared,
                    {span_of<Index>(row_start), span_of<Index>(column), span_of<T>(value),
                     place_of(value)},
                    columns, rows);
            });
        };
        return row_start.dtype() == dlpack_type<std::int64_t>() ? make(std::int64_t{})
                                                                : make(std::int32_t{});
    });
}

/// Replaces the values of a sparse matrix, in the order of the arrays of make_matrix.
void replace_values(const AnyOperator& a, const InputArray& value) {
    if (a.numbering) {
        throw InputError(
            "replace_values: the entries of a partitioned matrix are on other ranks; make a matrix "
            "with the partition of this one");
    }
    visit_dtype(a.dtype, [&]<class T>() {
        run(*a.home, [&](Context& ctx) {
            a.sparse<T>()->replace_values(ctx, span_of<T>(value), place_of(value));
        });
    });
}

AnyOperator make_adjoint(const AnyOperator& a) {
    return run(*a.home, [&](Context&) {
        return visit_dtype(a.dtype, [&]<class T>() { return doors::adjoint_of<T>(a); });
    });
}

AnyOperator make_function(std::shared_ptr<SharedContext> shared, const std::string& dtype,
                          std::int64_t local_rows, nb::object function, bool dense) {
    return visit_dtype(dtype_of(dtype), [&]<class T>() {
        const auto make = [&]<class Base>(const Base* /*type*/) {
            return AnyOperator::wrap<T>(
                shared, std::make_shared<PythonOperator<T, Base>>(shared->context.comm(),
                                                                  local_rows, std::move(function)));
        };
        return dense ? make(static_cast<const DenseOperator<T>*>(nullptr))
                     : make(static_cast<const Operator<T>*>(nullptr));
    });
}

/// A preconditioner of a sparse matrix by its name; with a shift, the inverse of A - shift B.
AnyOperator make_named_preconditioner(const AnyOperator& a, const std::string& name,
                                      std::optional<double> shift, const AnyOperator* b) {
    if (b != nullptr) {
        doors::require_same_numbering(a, *b, "M");
    }
    return run(*a.home, [&](Context&) {
        return visit_dtype(
            a.dtype, [&]<class T>() { return doors::named_preconditioner<T>(a, name, shift, b); });
    });
}

std::string partition_name(const AnyOperator& a) {
    return to_string(a.numbering ? a.numbering->facts().partition : RowPartition::rows);
}

/// The rows of X that this rank receives in a product with a sparse matrix.
std::int64_t halo_of(const AnyOperator& a) {
    return visit_dtype(a.dtype, [&]<class T>() { return a.sparse<T>()->halo_size(); });
}

/// Y = A X.
void apply(SharedContext& shared, const AnyOperator& a, const InputArray& x, const OutputArray& y) {
    visit_dtype(a.dtype, [&]<class T>() {
        const BlockView<const T> from = block_of<T>(x);
        const BlockView<T> to = block_of<T>(y);
        run(shared, [&](Context& ctx) { doors::apply_to_callers_rows(ctx, a, from, to); });
    });
}

}  // namespace

void bind_operators(nb::module_& module) {
    nb::class_<AnyOperator>(module, "Operator")
        .def_ro("rows", &AnyOperator::rows)
        .def_prop_ro("is_sparse", [](const AnyOperator& a) { return a.matrix != nullptr; })
        .def_prop_ro("partition", &partition_name)
        .def_prop_ro("halo", &halo_of);
    module.def("make_matrix", &make_matrix, "context"_a, "dtype"_a, "indptr"_a, "indices"_a,
               "data"_a, "columns"_a.none() = nb::none(), "partition"_a = "rows",
               "like"_a.none() = nb::none());
    module.def("replace_values", &replace_values, "a"_a, "values"_a);
    module.def("make_adjoint", &make_adjoint, "a"_a);
    module.def("make_function", &make_function, "context"_a, "dtype"_a, "rows"_a, "function"_a,
               "dense"_a = false);
    module.def("make_preconditioner", &make_named_preconditioner, "a"_a, "name"_a,
               "shift"_a.none() = nb::none(), "b"_a.none() = nb::none());
    module.def("apply", &apply, "context"_a, "a"_a, "x"_a, "y"_a);
}

}  // namespace quiver::python
