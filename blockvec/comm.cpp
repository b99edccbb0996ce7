// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/comm.hpp"

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "blockvec/scalar_list.hpp"

namespace quiver {

void check_mpi(int code, const char* what) {
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code, text, &length);
        throw CommError(std::string(what) + ": " +
                        std::string(text, static_cast<std::size_t>(length)));
    }
}

template <>
MPI_Datatype mpi_type<float>() {
    return MPI_FLOAT;
}
template <>
MPI_Datatype mpi_type<double>() {
    return MPI_DOUBLE;
}
template <>
MPI_Datatype mpi_type<std::complex<float>>() {
    return MPI_C_FLOAT_COMPLEX;
}
template <>
MPI_Datatype mpi_type<std::complex<double>>() {
    return MPI_C_DOUBLE_COMPLEX;
}
template <>
MPI_Datatype mpi_type<std::int64_t>() {
    return MPI_INT64_T;
}
template <>
MPI_Datatype mpi_type<int>() {
    return MPI_INT;
}
template <>
MPI_Datatype mpi_type<char>() {
    return MPI_CHAR;
}

Comm::Comm(MPI_Comm parent) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) {
        throw CommError(
            "Comm: MPI is not initialised; call MPI_Init first, or use Comm() for one "
            "process");
    }
    shared_ = std::make_shared<Shared>();
    MPI_Comm& copy = shared_->handle;
    check_mpi(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
    check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_rank(copy, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(copy, &size_), "MPI_Comm_size");
    if (const char* fault = std::getenv("QUIVER_FAULT")) {
        char* rest = nullptr;
        const long long agreement = std::strtoll(fault, &rest, 10);
        if (*rest == '@' && std::strtol(rest + 1, &rest, 10) == rank_) {
            shared_->failing_agreement = agreement;
            shared_->failing_kills = std::strcmp(rest, ":kill") == 0;
        }
    }
}

Comm::Shared::~Shared() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0 && handle != MPI_COMM_NULL) {
        MPI_Comm_free(&handle);
    }
}

MPI_Comm Comm::handle() const {
    return shared_ ? shared_->handle : MPI_COMM_NULL;
}

namespace {

template <class V>
void reduce(const Comm& comm, std::span<V> values, MPI_Op op) {
    if (comm.size() == 1) {
        return;
    }
    constexpr std::size_t chunk = std::size_t{1} << 30;
    for (std::size_t first = 0; first < values.size(); first += chunk) {
        const auto count = static_cast<int>(std::min(chunk, values.size() - first));
        check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data() + first, count, mpi_type<V>(), op,
                                comm.handle()),
                  "MPI_Allreduce");
    }
}

}  // namespace

template <class V>
void Comm::sum(std::span<V> values) const {
    reduce(*this, values, MPI_SUM);
}
template <class V>
void Comm::max(std::span<V> values) const {
    reduce(*this, values, MPI_MAX);
}
#define QUIVER_INSTANTIATE(T) template void Comm::sum(std::span<T>) const;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE
template void Comm::sum(std::span<std::int64_t>) const;
template void Comm::max(std::span<double>) const;
template void Comm::max(std::span<std::int64_t>) const;

std::int64_t Comm::sum(std::int64_t value) const {
    sum(std::span<std::int64_t>(&value, 1));
    return value;
}
std::int64_t Comm::max(std::int64_t value) const {
    max(std::span<std::int64_t>(&value, 1));
    return value;
}
double Comm::max(double value) const {
    max(std::span<double>(&value, 1));
    return value;
}

double Comm::sum_on_node(double value) const {
    if (size_ == 1) {
        return value;
    }
    MPI_Comm node = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(handle(), MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
              "MPI_Comm_split_type");
    double sum = 0;
    const int code = MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, node);
    MPI_Comm_free(&node);
    check_mpi(code, "MPI_Allreduce");
    return sum;
}

std::vector<std::int64_t> Comm::gather(std::int64_t value) const {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size_), value);
    if (size_ > 1) {
        check_mpi(MPI_Allgather(&value, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, handle()),
                  "MPI_Allgather");
    }
    return all;
}

void Comm::broadcast(void* data, std::size_t bytes, int root) const {
    if (size_ == 1) {
        return;
    }
    auto* cursor = static_cast<char*>(data);
    while (bytes > 0) {
        const std::size_t count = std::min<std::size_t>(bytes, INT_MAX);
        check_mpi(MPI_Bcast(cursor, static_cast<int>(count), MPI_BYTE, root, handle()),
                  "MPI_Bcast");
        cursor += count;
        bytes -= count;
    }
}

void Comm::barrier() const {
    if (size_ > 1) {
        check_mpi(MPI_Barrier(handle()), "MPI_Barrier");
    }
}

void Comm::fail_on_request() const {
    if (shared_ && ++shared_->agreements == shared_->failing_agreement) {
        if (shared_->failing_kills) {
            std::raise(SIGKILL);
        }
        throw MemoryError("a fault injected by QUIVER_FAULT after agreement " +
                          std::to_string(shared_->agreements) + " on rank " +
                          std::to_string(rank_));
    }
}

void Comm::settle(ErrorKind kind, const std::string& message) const {
    // The minimum over the ranks is the lowest failing rank, or size_ if no rank failed.
    std::int64_t failing = kind == ErrorKind::none ? size_ : rank_;
    if (size_ > 1) {
        check_mpi(MPI_Allreduce(MPI_IN_PLACE, &failing, 1, MPI_INT64_T, MPI_MIN, handle()),
                  "MPI_Allreduce");
    }
    if (failing == size_) {
        return;
    }
    const int root = static_cast<int>(failing);
    std::int64_t head[2] = {static_cast<std::int64_t>(kind),
                            static_cast<std::int64_t>(message.size())};
    broadcast(head, sizeof(head), root);
    std::string agreed = message;
    agreed.resize(static_cast<std::size_t>(head[1]));
    broadcast(agreed.data(), agreed.size(), root);
    throw_collective(static_cast<ErrorKind>(head[0]), agreed);
}

void Comm::tell(ErrorKind kind, const std::string& message) const {
    if (size_ > 1) {
        try {
            settle(kind, message);
        } catch (const Error&) {
        }
    }
}

void Comm::abort(int status) const {
    if (shared_) {
        MPI_Abort(handle(), status);
    }
    std::_Exit(status);
}

}  // namespace quiver
