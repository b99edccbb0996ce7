// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/halo.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "blockvec/config.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/nccl.hpp"
#include "kernels/cuda/peer_copies.hpp"
#include "kernels/leaves.hpp"
#include "kernels/rank_links.hpp"
#include "kernels/sparse/exchange.hpp"

namespace quiver {
namespace {

constexpr int halo_tag = 72;
/// Bytes packed at a time; NVLink needs about 0.1 ms for them.
constexpr std::size_t packed_bytes = std::size_t{32} << 20;

void grow(Buffer& buffer, const Context& ctx, MemoryKind kind, std::size_t bytes,
          const char* what) {
    if (buffer.bytes() < bytes) {
        buffer = Buffer();
        buffer = ctx.allocate(kind, bytes, what);
    }
}

/// Calls message(first byte, bytes) for pieces whose size fits an int.
template <class Message>
void in_messages(std::int64_t first, std::int64_t bytes, Message&& message) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    for (std::int64_t done = 0; done < bytes; done += most) {
        message(first + done, static_cast<int>(std::min(most, bytes - done)));
    }
}

}  // namespace

template <class T>
Halo<T>::Halo(Context& ctx, const RowMap& map, const std::vector<std::int64_t>& needed,
              const std::vector<std::uint8_t>& stage, int stages)
    : stages_(stages), receive_rows_(static_cast<std::int64_t>(needed.size())) {
    const Comm& comm = ctx.comm();
    if (comm.size() == 1) {
        return;
    }
    const auto ranks = static_cast<std::size_t>(comm.size());
    std::vector<std::int64_t> receive_counts(ranks), send_counts(ranks), next(ranks);
    std::vector<std::int64_t> list;
    for (const std::int64_t row : needed) {
        ++receive_counts[static_cast<std::size_t>(map.owner(row))];
    }
    check_mpi(MPI_Alltoall(receive_counts.data(), 1, MPI_INT64_T, send_counts.data(), 1,
                           MPI_INT64_T, comm.handle()),
              "MPI_Alltoall");
    const auto peers = [&](const std::vector<std::int64_t>& counts, std::vector<Peer>& result) {
        std::int64_t first = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            if (counts[rank] > 0) {
                result.push_back({static_cast<int>(rank), first, counts[rank]});
                first += counts[rank];
            }
        }
        return first;
    };
    comm.agree([&] {
        peers(receive_counts, receive_peers_);
        send_rows_ = peers(send_counts, send_peers_);
        list.resize(static_cast<std::size_t>(send_rows_));
    });
    std::exclusive_scan(send_counts.begin(), send_counts.end(), next.begin(), std::int64_t{0});
    exchange<std::int64_t>(
        comm, receive_rows_, [&](std::int64_t i) { return needed[static_cast<std::size_t>(i)]; },
        [&](std::int64_t row) { return map.owner(row); },
        [&](int source, std::span<const std::int64_t> rows) {
            for (const std::int64_t row : rows) {
                list[static_cast<std::size_t>(next[static_cast<std::size_t>(source)]++)] =
                    row - map.first_row();
            }
        });
    // Constructed here, because the construction is collective while an exchange involves only some
    // ranks.
    std::vector<cuda::PeerRows> receives, sends;
    comm.agree([&] {
        for (const Peer& peer : receive_peers_) {
            cuda::PeerRows rows{peer.rank, peer.first, peer.rows};
            const auto begin = stage.begin() + peer.first;
            for (std::size_t s = 0; s < rows.end.size(); ++s) {
                rows.end[s] = std::upper_bound(begin, begin + peer.rows, s) - begin;
            }
            receives.push_back(rows);
        }
        for (const Peer& peer : send_peers_) {
            sends.push_back({peer.rank, peer.first, peer.rows});
            const auto rows = std::span<const std::int64_t>(list).subspan(
                static_cast<std::size_t>(peer.first), static_cast<std::size_t>(peer.rows));
            const auto gap = std::adjacent_find(
                rows.begin(), rows.end(), [](auto row, auto next) { return next != row + 1; });
            if (gap == rows.end()) {
                run_.push_back(rows.front());
            }
        }
    });
    copies_ = ctx.service<RankLinks>().peer_halo(ctx, std::move(receives), std::move(sends));
    comm.agree([&] {
        const std::size_t bytes = list.size() * sizeof(std::int64_t);
        send_list_ = ctx.allocate(memory_kind(ctx.place()), bytes, "halo plan");
        if (ctx.place() == Place::device) {
            if (bytes > 0) {
                device::copy(send_list_.template as<void>(), list.data(), bytes, ctx.stream());
                ctx.synchronize();
            }
            staged_ = device::create_event(false);
        } else if (bytes > 0) {
            std::memcpy(send_list_.template as<void>(), list.data(), bytes);
        }
    });
}

