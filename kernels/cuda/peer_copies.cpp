// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/peer_copies.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "blockvec/error.hpp"
#include "kernels/cuda/launcher.hpp"

namespace quiver::cuda {
namespace {

/// Time limit of the first messages, before which all ranks have synchronised.
constexpr std::chrono::seconds trial_time{10};
/// Number of test messages, and their bytes.
constexpr int trial_turns = 3;
constexpr std::size_t trial_bytes = 4096;

using WriteValue = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
using WaitValue = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned int);

/// The stream operations exist in the driver only, which is not linked.
void* driver_function(const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    device::check(
        cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found), name);
    if (found != cudaDriverEntryPointSuccess || function == nullptr) {
        throw DeviceError(std::string("the driver has no ") + name);
    }
    return function;
}

/// The value of the receiver's flag for a piece of a message counted from 1.
std::uint32_t number_of(std::uint32_t message, int piece) {
    return (message - 1) * PeerCopies::most_pieces + static_cast<std::uint32_t>(piece) + 1;
}

CUdeviceptr address(const unsigned char* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

void check_driver(CUresult code, const char* what) {
    if (code != CUDA_SUCCESS) {
        throw DeviceError(std::string(what) + ": error " + std::to_string(code) + " of the driver");
    }
}

}  // namespace

PeerCopies::PeerCopies(Context& ctx)
    : device_(ctx.device().id),
      rank_(ctx.comm().rank()),
      ranks_(ctx.comm().size()),
      windows_(ctx, 2 * static_cast<std::size_t>(ranks_) * sizeof(std::uint32_t)),
      sent_(static_cast<std::size_t>(ranks_)),
      allowed_(static_cast<std::size_t>(ranks_)) {
    ctx.comm().agree([&] {
        write_value_ = driver_function("cuStreamWriteValue32");
        wait_value_ = driver_function("cuStreamWaitValue32");
    });
    try_out(ctx);
}

PeerCopies::~PeerCopies() {
    for (const auto& [key, pointer] : opened_) {
        close_pages(pointer);
    }
    // Inboxes stay until the process ends, for the reason given at ~PeerWindows().
}

PeerCopies::Inbox PeerCopies::take(std::size_t bytes) {
    if (bytes == 0) {
        return {};
    }
    const auto fits = std::find_if(idle_.begin(), idle_.end(), [bytes](const Inbox& inbox) {
        return inbox.bytes >= bytes && inbox.bytes / 4 <= bytes;
    });
    if (fits != idle_.end()) {
        const Inbox inbox = *fits;
        idle_.erase(fits);
        return inbox;
    }
    const CurrentDevice current(device_);
    Inbox inbox;
    inbox.data = allocate_pages(bytes, "halo");
    inbox.bytes = bytes;
    inbox.handle = handle_of(inbox.data);
    return inbox;
}

void PeerCopies::give_back(const Inbox& inbox) {
    if (inbox.data != nullptr) {
        idle_.push_back(inbox);
    }
}

unsigned char* PeerCopies::open(int rank, const PagesHandle& handle) {
    const auto known = opened_.find({rank, handle});
    if (known != opened_.end()) {
        return known->second;
    }
    const CurrentDevice current(device_);
    return opened_[{rank, handle}] = open_pages(handle);
}

/// The address of a flag in the owner's window, which has two flags per writing rank.
unsigned char* PeerCopies::flag(int owner, int writer, Flag which) const {
    const auto index = static_cast<std::size_t>(2 * writer + which);
    return windows_[owner] + index * sizeof(std::uint32_t);
}

void PeerCopies::write(int owner, Flag which, std::uint32_t number, Stream stream) {
    check_driver(
        reinterpret_cast<WriteValue*>(write_value_)(stream, address(flag(owner, rank_, which)),
                                                    number, CU_STREAM_WRITE_VALUE_DEFAULT),
        "cuStreamWriteValue32");
}

void PeerCopies::wait(int writer, Flag which, std::uint32_t number, Stream stream) {
    check_driver(reinterpret_cast<WaitValue*>(wait_value_)(
                     stream, address(flag(rank_, writer, which)), number, CU_STREAM_WAIT_VALUE_GEQ),
                 "cuStreamWaitValue32");
}

