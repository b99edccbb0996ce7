// SPDX-License-Identifier: BSD-3-Clause
// Contexts, operators, and the last message of a thread.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/config.hpp"
#include "blockvec/device.hpp"
#include "blockvec/mpi.hpp"
#include "c/src/handles.hpp"

namespace quiver::c {

namespace {

std::string& last_message() noexcept {
    thread_local std::string message;
    return message;
}

Comm comm_of(const quiver_context_options& options) {
    if (options.use_comm == 0) {
        return {};
    }
#if QUIVER_HAVE_MPI
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) {
        throw CommError(
            "context: MPI is not initialised; call MPI_Init first, or set use_comm = 0");
    }
    const MPI_Comm comm = MPI_Comm_f2c(options.comm);
    if (comm == MPI_COMM_NULL) {
        throw InputError("context: comm is MPI_COMM_NULL");
    }
    return Comm(comm);
#else
    throw UnsupportedError("context: this build of quiver has no MPI; build it with MPI");
#endif
}

Device device_of(const quiver_context_options& options) {
    if (place_of(options.place) == Place::host) {
        if (options.threads < 0) {
            throw InputError("context: threads = " + std::to_string(options.threads));
        }
        return Device::host(options.threads);
    }
    return options.stream == nullptr
               ? Device::cuda(options.device)
               : Device::cuda(options.device, static_cast<Stream>(options.stream));
}

/// The operator Y = f(X) for a function f of the caller.
template <class T>
class CallbackOperator final : public Operator<T> {
  public:
    CallbackOperator(RowMap map, quiver_apply_function function, void* user)
        : map_(std::move(map)), function_(function), user_(user) {}
    const RowMap& row_map() const override { return map_; }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        const quiver_block from = block_of(x);
        const quiver_block to = block_of(y);
        void* stream = ctx.place() == Place::device ? ctx.stream() : nullptr;
        const int status = function_(user_, &from, &to, stream);
        if (status != 0) {
            throw Error(ErrorKind::other,
                        "the function of an operator returned " + std::to_string(status));
        }
    }

  private:
    RowMap map_;
    quiver_apply_function function_;
    void* user_;
};

/// `count` elements of the caller's array minus `subtract`, in host memory. Returns the caller's
/// own array if it is in host memory and nothing is subtracted; otherwise the elements are in
/// `copy`.
template <class V>
std::span<const V> host_array(Context& ctx, const void* data, std::int64_t count, Place place,
                              V subtract, std::vector<V>& copy, const char* name) {
    const auto* first = static_cast<const V*>(data);
    const auto size = static_cast<std::size_t>(count);
    if (first == nullptr && count > 0) {
        throw InputError(std::string("csr.") + name + " is a null pointer");
    }
    if (place == Place::host && subtract == V(0)) {
        return {first, size};
    }
    copy.resize(size);
    if (place == Place::device) {
        device::copy(copy.data(), first, size * sizeof(V), ctx.stream());
        ctx.synchronize();
    } else {
        std::copy_n(first, size, copy.begin());
    }
    if (subtract != V(0)) {
        for (V& element : copy) {
            element -= subtract;
        }
    }
    return copy;
}

