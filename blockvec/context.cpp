// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/context.hpp"

#include <utility>

#include <omp.h>

#include "blockvec/error.hpp"
#include "blockvec/processor.hpp"

namespace quiver {

Context::Context(Comm comm, Device device) : comm_(std::move(comm)), device_(device) {
    threads_ = device.threads > 0 ? device.threads : omp_get_max_threads();
    vector_bytes();  // an invalid QUIVER_VECTORS must throw here, outside any parallel region
    if (device.place == Place::host) {
        memory_ = std::make_shared<Memory>();
        ledger_ = std::make_unique<Ledger>();
        return;
    }
    const int devices = device::count();
    if (devices == 0) {
        throw UnsupportedError("device cuda: " + device::why_none());
    }
    if (device.id < 0 || device.id >= devices) {
        throw UnsupportedError("device cuda: there is no GPU " + std::to_string(device.id) +
                               ", this process sees " + std::to_string(devices));
    }
    device::select(device.id);
    const Stream stream = device.borrowed_stream ? device.stream : device::create_stream();
    memory_ = std::make_shared<Memory>(device.id, stream, !device.borrowed_stream);
    ledger_ = std::make_unique<Ledger>(stream);
}

void Context::throw_moved_from() {
    throw InputError("context: its contents were moved to another Context; use that one");
}

void Context::synchronize() const {
    if (device_.place == Place::device) {
        device::synchronize(stream());
    }
}

unsigned* Context::counters() {
    constexpr std::size_t bytes = 1024 * sizeof(unsigned);
    if (counters_.bytes() == 0) {
        counters_ = allocate(MemoryKind::device, bytes, "reduction counters");
        device::set_zero(counters_.as<void>(), bytes, stream());
    }
    return counters_.as<unsigned>();
}

}  // namespace quiver
