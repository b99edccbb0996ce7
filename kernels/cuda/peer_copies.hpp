// SPDX-License-Identifier: BSD-3-Clause
// Halos between the GPUs of one node, copied by their copy engines straight into the memory of the
// rank that needs them.
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

/// What the halos of a Context share: flags that ranks write into each other's windows, and memory
/// that others have opened.
///
/// Message number t from s to r: r's stream writes t into the flag `room` of s, when what came
/// before it has been read; s's waits for that, copies, and counts up the flag `arrived` of r,
/// whose stream waits for it, piece by piece. No multiprocessor takes part, and no host.
class PeerCopies {
  public:
    /// Collective; tries a message in the end. Throws an Error on all ranks where it cannot be.
    explicit PeerCopies(Context& ctx);
    PeerCopies(const PeerCopies&) = delete;
    PeerCopies& operator=(const PeerCopies&) = delete;
    ~PeerCopies();

    /// Pages that this rank alone holds now, and a handle by which others open them.
    struct Inbox {
        unsigned char* data = nullptr;
        std::size_t bytes = 0;
        PagesHandle handle = {};
    };
    Inbox take(std::size_t bytes);
    void give_back(const Inbox& inbox);
    /// Opened once, however often it is asked for.
    unsigned char* open(int rank, const PagesHandle& handle);

    /// This rank's memory may be written to by the next message from `sender`.
    void allow(int sender, Stream stream);
    /// A message to `receiver`: copies into its memory wait until it allows them, and it is told of
    /// pieces that are there, in ascending order, 0 to most_pieces - 1.
    static constexpr int most_pieces = 8;
    void begin_message(int receiver, Stream stream);
    void tell(int receiver, int piece, Stream stream);
    /// Makes later work on the stream wait for a piece of the last message allowed.
    void wait_for(int sender, int piece, Stream stream);
    /// Waits end, whatever other ranks do or do not.
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
    /// The driver's functions.
    void* write_value_ = nullptr;
    void* wait_value_ = nullptr;
    std::vector<std::uint32_t> sent_, allowed_;  // numbers of the last messages, by rank
    std::vector<Inbox> idle_;
    std::map<std::pair<int, PagesHandle>, unsigned char*> opened_;
};

/// Rows that a rank gets from, or sends to, another one, in pieces.
struct PeerRows {
    int rank;
    std::int64_t first;  // in the halo of who receives, in the packed rows of who sends
    std::int64_t rows;
    /// How many of them have come with each piece and those before it.
    std::array<std::int64_t, PeerCopies::most_pieces> end = {};

    /// The last of the pieces that end where this one does, so that empty ones need no word.
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
    /// Collective. Both lists by rank, ascending; only who receives needs to know the pieces.
    PeerHalo(Context& ctx, std::shared_ptr<PeerCopies> copies, std::vector<PeerRows> receives,
             std::vector<PeerRows> sends);
    PeerHalo(const PeerHalo&) = delete;
    PeerHalo& operator=(const PeerHalo&) = delete;
    ~PeerHalo();

    /// Room for rows of so many bytes. Collective where these are more than ever before.
    void reserve(Context& ctx, std::size_t row_bytes);
    /// Starts messages of such rows, on a stream beside the Context's and behind what that has to
    /// do now. All rows follow by send(), and arrive() and end().
    void begin(Context& ctx, Stream side, std::size_t row_bytes);
    const std::vector<PeerRows>& sends() const { return sends_; }
    /// The order in which the ranks' messages do not meet, as places in that list.
    const std::vector<std::size_t>& order() const { return order_; }
    /// Copies rows `first` and up of the i-th message, which lie at `from` when the Context's
    /// stream gets there. Rows of a message come one after the other, no two pieces at once.
    void send(Context& ctx, std::size_t i, std::int64_t first, std::int64_t rows, const void* from);
    /// The stream waits for a piece of all messages to this rank; pieces one after the other.
    void arrive(Context& ctx, int piece);
    /// And for what goes.
    void end(Context& ctx);
    void* data() const { return inbox_.data; }

  private:
    std::shared_ptr<PeerCopies> copies_;
    std::vector<PeerRows> receives_, sends_;
    std::int64_t receive_rows_ = 0;
    std::vector<std::size_t> order_;        // of the sends
    std::vector<std::int64_t> target_row_;  // of each send
    std::vector<unsigned char*> target_;
    std::size_t reserved_ = 0;  // bytes of a row
    PeerCopies::Inbox inbox_;
    Stream side_ = nullptr;
    std::size_t row_bytes_ = 0;
    DeviceEvent ready_ = nullptr;  // what is sent lies there, what was received has been read
    DeviceEvent gone_ = nullptr;
};

}  // namespace quiver::cuda