template <class T, class Index>
doors::AnyOperator matrix_of(const std::shared_ptr<doors::SharedContext>& home,
                             const quiver_csr& csr) {
    Context& ctx = home->context;
    std::vector<Index> start_copy, column_copy;
    std::vector<T> value_copy;
    CsrArrays<T, Index> arrays;
    ctx.comm().agree([&] {
        const Place place = place_of(csr.place);
        if (place == Place::device && ctx.place() == Place::host) {
            throw ShapeError("csr.place is QUIVER_DEVICE, but the context works on the host");
        }
        if (csr.rows < 0) {
            throw ShapeError("csr.rows = " + std::to_string(csr.rows));
        }
        if (csr.cols < 0) {
            throw ShapeError("csr.cols = " + std::to_string(csr.cols));
        }
        const auto base = enumerator<Index>(csr.index_base, 2, "csr.index_base");
        const std::span<const Index> start =
            host_array(ctx, csr.row_start, csr.rows + 1, place, base, start_copy, "row_start");
        const auto entries = static_cast<std::int64_t>(start.back()) - start.front();
        if (start.front() != 0 || entries < 0) {
            throw InputError("csr.row_start begins with " + std::to_string(start.front() + base) +
                             " and ends with " + std::to_string(start.back() + base) +
                             "; it must ascend from index_base = " + std::to_string(base));
        }
        if (place == Place::device && base == 0 && csr.column != nullptr && csr.value != nullptr) {
            arrays = {{static_cast<const Index*>(csr.row_start), start.size()},
                      {static_cast<const Index*>(csr.column), static_cast<std::size_t>(entries)},
                      {static_cast<const T*>(csr.value), static_cast<std::size_t>(entries)},
                      place};
            return;
        }
        arrays = {start, host_array(ctx, csr.column, entries, place, base, column_copy, "column"),
                  host_array(ctx, csr.value, entries, place, T(0), value_copy, "value"),
                  Place::host};
    });
    const bool is_square = ctx.comm().sum(csr.cols) == 0;
    return doors::matrix_from_csr<T, Index>(
        home, arrays, is_square ? std::nullopt : std::optional<std::int64_t>(csr.cols));
}

quiver_operator* make_inverse(quiver_context* context, const quiver_operator* a,
                              const std::string& name, std::optional<double> sigma,
                              const quiver_operator* mass) {
    const doors::AnyOperator& matrix = require_operator(context, a, "A");
    const doors::AnyOperator* b = optional_operator(context, mass, "mass", matrix);
    if (matrix.matrix == nullptr || (b != nullptr && b->matrix == nullptr)) {
        throw InputError("preconditioner: a name needs the entries of A and B; pass matrices");
    }
    return new quiver_operator{visit_dtype(matrix.dtype, [&]<class T>() {
        return doors::named_preconditioner<T>(matrix, name, sigma, b);
    })};
}

}  // namespace

void set_message(const char* message) noexcept {
    try {
        last_message() = message;
    } catch (...) {
        last_message().clear();
    }
}

}  // namespace quiver::c

using namespace quiver;
using namespace quiver::c;

const char* quiver_version(void) {
    return config::version;
}

const char* quiver_status_name(quiver_status status) {
    static constexpr const char* names[] = {
        "QUIVER_ERROR_COMM",      "QUIVER_ERROR_DEVICE",      "QUIVER_ERROR_MEMORY",
        "QUIVER_ERROR_NUMERICAL", "QUIVER_ERROR_UNSUPPORTED", "QUIVER_ERROR_INPUT",
        "QUIVER_ERROR_SHAPE",     "QUIVER_ERROR_OTHER",       "QUIVER_OK",
        "QUIVER_NOT_CONVERGED"};
    const bool known = status >= QUIVER_ERROR_COMM && status <= QUIVER_NOT_CONVERGED;
    return known ? names[status - QUIVER_ERROR_COMM] : "an unknown status";
}

const char* quiver_last_message(void) {
    return last_message().c_str();
}

quiver_status quiver_context_create(const quiver_context_options* options,
                                    quiver_context** context) {
    return enter([&] {
        require(context, "context") = nullptr;
        const auto given = read_options(options, "quiver_context_options");
        *context = new quiver_context{
            std::make_shared<doors::SharedContext>(comm_of(given), device_of(given))};
    });
}

void quiver_context_free(quiver_context* context) {
    delete context;
}

quiver_status quiver_context_synchronize(quiver_context* context) {
    return enter(context, [](Context& ctx) { ctx.synchronize(); });
}

