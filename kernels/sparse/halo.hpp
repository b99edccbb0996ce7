// SPDX-License-Identifier: BSD-3-Clause
// Halo: the exchange of the rows of X that a rank needs from other ranks for a sparse product.
// Private to kernels/.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/mpi.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"

namespace quiver {

namespace cuda {
class PeerHalo;
}

/// The exchange is planned once and serves any width. Messages are in flight between begin() and
/// the last arrive(), so that work without the halo can be done meanwhile. They are non-blocking
/// MPI messages on the host; between GPUs they are copies into peer memory, NCCL messages on a side
/// stream, or MPI messages staged in host memory (see RankLinks). The buffers are kept and grow
/// with the width.
template <class T>
class Halo {
  public:
    /// `needed`: distinct rows of other ranks, sorted by rank. `stage`: for each of them, the stage
    /// 0 to stages - 1 in which it must arrive, ascending within a rank. Collective.
    Halo(Context& ctx, const RowMap& map, const std::vector<std::int64_t>& needed,
         const std::vector<std::uint8_t>& stage, int stages);
    /// True if the halo can arrive in stages. Collective; the same on all ranks.
    static bool comes_in_stages(Context& ctx);
    Halo(const Halo&) = delete;
    Halo& operator=(const Halo&) = delete;
    ~Halo();

    /// Number of rows of other ranks: needed.size().
    std::int64_t size() const { return receive_rows_; }

    /// Starts to send rows of X and to receive. X must not change before the last stage has
    /// arrived.
    void begin(Context& ctx, BlockView<const T> x);
    /// Waits for the rows of a stage; call it for all stages in order. Returns the needed rows in
    /// order, contiguous (ld = width), in the Context's place; on a device they are valid in stream
    /// order. Valid until the next begin().
    const T* arrive(Context& ctx, int stage);
    /// This rank's rows that other ranks need, 64-bit indices in the Context's place.
    const Buffer& plan() const { return send_list_; }
    /// The pointer that the last arrive() returned, for blocks of the same width.
    const T* received() const;
    /// True if the messages occupy multiprocessors of the GPU while other kernels run.
    bool takes_multiprocessors() const;

  private:
    struct Peer {
        int rank;
        std::int64_t first;  // row in the buffer
        std::int64_t rows;
    };
    bool by_nccl(Context& ctx) const;
    void pack(Context& ctx, BlockView<const T> x, std::int64_t first, std::int64_t rows);
    void reserve_packed(Context& ctx);
    void begin_copies(Context& ctx, BlockView<const T> x);
    void start_receives(Context& ctx, T* buffer);
    void start_sends(Context& ctx, const T* buffer);
    void wait_all();
    void finish(Context& ctx);

    int stages_;
    std::int64_t receive_rows_ = 0;
    std::int64_t send_rows_ = 0;
    std::vector<Peer> receive_peers_;
    std::vector<Peer> send_peers_;
    Buffer send_list_;  // local rows that others need, sorted by peer
    /// For each of send_peers_ whose rows are consecutive in X, the first of these rows. If all
    /// send_peers_ have one, and X has no gaps, X needs no packing.
    std::vector<std::int64_t> run_;
    std::shared_ptr<cuda::PeerHalo> copies_;

    int width_ = 0;
    Buffer halo_;            // in the Context's place
    Buffer send_;            // in the Context's place
    Buffer pinned_receive_;  // on a device: the buffers that MPI uses
    Buffer pinned_send_;
    DeviceEvent staged_ = nullptr;  // recorded when pinned_send_ is filled
    std::vector<MPI_Request> requests_;
};

}  // namespace quiver
