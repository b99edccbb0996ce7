// SPDX-License-Identifier: BSD-3-Clause
// Halo exchanges between the GPUs of one node: copy engines write directly into the memory of the
// receiving rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/cuda/peer_windows.hpp"

namespace quiver::cuda {

/// The state that all halos of a Context share: flags that ranks write into each other's windows,
/// and opened memory of other ranks.
///
/// Protocol of message number t from sender s to receiver r: r's stream writes t into the flag
/// `room` of s, after all earlier data were read. The stream of s waits for this flag, copies a
/// piece, and increases the flag `arrived` of r; the stream of r waits for it, piece by piece.
/// Neither a multiprocessor nor the host takes part.
class PeerCopies {
  public:
    /// Collective; sends test messages at the end. Throws an Error on all ranks if peer copies are
    /// not possible.
    explicit PeerCopies(Context& ctx);
    PeerCopies(const PeerCopies&) = delete;
    PeerCopies& operator=(const PeerCopies&) = delete;
    ~PeerCopies();

    /// Pages in the exclusive use of this rank, and the handle by which other ranks open them.
    struct Inbox {
        unsigned char* data = nullptr;
        std::size_t bytes = 0;
        PagesHandle handle = {};
    };
    Inbox take(std::size_t bytes);
    void give_back(const Inbox& inbox);
    /// Opens each handle once, however often it is requested.
    unsigned char* open(int rank, const PagesHandle& handle);

    /// Allows the next message from `sender` to write into this rank's memory.
    void allow(int sender, Stream stream);
    /// A message to `receiver`: copies into its memory wait until it allows them; tell() announces
    /// each piece that has been copied, in ascending order, 0 to most_pieces - 1.
    static constexpr int most_pieces = 8;
    void begin_message(int receiver, Stream stream);
    void tell(int receiver, int piece, Stream stream);
    /// Makes later work on the stream wait for a piece of the last message allowed.
    void wait_for(int sender, int piece, Stream stream);
    /// Ends all waits of this rank's streams, whatever the other ranks do.
    void abandon() noexcept;

  private:
    enum Flag { room, arrived };
    unsigned char* flag(int owner, int writer, Flag which) const;
    void write(int owner, Flag which, std::uint32_t number, Stream stream);
    void wait(int writer, Flag which, std::uint32_t number, Stream stream);
    void try_out(Context& ctx);
    void await(DeviceEvent event);

    int device_;
    int rank_;
    int ranks_;
    PeerWindows windows_;
    /// Functions of the CUDA driver.
    void* write_value_ = nullptr;
    void* wait_value_ = nullptr;
    std::vector<std::uint32_t> sent_, allowed_;  // numbers of the last messages, by rank
    std::vector<Inbox> idle_;
    std::map<std::pair<int, PagesHandle>, unsigned char*> opened_;
};

/// The rows that a rank receives from, or sends to, another rank, in pieces.
struct PeerRows {
    int rank;
    std::int64_t first;  // in the receiver's halo, or in the sender's packed rows
    std::int64_t rows;
    /// The number of rows that have arrived with each piece and all earlier pieces.
    std::array<std::int64_t, PeerCopies::most_pieces> end = {};

    /// The last piece with the same end as this one; one announcement serves all of these.
    int last_like(int piece) const {
        while (piece + 1 < PeerCopies::most_pieces &&
               end[static_cast<std::size_t>(piece) + 1] == end[static_cast<std::size_t>(piece)]) {
            ++piece;
        }
        return piece;
    }
};

/// The halo of one matrix.
class PeerHalo {
  public:
    /// Collective. Both lists are sorted by rank; only the receiver must know the pieces.
    /// `own_rows`: how many more rows data() has room for, which this rank may write itself.
    PeerHalo(Context& ctx, std::shared_ptr<PeerCopies> copies, std::vector<PeerRows> receives,
             std::vector<PeerRows> sends, std::int64_t own_rows = 0);
    PeerHalo(const PeerHalo&) = delete;
    PeerHalo& operator=(const PeerHalo&) = delete;
    ~PeerHalo();

    /// Allocates room for rows of `row_bytes` bytes. Collective if the rows are larger than ever
    /// before.
    void reserve(Context& ctx, std::size_t row_bytes);
    /// Starts messages of such rows on a stream besides the Context's, after the work enqueued so
    /// far. The caller must then send all rows by send(), and call arrive() and end().
    void begin(Context& ctx, Stream side, std::size_t row_bytes);
    const std::vector<PeerRows>& sends() const { return sends_; }
    /// The order in which to send, as indices into sends(). The ranks then send to different
    /// receivers at the same time.
    const std::vector<std::size_t>& order() const { return order_; }
    /// Copies rows `first` and up of the i-th message, which are at `from` in stream order. The
    /// rows of a message must come in order; one call must not cross a piece boundary.
    void send(Context& ctx, std::size_t i, std::int64_t first, std::int64_t rows, const void* from);
    /// Makes the stream wait until this piece of every message to this rank has arrived; must be
    /// called for the pieces in order.
    void arrive(Context& ctx, int piece);
    /// Makes the stream wait until this rank's messages are sent.
    void end(Context& ctx);
    void* data() const { return inbox_.data; }

  private:
    std::shared_ptr<PeerCopies> copies_;
    std::vector<PeerRows> receives_, sends_;
    std::int64_t inbox_rows_;
    std::vector<std::size_t> order_;        // of the sends
    std::vector<std::int64_t> target_row_;  // of each send
    std::vector<unsigned char*> target_;
    std::size_t reserved_ = 0;  // bytes per row
    PeerCopies::Inbox inbox_;
    Stream side_ = nullptr;
    std::size_t row_bytes_ = 0;
    DeviceEvent ready_ = nullptr;  // data to send are ready, received data have been read
    DeviceEvent gone_ = nullptr;
};

}  // namespace quiver::cuda