template <class T>
Halo<T>::~Halo() {
    if (staged_ != nullptr) {
        device::destroy_event(staged_);
    }
}

template <class T>
bool Halo<T>::comes_in_stages(Context& ctx) {
    if constexpr (config::have_cuda) {
        return ctx.comm().size() > 1 && ctx.service<RankLinks>().copies_halos();
    }
    return false;
}

template <class T>
bool Halo<T>::by_nccl(Context& ctx) const {
    return ctx.place() == Place::device && ctx.service<RankLinks>().halos_on_device();
}

template <class T>
bool Halo<T>::takes_multiprocessors() const {
    return receive_rows_ > 0 && !copies_;
}

template <class T>
const T* Halo<T>::received() const {
    if constexpr (config::have_cuda) {
        if (copies_) {
            return static_cast<const T*>(copies_->data());
        }
    }
    return halo_.template as<T>();
}

template <class T>
void Halo<T>::reserve_packed(Context& ctx) {
    grow(send_, ctx, memory_kind(ctx.place()),
         static_cast<std::size_t>(send_rows_) * static_cast<std::size_t>(width_) * sizeof(T),
         "halo send buffer");
}

/// Packs rows `first` and up of the rows that others need into the send buffer.
template <class T>
void Halo<T>::pack(Context& ctx, BlockView<const T> x, std::int64_t first, std::int64_t rows) {
    if (rows == 0) {
        return;
    }
    const GatherRowsArgs<T> gather{rows,
                                   width_,
                                   x.rows,
                                   x.data,
                                   x.ld,
                                   send_list_.template as<std::int64_t>() + first,
                                   send_.template as<T>() + first * width_};
    run_leaf(ctx, QUIVER_LEAF(gather_rows), gather);
}

template <class T>
void Halo<T>::begin_copies(Context& ctx, BlockView<const T> x) {
    if constexpr (config::have_cuda) {
        const std::size_t row_bytes = static_cast<std::size_t>(width_) * sizeof(T);
        copies_->reserve(ctx, row_bytes);
        if (receive_rows_ == 0 && send_rows_ == 0) {
            return;
        }
        // Rows that are already contiguous in X need no packing.
        const bool as_they_are = x.ld == x.cols && run_.size() == send_peers_.size();
        if (!as_they_are) {
            reserve_packed(ctx);
        }
        copies_->begin(ctx, ctx.service<RankLinks>().side(), row_bytes);
        // One part of a piece is packed while the previous part is in flight.
        const auto most_rows = static_cast<std::int64_t>(packed_bytes / row_bytes + 1);
        for (int piece = 0; piece < cuda::PeerCopies::most_pieces; ++piece) {
            for (const std::size_t i : copies_->order()) {
                const auto& end = copies_->sends()[i].end;
                const auto at = static_cast<std::size_t>(piece);
                const std::int64_t first = send_peers_[i].first;
                for (std::int64_t row = at == 0 ? 0 : end[at - 1]; row < end[at];) {
                    if (as_they_are) {
                        copies_->send(ctx, i, row, end[at] - row,
                                      x.data + (run_[i] + row) * width_);
                        break;
                    }
                    const std::int64_t rows = std::min(most_rows, end[at] - row);
                    pack(ctx, x, first + row, rows);
                    copies_->send(ctx, i, row, rows,
                                  send_.template as<T>() + (first + row) * width_);
                    row += rows;
                }
            }
        }
    }
}

template <class T>
void Halo<T>::start_receives(Context& ctx, T* buffer) {
    const std::int64_t row_bytes = width_ * static_cast<std::int64_t>(sizeof(T));
    for (const Peer& peer : receive_peers_) {
        in_messages(
            peer.first * row_bytes, peer.rows * row_bytes, [&](std::int64_t first, int bytes) {
                requests_.push_back(MPI_REQUEST_NULL);
                check_mpi(MPI_Irecv(reinterpret_cast<char*>(buffer) + first, bytes, MPI_BYTE,
                                    peer.rank, halo_tag, ctx.comm().handle(), &requests_.back()),
                          "MPI_Irecv");
            });
    }
}

