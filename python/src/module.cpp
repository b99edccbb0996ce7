// SPDX-License-Identifier: BSD-3-Clause
// The module quiver._core, a private interface for the Python layer (python/quiver), which checks
// and converts arguments.
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "python/src/bindings.hpp"
#include "python/src/operators.hpp"
#include "python/src/shared_context.hpp"

namespace quiver::python {

std::exception_ptr& callback_error() {
    thread_local std::exception_ptr error;
    return error;
}

namespace {

using nb::literals::operator""_a;

/// The object at an address that Python passes as an integer.
template <class T>
T* pointer(std::uintptr_t address) {
    return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// The communicator of mpi4py whose MPI_Comm lies at `address`; 0: one process.
Comm comm_at(std::uintptr_t address) {
    if (address == 0) {
        return {};
    }
#ifdef MPI_VERSION
    return Comm(*pointer<const MPI_Comm>(address));
#else
    throw UnsupportedError("comm: this build of quiver has no MPI; build it with MPI");
#endif
}

/// A Context on the host (device < 0), or on a GPU and the caller's stream. Collective over comm.
std::shared_ptr<SharedContext> make_context(int device, std::uintptr_t stream, int threads,
                                            std::uintptr_t comm) {
    const Device where = device < 0
                             ? Device::host(threads)
                             : Device::cuda(device, pointer<std::remove_pointer_t<Stream>>(stream));
    return std::make_shared<SharedContext>(comm_at(comm), where);
}

/// Converts errors of the library to Python exceptions: errors in arguments to ValueError, lack of
/// memory to MemoryError, all others to quiver.Error, a subclass of RuntimeError.
void translate(const std::exception_ptr& error, void* payload) {
    try {
        std::rethrow_exception(error);
    } catch (const Error& raised) {
        switch (raised.kind()) {
            case ErrorKind::shape:
            case ErrorKind::input:
                PyErr_SetString(PyExc_ValueError, raised.what());
                break;
            case ErrorKind::memory:
                PyErr_SetString(PyExc_MemoryError, raised.what());
                break;
            default:
                PyErr_SetString(static_cast<PyObject*>(payload), raised.what());
        }
    }
}

}  // namespace
}  // namespace quiver::python

// The body of this macro is the module's initialisation.
NB_MODULE(_core, module) {
    using namespace quiver::python;
    using nb::literals::operator""_a;
    const nb::exception<quiver::Error> error(module, "Error", PyExc_RuntimeError);
    error.attr("__doc__") =
        "The library or its device failed; the message names the cause. Invalid arguments raise "
        "ValueError, and lack of memory raises MemoryError.";
    // nanobind tries the translator that was registered last before all others.
    nb::register_exception_translator(&translate, error.ptr());
    module.attr("version") = quiver::config::version;
    module.attr("has_cuda") = quiver::config::have_cuda;
    nb::class_<SharedContext>(module, "Context")
        .def_prop_ro("device",
                     [](const SharedContext& shared) {
                         return shared.context.place() == quiver::Place::host
                                    ? -1
                                    : shared.context.device().id;
                     })
        .def_prop_ro("ranks",
                     [](const SharedContext& shared) { return shared.context.comm().size(); })
        .def("synchronize", [](SharedContext& shared) {
            run(shared, [](quiver::Context& ctx) { ctx.synchronize(); });
        });
    module.def("make_context", &make_context, "device"_a, "stream"_a, "threads"_a = 0,
               "comm"_a = 0);
    bind_operators(module);
    bind_eigen(module);
    bind_linear(module);
    bind_dense(module);
    bind_cluster(module);
    bind_hamiltonian(module);
    bind_svd(module);
}
