// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/nccl.hpp"

#include <utility>

#include "blockvec/shared_library.hpp"

namespace quiver::cuda {
namespace {

constexpr int success = 0;
constexpr int type_bytes = 0;   // ncclInt8
constexpr int type_float = 7;   // ncclFloat32
constexpr int type_double = 8;  // ncclFloat64
constexpr int operation_sum = 0;

}  // namespace

// The parts of NCCL's interface (nccl.h, unchanged since 2.7) that are used; few build machines
// have its header. The types are members: in an unnamed namespace they crash g++ 13 where it
// compiles several files at once.
struct NcclLibrary {
    struct UniqueId {
        char internal[128];
    };
    using GetVersion = int(int* version);
    using GetUniqueId = int(UniqueId* id);
    using CommInitRank = int(void** comm, int ranks, UniqueId id, int rank);
    using CommAbort = int(void* comm);
    using AllReduce = int(const void* from, void* to, std::size_t count, int type, int operation,
                          void* comm, Stream stream);
    using Send = int(const void* from, std::size_t count, int type, int rank, void* comm,
                     Stream stream);
    using Receive = int(void* to, std::size_t count, int type, int rank, void* comm, Stream stream);
    using Group = int();
    using ErrorText = const char*(int code);

    SharedLibrary library{"libnccl.so.2"};
    GetVersion* get_version = library.find<GetVersion>("ncclGetVersion");
    GetUniqueId* get_unique_id = library.find<GetUniqueId>("ncclGetUniqueId");
    CommInitRank* comm_init_rank = library.find<CommInitRank>("ncclCommInitRank");
    CommAbort* comm_abort = library.find<CommAbort>("ncclCommAbort");
    AllReduce* all_reduce = library.find<AllReduce>("ncclAllReduce");
    Send* send = library.find<Send>("ncclSend");
    Receive* receive = library.find<Receive>("ncclRecv");
    Group* group_start = library.find<Group>("ncclGroupStart");
    Group* group_end = library.find<Group>("ncclGroupEnd");
    ErrorText* error_text = library.find<ErrorText>("ncclGetErrorString");
};

std::shared_ptr<const NcclLibrary> load_nccl() {
    return std::make_shared<const NcclLibrary>();
}

void Nccl::check(int code, const char* what) const {
    if (code != success) {
        throw DeviceError(std::string(what) + ": " + library_->error_text(code) +
                          " (set NCCL_DEBUG=WARN for details)");
    }
}

Nccl::Nccl(std::shared_ptr<const NcclLibrary> library, const Comm& comm)
    : library_(std::move(library)) {
    NcclLibrary::UniqueId id{};
    comm.agree([&] {
        if (comm.rank() == 0) {
            check(library_->get_unique_id(&id), "ncclGetUniqueId");
        }
    });
    comm.broadcast(&id, sizeof id, 0);
    comm.agree([&] {
        check(library_->comm_init_rank(&handle_, comm.size(), id, comm.rank()), "ncclCommInitRank");
    });
}

Nccl::~Nccl() {
    if (handle_ != nullptr) {
        // ncclCommDestroy would wait for the other ranks, which is impossible after a failure.
        static_cast<void>(library_->comm_abort(handle_));
    }
}

void Nccl::sum(void* values, std::size_t count, std::size_t bytes_each, Stream stream) {
    const int type = bytes_each == sizeof(float) ? type_float : type_double;
    check(library_->all_reduce(values, values, count, type, operation_sum, handle_, stream),
          "ncclAllReduce");
}

void Nccl::exchange(std::span<const RankMessage> sends, std::span<const RankMessage> receives,
                    Stream stream) {
    check(library_->group_start(), "ncclGroupStart");
    for (const RankMessage& message : receives) {
        check(library_->receive(message.data, message.bytes, type_bytes, message.rank, handle_,
                                stream),
              "ncclRecv");
    }
    for (const RankMessage& message : sends) {
        check(
            library_->send(message.data, message.bytes, type_bytes, message.rank, handle_, stream),
            "ncclSend");
    }
    check(library_->group_end(), "ncclGroupEnd");
}

std::string Nccl::name() const {
    int version = 0;
    check(library_->get_version(&version), "ncclGetVersion");
    return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
           "." + std::to_string(version % 100);
}

}  // namespace quiver::cuda