quiver_status quiver_matrix_create(quiver_context* context, const quiver_csr* csr,
                                   quiver_operator** a) {
    return enter(context, [&](Context&) {
        require(a, "a") = nullptr;
        (void)require(csr, "csr");
        const quiver_csr given = read_options(csr, "quiver_csr");
        if (given.index_bits != 32 && given.index_bits != 64) {
            throw InputError("csr.index_bits = " + std::to_string(given.index_bits) +
                             " is neither 32 nor 64");
        }
        *a = new quiver_operator{visit_dtype(dtype_of(given.type), [&]<class T>() {
            return given.index_bits == 32 ? matrix_of<T, std::int32_t>(context->shared, given)
                                          : matrix_of<T, std::int64_t>(context->shared, given);
        })};
    });
}

quiver_status quiver_matrix_replace_values(quiver_context* context, quiver_operator* a,
                                           quiver_type type, const void* value, int64_t count,
                                           quiver_place place) {
    return enter(context, [&](Context& ctx) {
        const doors::AnyOperator& any = require_operator(context, a, "A");
        const Place of_values = place_of(place);
        if (any.matrix == nullptr || count < 0 || (value == nullptr && count > 0)) {
            throw InputError(any.matrix == nullptr ? "A is not a matrix"
                             : count < 0           ? "count = " + std::to_string(count)
                                                   : "value is a null pointer");
        }
        if (dtype_of(type) != any.dtype) {
            throw ShapeError("the new values have another scalar type than A");
        }
        visit_dtype(any.dtype, [&]<class T>() {
            any.sparse<T>()->replace_values(
                ctx, {static_cast<const T*>(value), static_cast<std::size_t>(count)}, of_values);
        });
    });
}

quiver_status quiver_adjoint_create(quiver_context* context, const quiver_operator* a,
                                    quiver_operator** adjoint) {
    return enter(context, [&](Context&) {
        require(adjoint, "adjoint") = nullptr;
        const doors::AnyOperator& matrix = require_operator(context, a, "A");
        if (matrix.matrix == nullptr) {
            throw InputError("adjoint: A is no matrix; pass one of quiver_matrix_create()");
        }
        *adjoint = new quiver_operator{
            visit_dtype(matrix.dtype, [&]<class T>() { return doors::adjoint_of<T>(matrix); })};
    });
}

quiver_status quiver_operator_create(quiver_context* context, quiver_type type, int64_t rows,
                                     quiver_apply_function function, void* user,
                                     quiver_operator** a) {
    return enter(context, [&](Context& ctx) {
        require(a, "a") = nullptr;
        if (function == nullptr || rows < 0) {
            throw InputError(function == nullptr ? "function is a null pointer"
                                                 : "rows = " + std::to_string(rows));
        }
        *a = new quiver_operator{visit_dtype(dtype_of(type), [&]<class T>() {
            return doors::AnyOperator::wrap<T>(
                context->shared, std::make_shared<CallbackOperator<T>>(
                                     RowMap::by_local_rows(ctx.comm(), rows), function, user));
        })};
    });
}

quiver_status quiver_preconditioner_create(quiver_context* context, const quiver_operator* a,
                                           const char* name, const quiver_operator* mass,
                                           quiver_operator** m) {
    return enter(context, [&](Context&) {
        require(m, "m") = nullptr;
        *m = make_inverse(context, a, &require(name, "name"), std::nullopt, mass);
    });
}

quiver_status quiver_inverse_create(quiver_context* context, const quiver_operator* a, double sigma,
                                    const quiver_operator* mass, quiver_operator** inverse) {
    return enter(context, [&](Context&) {
        require(inverse, "inverse") = nullptr;
        *inverse = make_inverse(context, a, "ldlt", sigma, mass);
    });
}

void quiver_operator_free(quiver_operator* a) {
    if (a != nullptr) {
        const auto home = a->any.home;
        const std::lock_guard lock(home->mutex);
        delete a;
    }
}