void PeerCopies::allow(int sender, Stream stream) {
    write(sender, room, ++allowed_[static_cast<std::size_t>(sender)], stream);
}

void PeerCopies::begin_message(int receiver, Stream stream) {
    wait(receiver, room, ++sent_[static_cast<std::size_t>(receiver)], stream);
}

void PeerCopies::tell(int receiver, int piece, Stream stream) {
    write(receiver, arrived, number_of(sent_[static_cast<std::size_t>(receiver)], piece), stream);
}

void PeerCopies::wait_for(int sender, int piece, Stream stream) {
    wait(sender, arrived, number_of(allowed_[static_cast<std::size_t>(sender)], piece), stream);
}

void PeerCopies::abandon() noexcept {
    // Write all awaited values. A wait ends at any value that is at least as large, compared modulo
    // the range (within half of it).
    cudaStream_t stream = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
        return;
    }
    for (int rank = 0; rank < ranks_; ++rank) {
        const std::uint32_t numbers[2] = {
            sent_[static_cast<std::size_t>(rank)],
            number_of(allowed_[static_cast<std::size_t>(rank)], most_pieces - 1)};
        static_cast<void>(cudaMemcpyAsync(flag(rank_, rank, room), numbers, sizeof numbers,
                                          cudaMemcpyHostToDevice, stream));
    }
    static_cast<void>(cudaStreamSynchronize(stream));
    static_cast<void>(cudaStreamDestroy(stream));
}

void PeerCopies::try_out(Context& ctx) {
    const Comm& comm = ctx.comm();
    const CurrentDevice current(device_);
    std::vector<PeerRows> receives;
    for (int rank = 0; rank < ranks_; ++rank) {
        if (rank != rank_) {
            receives.push_back({rank, static_cast<std::int64_t>(receives.size()), 1});
        }
    }
    Inbox inbox;
    comm.agree([&] { inbox = take(receives.size() * trial_bytes); });
    const std::vector<PagesHandle> all = gather_handles(comm, inbox.handle);
    Buffer source;
    std::vector<unsigned char> seen(receives.size() * trial_bytes);
    DeviceEvent done = nullptr;
    comm.agree([&] {
        for (const PeerRows& peer : receives) {
            open(peer.rank, all[static_cast<std::size_t>(peer.rank)]);
        }
        source = ctx.allocate(MemoryKind::device, trial_bytes, "test of peer copies");
        done = device::create_event(false);
    });
    comm.agree([&] {
        for (int turn = 1; turn <= trial_turns; ++turn) {
            const auto value_of = [turn](int rank) { return turn * 16 + rank; };
            device::check(
                cudaMemsetAsync(source.as<void>(), value_of(rank_), trial_bytes, ctx.stream()),
                "cudaMemsetAsync");
            for (const PeerRows& peer : receives) {
                allow(peer.rank, ctx.stream());
            }
            for (const PeerRows& peer : receives) {
                const int row = rank_ < peer.rank ? rank_ : rank_ - 1;  // in the other rank's inbox
                begin_message(peer.rank, ctx.stream());
                device::copy(open(peer.rank, all[static_cast<std::size_t>(peer.rank)]) +
                                 static_cast<std::size_t>(row) * trial_bytes,
                             source.as<void>(), trial_bytes, ctx.stream());
                tell(peer.rank, 0, ctx.stream());
            }
            for (const PeerRows& peer : receives) {
                wait_for(peer.rank, 0, ctx.stream());
            }
            device::record(done, ctx.stream());
            await(done);
            device::copy(seen.data(), inbox.data, seen.size(), ctx.stream());
            ctx.synchronize();
            for (std::size_t i = 0; i < seen.size(); ++i) {
                if (seen[i] != value_of(receives[i / trial_bytes].rank)) {
                    throw DeviceError("copies into peer memory: a test message was corrupted");
                }
            }
        }
    });
    device::destroy_event(done);
    give_back(inbox);
}

/// Waits for an event of the test, at most trial_time.
void PeerCopies::await(DeviceEvent event) {
    const auto start = std::chrono::steady_clock::now();
    while (cudaEventQuery(event) == cudaErrorNotReady) {
        if (std::chrono::steady_clock::now() - start > trial_time) {
            abandon();
            throw DeviceError("copies into peer memory: a test message did not arrive");
        }
        std::this_thread::yield();
    }
    static_cast<void>(cudaGetLastError());
}

