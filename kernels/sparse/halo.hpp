// SPDX-License-Identifier: BSD-3-Clause
// Halo: the rows of X that a rank needs from others for a sparse product. Private to
// kernels/sparse/.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <mpi.h>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"

namespace quiver {

namespace cuda {
class PeerHalo;
}

/// Planned once, exchanged for any width. Messages travel between begin() and end(), so that work
/// that needs no halo can be done between the two: non-blocking ones of MPI on the host; between
/// GPUs copies into peer memory or NCCL beside the stream, or staged by MPI (see RankLinks). Memory
/// is kept and grows with the width.
template <class T>
class Halo {
  public:
    /// `needed`: rows of other ranks, by rank, none twice; `stage` of each, 0 to stages - 1, when
    /// it has to be there: ascending within a rank. Collective.
    Halo(Context& ctx, const RowMap& map, const std::vector<std::int64_t>& needed,
         const std::vector<std::uint8_t>& stage, int stages);
    /// Whether stages make a difference. Collective; the same on all ranks.
    static bool comes_in_stages(Context& ctx);
    Halo(const Halo&) = delete;
    Halo& operator=(const Halo&) = delete;
    ~Halo();

    /// Number of rows of other ranks: needed.size().
    std::int64_t size() const { return receive_rows_; }

    /// Starts sending rows of X, and receiving. X may be changed only after the last stage.
    void begin(Context& ctx, BlockView<const T> x);
    /// Waits for the rows of a stage; all stages in their order. The rows needed, in their order,
    /// contiguous (ld = width), in the Context's place; on a device when the stream gets there.
    /// Valid until the next begin().
    const T* arrive(Context& ctx, int stage);
    /// What that returned, for blocks of the same width.
    const T* received() const;
    /// Whether messages take multiprocessors from what is computed meanwhile.
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
    Buffer send_list_;               // local rows that others need, by peer
    std::vector<std::int64_t> run_;  // the first row for each of send_peers_, where these are runs
    std::shared_ptr<cuda::PeerHalo> copies_;

    int width_ = 0;
    Buffer halo_;            // in the Context's place
    Buffer send_;            // in the Context's place
    Buffer pinned_receive_;  // on a device: what MPI sees
    Buffer pinned_send_;
    DeviceEvent staged_ = nullptr;  // pinned_send_ is filled
    std::vector<MPI_Request> requests_;
};

}  // namespace quiver
