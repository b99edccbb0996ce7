// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/peer_sum.hpp"

#include <algorithm>
#include <string>

#include "blockvec/error.hpp"
#include "kernels/cuda/specialiser.hpp"

namespace quiver::cuda {
namespace {

constexpr int threads = 512;
/// Time limit of the first all-reduce, before which all ranks have synchronised.
constexpr double trial_seconds = 10;

template <class R>
Kernel& kernel_of(Context& ctx) {
    return ctx.service<Specialiser>().get(ctx, "peer_sum.cuh",
                                          instance("peer_sum", device_name<R>()));
}

}  // namespace

PeerSum::PeerSum(Context& ctx)
    : rank_(ctx.comm().rank()),
      ranks_(ctx.comm().size()),
      windows_(ctx, static_cast<std::size_t>(peer_window_bytes(ranks_, slot_bytes))) {
    ctx.comm().agree([&] {
        late_ = ctx.allocate(MemoryKind::pinned, sizeof(unsigned), "peer flag");
        *late_.as<unsigned>() = 0;
    });
    try_out(ctx);
}

void PeerSum::try_out(Context& ctx) {
    const Comm& comm = ctx.comm();
    constexpr std::size_t count = 1024;
    std::vector<double> values(count);
    Buffer trial;
    comm.agree([&] {
        kernel_of<float>(ctx);
        kernel_of<double>(ctx);
        trial =
            ctx.allocate(MemoryKind::device, count * sizeof(double), "test of the peer all-reduce");
    });
    const double usual = most_wait_seconds_;
    most_wait_seconds_ = trial_seconds;
    comm.agree([&] {
        // Tests the slots of both turns, and the first slot a second time.
        for (int turn = 0; turn < 3; ++turn) {
            std::fill(values.begin(), values.end(), (turn + 1.0) * (rank_ + 1.0));
            device::copy(trial.as<void>(), values.data(), count * sizeof(double), ctx.stream());
            sum(ctx, trial.as<double>(), count);
            device::copy(values.data(), trial.as<void>(), count * sizeof(double), ctx.stream());
            ctx.synchronize();
            const double expected = (turn + 1.0) * ranks_ * (ranks_ + 1.0) / 2;
            if (std::count(values.begin(), values.end(), expected) !=
                static_cast<std::ptrdiff_t>(count)) {
                throw DeviceError("the test of the all-reduce through peer memory failed" +
                                  (late() >= 0
                                       ? ": rank " + std::to_string(late()) + " did not join it"
                                       : std::string()));
            }
        }
    });
    most_wait_seconds_ = usual;
}

template <class R>
void PeerSum::sum(Context& ctx, R* values, std::size_t count) {
    constexpr std::size_t most = slot_bytes / sizeof(R);
    for (std::size_t first = 0; first < count; first += most) {
        PeerSumArgs<R> args{};
        args.values = values + first;
        args.count = static_cast<int>(std::min(most, count - first));
        args.rank = rank_;
        args.ranks = ranks_;
        args.turn = ++turn_;
        args.slot_bytes = slot_bytes;
        args.most_wait = static_cast<std::int64_t>(1e9 * most_wait_seconds_);
        args.late = late_.as<unsigned>();
        for (int rank = 0; rank < ranks_; ++rank) {
            args.window[rank] = windows_[rank];
        }
        const int blocks = std::clamp((args.count + threads - 1) / threads, 1, most_peer_blocks);
        launch(ctx, kernel_of<R>(ctx),
               {.blocks = static_cast<unsigned>(blocks), .threads = threads}, args);
    }
}

int PeerSum::late() const {
    return static_cast<int>(*late_.as<volatile unsigned>()) - 1;
}

template void PeerSum::sum(Context&, float*, std::size_t);
template void PeerSum::sum(Context&, double*, std::size_t);

}  // namespace quiver::cuda
