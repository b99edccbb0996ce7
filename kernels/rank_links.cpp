// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/rank_links.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/device_links.hpp"

namespace quiver {
namespace {

/// The size of two 64 x 64 matrices of doubles. Above it bandwidth dominates, and NCCL's ring moves
/// fewer bytes.
constexpr std::size_t most_peer_bytes = 64 * 1024;

std::string_view asked_for() {
    const char* text = std::getenv("QUIVER_LINKS");
    return text == nullptr ? "" : text;
}

}  // namespace

const char* to_string(SumBy way) {
    switch (way) {
        case SumBy::peers:
            return "peers";
        case SumBy::nccl:
            return "nccl";
        case SumBy::mpi:
            return "mpi";
        default:
            return "automatic";
    }
}

RankLinks::RankLinks(Context& ctx) {
    const Comm& comm = ctx.comm();
    if (comm.size() == 1) {
        why_staged_ = "there is one rank";
        return;
    }
    comm.agree([] {
        const std::string_view text = asked_for();
        if (!text.empty() && text != "mpi" && text != "nccl" && text != "peers") {
            throw InputError("QUIVER_LINKS=" + std::string(text) +
                             ": expected nccl (no peer memory), peers (no NCCL) or mpi (neither)");
        }
    });
    const bool here = ctx.place() == Place::device;
    // The environment variable may differ between ranks.
    const std::int64_t devices = comm.sum(std::int64_t{here ? 1 : 0});
    if (devices < comm.size()) {
        why_staged_ = devices == 0 ? "all ranks work on the host"
                                   : "some ranks work on the host, others on GPUs";
    } else {
        std::int64_t leave_out[2] = {asked_for() == "mpi" || asked_for() == "peers" ? 1 : 0,
                                     asked_for() == "mpi" || asked_for() == "nccl" ? 1 : 0};
        comm.max(std::span<std::int64_t>(leave_out));
        if constexpr (config::have_cuda) {
            device_ =
                std::make_shared<cuda::DeviceLinks>(ctx, leave_out[0] == 0, leave_out[1] == 0);
            if (!device_->nccl) {
                why_staged_ = device_->why_no_nccl;
            }
        }
    }
    if (here && !halos_on_device()) {
        ctx.emit(FallbackEvent{"halos: " + describe_halos()});
    }
    if (here && !sums_on_device(1)) {
        ctx.emit(FallbackEvent{"sums over ranks: " + describe_sums()});
    }
}

SumBy RankLinks::way_of(std::size_t bytes) const {
    if (chosen_ != SumBy::automatic || !device_) {
        return device_ ? chosen_ : SumBy::mpi;
    }
    if (device_->peers && (bytes <= most_peer_bytes || !device_->nccl)) {
        return SumBy::peers;
    }
    return device_->nccl ? SumBy::nccl : SumBy::mpi;
}

void RankLinks::choose(SumBy way) {
    require(way);
    chosen_ = way;
}

void RankLinks::require(SumBy way) const {
    const auto refuse = [](const char* what, const std::string& why) {
        throw UnsupportedError(std::string(what) + ": " + why);
    };
    if (way == SumBy::peers && (!device_ || !device_->peers)) {
        refuse("sums through peer memory", device_ ? device_->why_no_peers : why_staged_);
    }
    if (way == SumBy::nccl && (!device_ || !device_->nccl)) {
        refuse("sums by NCCL", device_ ? device_->why_no_nccl : why_staged_);
    }
}

template <class T>
void RankLinks::sum(Context& ctx, T* values, std::size_t count) {
    if constexpr (config::have_cuda) {
        using Real = real_t<T>;
        auto* const reals = reinterpret_cast<Real*>(values);
        const std::size_t all = count * (is_complex_v<T> ? 2 : 1);
        if (way_of(count * sizeof(T)) == SumBy::peers) {
            device_->peers->sum(ctx, reals, all);
        } else {
            device_->nccl->sum(reals, all, sizeof(Real), ctx.stream());
        }
    }
}

void RankLinks::check() const {
    if constexpr (config::have_cuda) {
        if (device_ && device_->peers && device_->peers->late() >= 0) {
            throw DeviceError("all-reduce through peer memory: rank " +
                              std::to_string(device_->peers->late()) + " did not join it within " +
                              std::to_string(device_->peers->most_wait_seconds()) + " s");
        }
    }
}

bool RankLinks::halos_on_device() const {
    return device_ && (device_->copies || device_->nccl);
}

bool RankLinks::copies_halos() const {
    return device_ && device_->copies;
}

std::shared_ptr<cuda::PeerHalo> RankLinks::peer_halo(Context& ctx,
                                                     std::vector<cuda::PeerRows> receives,
                                                     std::vector<cuda::PeerRows> sends) {
    if constexpr (config::have_cuda) {
        if (device_ && device_->copies) {
            return std::make_shared<cuda::PeerHalo>(ctx, device_->copies, std::move(receives),
                                                    std::move(sends));
        }
    }
    return nullptr;
}

Stream RankLinks::side() const {
    return device_ ? device_->side : nullptr;
}

void RankLinks::start_exchange(Context& ctx, std::span<const cuda::RankMessage> sends,
                               std::span<const cuda::RankMessage> receives) {
    if constexpr (config::have_cuda) {
        device::record(device_->packed, ctx.stream());
        device::wait(device_->side, device_->packed);
        device_->nccl->exchange(sends, receives, device_->side);
        device::record(device_->arrived, device_->side);
    }
}

void RankLinks::finish_exchange(Context& ctx) {
    device::wait(ctx.stream(), device_->arrived);
}

/// Room for all rows of the map.
unsigned char* RankLinks::reserve_gathered(Context& ctx, const RowMap& map, std::size_t row_bytes) {
    if constexpr (config::have_cuda) {
        if (!device_->copies) {
            const std::size_t bytes = static_cast<std::size_t>(map.global_rows()) * row_bytes;
            if (gathered_.rows.bytes() < bytes) {
                ctx.comm().agree([&] {
                    gathered_.rows = Buffer();
                    gathered_.rows = ctx.allocate(MemoryKind::device, bytes, "rows of all ranks");
                });
            }
            return gathered_.rows.as<unsigned char>();
        }
        if (!gathered_.copies || !(gathered_.map == map)) {
            std::vector<cuda::PeerRows> receives, sends;
            for (int rank = 0; rank < map.ranks(); ++rank) {
                const std::int64_t rows = map.local_rows(rank);
                if (rank != map.rank() && rows > 0) {
                    receives.push_back({rank, map.first_row(rank), rows});
                    receives.back().end.fill(rows);
                }
                if (rank != map.rank() && map.local_rows() > 0) {
                    sends.push_back({rank, 0, map.local_rows()});
                }
            }
            gathered_.copies = std::make_shared<cuda::PeerHalo>(
                ctx, device_->copies, std::move(receives), std::move(sends), map.local_rows());
            gathered_.map = map;
        }
        gathered_.copies->reserve(ctx, row_bytes);
        return static_cast<unsigned char*>(gathered_.copies->data());
    }
    return nullptr;
}

const void* RankLinks::gather_rows(Context& ctx, const RowMap& map, const void* mine,
                                   std::size_t pitch, std::size_t row_bytes) {
    unsigned char* const all = reserve_gathered(ctx, map, row_bytes);
    if constexpr (config::have_cuda) {
        const auto bytes_of = [&](int rank) {
            return static_cast<std::size_t>(map.local_rows(rank)) * row_bytes;
        };
        const auto place_of = [&](int rank) {
            return all + static_cast<std::size_t>(map.first_row(rank)) * row_bytes;
        };
        unsigned char* const own = place_of(map.rank());
        if (bytes_of(map.rank()) > 0) {
            device::copy_2d(own, row_bytes, mine, pitch, row_bytes,
                            static_cast<std::size_t>(map.local_rows()), ctx.stream());
        }
        if (device_->copies) {
            cuda::PeerHalo& copies = *gathered_.copies;
            copies.begin(ctx, side(), row_bytes);
            for (const std::size_t i : copies.order()) {
                copies.send(ctx, i, 0, map.local_rows(), own);
            }
            copies.arrive(ctx, 0);
            copies.end(ctx);
            return all;
        }
        std::vector<cuda::RankMessage> sends, receives;
        for (int rank = 0; rank < map.ranks(); ++rank) {
            if (rank == map.rank()) {
                continue;
            }
            if (bytes_of(map.rank()) > 0) {
                sends.push_back({rank, own, bytes_of(map.rank())});
            }
            if (bytes_of(rank) > 0) {
                receives.push_back({rank, place_of(rank), bytes_of(rank)});
            }
        }
        start_exchange(ctx, sends, receives);
        finish_exchange(ctx);
    }
    return all;
}

std::string RankLinks::describe_sums() const {
    if constexpr (config::have_cuda) {
        if (device_ && device_->peers) {
            return device_->nccl ? "peer memory up to 64 KiB, else " + device_->nccl->name()
                                 : "peer memory (no NCCL: " + device_->why_no_nccl + ")";
        }
        if (device_ && device_->nccl) {
            return device_->nccl->name() + " (no peer memory: " + device_->why_no_peers + ")";
        }
    }
    return "MPI, staged in host memory (" + why_staged_ + ")";
}

std::string RankLinks::describe_halos() const {
    if constexpr (config::have_cuda) {
        if (device_ && device_->copies) {
            return "copies into peer memory";
        }
        if (halos_on_device()) {
            return device_->nccl->name() + " (no copies: " + device_->why_no_copies + ")";
        }
    }
    return "MPI, staged in host memory (" + why_staged_ + ")";
}

void RankLinks::set_most_wait(double seconds) {
    if constexpr (config::have_cuda) {
        if (device_ && device_->peers) {
            device_->peers->set_most_wait(seconds);
        }
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define QUIVER_INSTANTIATE(T) template void RankLinks::sum(Context&, T*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