PeerHalo::PeerHalo(Context& ctx, std::shared_ptr<PeerCopies> copies, std::vector<PeerRows> receives,
                   std::vector<PeerRows> sends, std::int64_t own_rows)
    : copies_(std::move(copies)),
      receives_(std::move(receives)),
      sends_(std::move(sends)),
      inbox_rows_(own_rows) {
    const Comm& comm = ctx.comm();
    const auto ranks = static_cast<std::size_t>(comm.size());
    std::vector<PeerRows> at_home(ranks), abroad(ranks);
    for (const PeerRows& peer : receives_) {
        at_home[static_cast<std::size_t>(peer.rank)] = peer;
        inbox_rows_ += peer.rows;
    }
    check_mpi(MPI_Alltoall(at_home.data(), sizeof(PeerRows), MPI_BYTE, abroad.data(),
                           sizeof(PeerRows), MPI_BYTE, comm.handle()),
              "MPI_Alltoall");
    // Each rank starts with its successor, so that no two ranks start with the same receiver.
    const auto distance = [&](const PeerRows& peer) {
        return (peer.rank - comm.rank() + comm.size()) % comm.size();
    };
    order_.resize(sends_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
        return distance(sends_[a]) < distance(sends_[b]);
    });
    for (PeerRows& peer : sends_) {
        const PeerRows& there = abroad[static_cast<std::size_t>(peer.rank)];
        target_row_.push_back(there.first);
        peer.end = there.end;
    }
    comm.agree([&] {
        ready_ = device::create_event(false);
        gone_ = device::create_event(false);
    });
}

PeerHalo::~PeerHalo() {
    for (const DeviceEvent event : {ready_, gone_}) {
        if (event != nullptr) {
            device::destroy_event(event);
        }
    }
    copies_->give_back(inbox_);
}

void PeerHalo::reserve(Context& ctx, std::size_t row_bytes) {
    if (row_bytes <= reserved_) {
        return;
    }
    const Comm& comm = ctx.comm();
    comm.agree([&] {
        copies_->give_back(inbox_);
        inbox_ = {};
        inbox_ = copies_->take(static_cast<std::size_t>(inbox_rows_) * row_bytes);
    });
    const std::vector<PagesHandle> all = gather_handles(comm, inbox_.handle);
    comm.agree([&] {
        target_.clear();
        for (const PeerRows& peer : sends_) {
            target_.push_back(copies_->open(peer.rank, all[static_cast<std::size_t>(peer.rank)]));
        }
    });
    reserved_ = row_bytes;
}

void PeerHalo::begin(Context& ctx, Stream side, std::size_t row_bytes) {
    side_ = side;
    row_bytes_ = row_bytes;
    device::record(ready_, ctx.stream());
    device::wait(side, ready_);
    for (const PeerRows& peer : receives_) {
        copies_->allow(peer.rank, side);
    }
    device::record(gone_, side);
}

void PeerHalo::send(Context& ctx, std::size_t i, std::int64_t first, std::int64_t rows,
                    const void* from) {
    const PeerRows& peer = sends_[i];
    device::record(ready_, ctx.stream());
    device::wait(side_, ready_);
    if (first == 0) {
        copies_->begin_message(peer.rank, side_);
    }
    device::copy(target_[i] + static_cast<std::size_t>(target_row_[i] + first) * row_bytes_, from,
                 static_cast<std::size_t>(rows) * row_bytes_, side_);
    const auto piece = std::find(peer.end.begin(), peer.end.end(), first + rows) - peer.end.begin();
    if (piece < PeerCopies::most_pieces) {
        copies_->tell(peer.rank, peer.last_like(static_cast<int>(piece)), side_);
    }
    if (first + rows == peer.rows) {
        device::record(gone_, side_);
    }
}

void PeerHalo::arrive(Context& ctx, int piece) {
    const auto at = static_cast<std::size_t>(piece);
    for (const PeerRows& peer : receives_) {
        if (peer.end[at] > (piece == 0 ? 0 : peer.end[at - 1])) {
            copies_->wait_for(peer.rank, peer.last_like(piece), ctx.stream());
        }
    }
}

void PeerHalo::end(Context& ctx) {
    device::wait(ctx.stream(), gone_);
}

}  // namespace quiver::cuda