template <class T>
void Halo<T>::start_sends(Context& ctx, const T* buffer) {
    const std::int64_t row_bytes = width_ * static_cast<std::int64_t>(sizeof(T));
    for (const Peer& peer : send_peers_) {
        in_messages(
            peer.first * row_bytes, peer.rows * row_bytes, [&](std::int64_t first, int bytes) {
                requests_.push_back(MPI_REQUEST_NULL);
                check_mpi(MPI_Isend(reinterpret_cast<const char*>(buffer) + first, bytes, MPI_BYTE,
                                    peer.rank, halo_tag, ctx.comm().handle(), &requests_.back()),
                          "MPI_Isend");
            });
    }
}

template <class T>
void Halo<T>::wait_all() {
    check_mpi(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
    requests_.clear();
}

template <class T>
void Halo<T>::begin(Context& ctx, BlockView<const T> x) {
    width_ = x.cols;
    if (copies_) {
        begin_copies(ctx, x);
        return;
    }
    if (receive_rows_ == 0 && send_rows_ == 0) {
        return;
    }
    const std::size_t row_bytes = static_cast<std::size_t>(width_) * sizeof(T);
    const std::size_t receive_bytes = static_cast<std::size_t>(receive_rows_) * row_bytes;
    const std::size_t send_bytes = static_cast<std::size_t>(send_rows_) * row_bytes;
    grow(halo_, ctx, memory_kind(ctx.place()), receive_bytes, "halo");
    reserve_packed(ctx);
    T* const halo = halo_.template as<T>();
    if (ctx.place() == Place::host) {
        start_receives(ctx, halo);
        pack(ctx, x, 0, send_rows_);
        start_sends(ctx, send_.template as<T>());
        return;
    }
    pack(ctx, x, 0, send_rows_);
    if constexpr (config::have_cuda) {
        if (by_nccl(ctx)) {
            const auto messages = [&](const std::vector<Peer>& peers, T* buffer) {
                std::vector<cuda::RankMessage> all;
                all.reserve(peers.size());
                for (const Peer& peer : peers) {
                    all.push_back({peer.rank, buffer + peer.first * width_,
                                   static_cast<std::size_t>(peer.rows) * row_bytes});
                }
                return all;
            };
            ctx.service<RankLinks>().start_exchange(
                ctx, messages(send_peers_, send_.template as<T>()), messages(receive_peers_, halo));
            return;
        }
    }
    grow(pinned_receive_, ctx, MemoryKind::pinned, receive_bytes, "halo staging");
    grow(pinned_send_, ctx, MemoryKind::pinned, send_bytes, "halo staging");
    if (send_rows_ > 0) {
        device::copy(pinned_send_.template as<void>(), send_.template as<void>(), send_bytes,
                     ctx.stream());
    }
    device::record(staged_, ctx.stream());
}

template <class T>
const T* Halo<T>::arrive(Context& ctx, int stage) {
    if (receive_rows_ == 0 && send_rows_ == 0) {
        return nullptr;
    }
    if constexpr (config::have_cuda) {
        if (copies_) {
            copies_->arrive(ctx, stage);
            if (stage == stages_ - 1) {
                copies_->end(ctx);
            }
            return received();
        }
    }
    if (stage == 0) {
        finish(ctx);
    }
    return received();
}

/// Finishes all messages that are not copies into peer memory.
template <class T>
void Halo<T>::finish(Context& ctx) {
    if (ctx.place() == Place::host) {
        wait_all();
        return;
    }
    if (by_nccl(ctx)) {
        ctx.service<RankLinks>().finish_exchange(ctx);
        return;
    }
    // The event comes after the previous exchange's copy out of pinned_receive_, so that this
    // buffer is free afterwards.
    device::synchronize(staged_);
    start_receives(ctx, pinned_receive_.template as<T>());
    start_sends(ctx, pinned_send_.template as<T>());
    wait_all();
    if (receive_rows_ > 0) {
        const std::size_t bytes =
            static_cast<std::size_t>(receive_rows_) * static_cast<std::size_t>(width_) * sizeof(T);
        device::copy(halo_.template as<void>(), pinned_receive_.template as<void>(), bytes,
                     ctx.stream());
    }
}

#define QUIVER_INSTANTIATE(T) template class Halo<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
