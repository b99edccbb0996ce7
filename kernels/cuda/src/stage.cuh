// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows of a block into shared memory, several stages ahead of the computing threads: by
// the threads themselves, or in bulk by the copy engine on command of the first warp of a team.
#pragma once

#include "scalar.cuh"

namespace quiver {

inline unsigned shared_address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

/// Synchronises the threads of a team: TEAM neighbouring threads of the block.
template <int TEAM>
void sync_team(int team) {
    if constexpr (TEAM == 32) {
        __syncwarp();
    } else {
        asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(TEAM) : "memory");
    }
}

/// Starts an asynchronous copy of BYTES bytes (4, 8 or 16; both addresses are multiples of BYTES);
/// writes zeros if !inside.
template <int BYTES>
void copy_async(unsigned shared, const void* from, bool inside) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from),
                 "n"(BYTES), "r"(inside ? BYTES : 0)
                 : "memory");
}

/// Starts an asynchronous copy of the first `bytes` of 16 bytes; writes zeros after them.
inline void copy_async_part(unsigned shared, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(bytes)
                 : "memory");
}

/// The rows of a block that a thread block processes: first, first + step, ..., which all start
/// `head` elements behind a multiple of 16 bytes. Their copies can therefore start at this multiple
/// and move 16 bytes at a time, whatever the stride. The thread blocks of a launch, at least
/// `most_steps`, take the classes in turn.
struct RowClass {
    static constexpr int most_steps = 4;

    int step = 1;
    int first = 0;
    int head = 0;

    RowClass() = default;
    /// Requires that the address of `block` is a multiple of sizeof(T), and sizeof(T) of 4.
    template <class T>
    static RowClass of(const T* block, std::int64_t ld) {
        RowClass rows;
        const int gap = static_cast<int>(ld * static_cast<std::int64_t>(sizeof(T)) % 16);
        rows.step = gap == 0 ? 1 : gap == 8 ? 2 : 4;
        rows.first = static_cast<int>(blockIdx.x) % rows.step;
        const auto start = reinterpret_cast<std::uint64_t>(block) + rows.first * gap;
        rows.head = static_cast<int>(start % 16 / sizeof(T));
        return rows;
    }
    /// The number of these rows among all `rows`.
    std::int64_t count(std::int64_t rows) const { return (rows - first + step - 1) / step; }
    /// The number of this thread block among those of its class, and the number of those.
    std::int64_t block() const { return blockIdx.x / static_cast<unsigned>(step); }
    std::int64_t blocks() const {
        return (gridDim.x - static_cast<unsigned>(first) + static_cast<unsigned>(step) - 1) /
               static_cast<unsigned>(step);
    }
};

/// Closes a group of copies.
inline void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most PENDING of this thread's newest groups are in flight.
template <int PENDING>
void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/// A barrier that counts arrivals and the bytes of bulk copies; the parity alternates with the
/// phases.
class Barrier {
  public:
    explicit Barrier(std::uint64_t* shared) : address_(shared_address(shared)) {}
    void init(int arrivals) const {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_), "r"(arrivals)
                     : "memory");
    }
    void arrive() const {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_) : "memory");
    }
    void arrive_expecting(unsigned bytes) const {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_),
                     "r"(bytes)
                     : "memory");
    }
    void wait(unsigned parity) const {
        asm volatile(
            "{\n.reg .pred done;\nagain:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
            "@!done bra again;\n}" ::"r"(address_),
            "r"(parity)
            : "memory");
    }
    /// Starts a bulk copy of `bytes` bytes (a multiple of 16, like both addresses), which this
    /// barrier counts.
    void copy(unsigned shared, const void* from, unsigned bytes) const {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
            "[%3];" ::"r"(shared),
            "l"(from), "r"(bytes), "r"(address_)
            : "memory");
    }

  private:
    unsigned address_;
};

/// Orders this thread's stores to shared memory before later bulk copies.
inline void fence_bulk_copies() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Copies ROWS rows of COLUMNS elements from `block` (row stride `ld`) to shared memory (row stride
/// PITCH) by all THREADS threads, BYTES at a time: asynchronously for 4, 8 or 16; synchronously for
/// 2 (any address, any width). Elements beyond the first `rows` rows and `columns` columns (a
/// multiple of BYTES, or all) become zeros.
template <class T, int THREADS, int ROWS, int COLUMNS, int PITCH, int BYTES>
void copy_rows(T* shared, const T* block, std::int64_t ld, std::int64_t rows,
               std::int64_t columns = COLUMNS) {
    constexpr int unit = BYTES / static_cast<int>(sizeof(T));
    constexpr int row_units = COLUMNS / unit;
    static_assert(unit >= 1 && COLUMNS % unit == 0 && PITCH % unit == 0);
#pragma unroll 4
    for (int u = threadIdx.x; u < ROWS * row_units; u += THREADS) {
        const int row = u / row_units;
        const int column = u % row_units * unit;
        const bool inside = row < rows && column < columns;
        const T* const source = inside ? block + row * ld + column : block;
        T* const target = shared + row * PITCH + column;
        if constexpr (BYTES == 2) {
            *target = inside ? *source : T{};
        } else {
            copy_async<BYTES>(shared_address(target), source, inside);
        }
    }
}

/// Copies ROWS rows of a block with COLUMNS columns to shared memory (row stride PITCH), BYTES at a
/// time, by a team of TEAM threads. CONTIGUOUS: ld = COLUMNS.
template <class T, int TEAM, int ROWS, int COLUMNS, int PITCH, bool EXACT, bool CONTIGUOUS,
          int BYTES>
class RowCopy {
    static constexpr int size = sizeof(T);
    static constexpr int row_units = COLUMNS * size / BYTES;
    static constexpr int units = ROWS * row_units;
    static constexpr int count = ceil_div(units, TEAM);
    static_assert(BYTES <= 16 && (COLUMNS * size) % BYTES == 0 && (PITCH * size) % BYTES == 0);

  public:
    RowCopy(int thread, const T*, std::int64_t ld, int, int = 0)
        : thread_(thread), row_bytes_(ld * size) {
#pragma unroll
        for (int j = 0; j < count; ++j) {
            const int unit = thread + j * TEAM;
            to_[j] = unit / row_units * (PITCH * size) + unit % row_units * BYTES;
        }
    }

    /// Starts the copies of the block's rows from `first` on; rows beyond `rows` become zeros.
    void start(T* shared, const T* block, std::int64_t first, std::int64_t rows) const {
        const unsigned to = shared_address(shared);
        const char* const from = reinterpret_cast<const char*>(block) + first * row_bytes_;
        if (first + ROWS <= rows) {
#pragma unroll
            for (int j = 0; j < count; ++j) {
                if (exists(j)) {
                    copy_async<BYTES>(to + to_[j], from + offset(j), true);
                }
            }
        } else {
            const int left = static_cast<int>(rows - first);
#pragma unroll
            for (int j = 0; j < count; ++j) {
                if (exists(j)) {
                    const bool inside = (thread_ + j * TEAM) / row_units < left;
                    copy_async<BYTES>(to + to_[j], inside ? from + offset(j) : from, inside);
                }
            }
        }
    }

  private:
    bool exists(int j) const {
        const int unit = thread_ + j * TEAM;
        return units % TEAM == 0 || j + 1 < count || unit < units;
    }
    std::int64_t offset(int j) const {
        const int unit = thread_ + j * TEAM;
        return CONTIGUOUS ? unit * BYTES : unit / row_units * row_bytes_ + unit % row_units * BYTES;
    }

    const int thread_;
    const std::int64_t row_bytes_;
    unsigned to_[count];
};

/// Rows without gaps on both sides, of any width: all rows of a stage are one run of bytes, 16 of
/// which are copied at a time.
template <class T, int TEAM, int ROWS, int COLUMNS, int PITCH>
requires(PITCH == COLUMNS) class RowCopy<T, TEAM, ROWS, COLUMNS, PITCH, true, true, 16> {
    static constexpr int row_bytes = COLUMNS * sizeof(T);
    static constexpr int units = ROWS * row_bytes / 16;
    static constexpr int count = ceil_div(units, TEAM);
    static_assert(ROWS * row_bytes % 16 == 0);

  public:
    RowCopy(int thread, const T*, std::int64_t, int, int = 0) : thread_(thread) {}

    /// Starts the copies of the block's rows from `first`, a multiple of ROWS, on; rows beyond
    /// `rows` become zeros.
    void start(T* shared, const T* block, std::int64_t first, std::int64_t rows) const {
        const unsigned to = shared_address(shared) + thread_ * 16;
        const char* const from =
            reinterpret_cast<const char*>(block) + first * row_bytes + thread_ * 16;
        if (first + ROWS <= rows) {
#pragma unroll
            for (int j = 0; j < count; ++j) {
                if (exists(j)) {
                    copy_async<16>(to + j * (TEAM * 16), from + j * (TEAM * 16), true);
                }
            }
        } else {
            const int left = static_cast<int>(rows - first) * row_bytes - thread_ * 16;
#pragma unroll
            for (int j = 0; j < count; ++j) {
                if (exists(j)) {
                    const int bytes = minimum(left - j * (TEAM * 16), 16);
                    copy_async_part(
                        to + j * (TEAM * 16),
                        bytes > 0 ? from + j * (TEAM * 16) : reinterpret_cast<const char*>(block),
                        bytes > 0 ? bytes : 0);
                }
            }
        }
    }

  private:
    bool exists(int j) const {
        return units % TEAM == 0 || j + 1 < count || thread_ + j * TEAM < units;
    }

    const int thread_;
};

/// EXACT = false: the number of columns is a run-time argument, so that one kernel serves all
/// widths up to its own with any layout. It copies 16 bytes at a time if both sides allow it, else
/// BYTES.
template <class T, int TEAM, int ROWS, int COLUMNS, int PITCH, bool CONTIGUOUS, int BYTES>
class RowCopy<T, TEAM, ROWS, COLUMNS, PITCH, false, CONTIGUOUS, BYTES> {
    static constexpr int size = sizeof(T);
    static constexpr bool may_widen = PITCH * size % 16 == 0;
    static_assert(BYTES <= 16 && (PITCH * size) % BYTES == 0);

  public:
    /// `before`: columns of the shared row that precede the copied ones.
    RowCopy(int thread, const T* block, std::int64_t ld, int columns, int before = 0)
        : row_bytes_(ld * size),
          wide_(may_widen &&
                (reinterpret_cast<std::uint64_t>(block) | static_cast<std::uint64_t>(row_bytes_) |
                 static_cast<std::uint64_t>((columns | before) * size)) %
                        16 ==
                    0) {
        const int bytes = wide_ ? 16 : BYTES;
        const int row_units = columns * size / bytes;
        row_ = thread / row_units;
        to_ = row_ * (PITCH * size) + thread % row_units * bytes;
        from_ = row_ * row_bytes_ + thread % row_units * bytes;
        last_ = row_units * bytes;
        column_ = thread % row_units * bytes;
        step_rows_ = TEAM / row_units;
        step_column_ = TEAM % row_units * bytes;
    }

    /// Starts the copies of the block's rows from `first` on; rows beyond `rows` become zeros.
    void start(T* shared, const T* block, std::int64_t first, std::int64_t rows) const {
        const char* const from = reinterpret_cast<const char*>(block) + first * row_bytes_;
        const int left = static_cast<int>(minimum<std::int64_t>(ROWS, rows - first));
        if (may_widen && wide_) {
            copy<16>(shared_address(shared), from, left);
        } else {
            copy<BYTES>(shared_address(shared), from, left);
        }
    }

  private:
    template <int PIECE>
    void copy(unsigned to, const char* from, int left) const {
        const char* source = from + from_;
        const std::int64_t step = step_rows_ * row_bytes_ + step_column_;
        unsigned target = to + to_;
        int column = column_;
#pragma unroll 4
        for (int row = row_; row < ROWS;) {
            const bool inside = row < left;
            copy_async<PIECE>(target, inside ? source : from, inside);
            source += step;
            target += step_rows_ * (PITCH * size) + step_column_;
            column += step_column_;
            row += step_rows_;
            if (column >= last_) {
                source += row_bytes_ - last_;
                target += PITCH * size - last_;
                column -= last_;
                ++row;
            }
        }
    }

    const std::int64_t row_bytes_;
    const bool wide_;
    /// This thread's first piece: its row, and its position on both sides.
    int row_;
    unsigned to_;
    std::int64_t from_;
    /// Bytes within the row: position of the piece, end of the row, and the advance per step
    /// besides whole rows.
    int column_, last_;
    int step_rows_, step_column_;
};

/// Copies ROWS rows to shared memory by a team, element by element: for 2-byte elements at any
/// address. The parameters are those of RowCopy.
template <class T, int TEAM, int ROWS, int COLUMNS, int PITCH>
class ElementCopy {
  public:
    ElementCopy(int thread, const T*, std::int64_t ld, int) : thread_(thread), ld_(ld) {}

    /// As RowCopy::start, but synchronous.
    void start(T* shared, const T* block, std::int64_t first, std::int64_t rows) const {
#pragma unroll 4
        for (int e = thread_; e < ROWS * COLUMNS; e += TEAM) {
            const int row = e / COLUMNS;
            const int column = e % COLUMNS;
            shared[row * PITCH + column] =
                first + row < rows ? block[(first + row) * ld_ + column] : T{};
        }
    }

  private:
    const int thread_;
    const std::int64_t ld_;
};

/// Copies rows in bulk, issued by the lanes of one warp: row by row, or all rows at once if they
/// are contiguous on both sides. Addresses and piece sizes are multiples of 16 bytes; the lanes
/// themselves copy the elements that remain after the last piece.
template <class T, int ROWS, int COLUMNS, int PITCH, bool CONTIGUOUS>
class BulkCopy {
    static constexpr int size = sizeof(T);
    static constexpr bool whole = CONTIGUOUS && PITCH == COLUMNS;

  public:
    BulkCopy(const T* block, std::int64_t ld, int columns, std::int64_t rows)
        : block_(block), ld_(ld), columns_(columns), rows_(rows) {}

    /// Bytes of the copies that start() issues and the barrier waits for.
    int bytes(std::int64_t first) const { return present(first) * columns_ * size / 16 * 16; }
    /// In the last rows: writes zeros beyond the block, and copies the elements that belong to no
    /// piece.
    void fill_up(T* shared, std::int64_t first) const {
        if (first + ROWS <= rows_) {
            return;
        }
        const int rows = present(first);
        for (int e = rows * PITCH + threadIdx.x % 32; e < ROWS * PITCH; e += 32) {
            shared[e] = T{};
        }
        if (whole) {
            const int begin = bytes(first) / size;
            const int e = begin + threadIdx.x % 32;
            if (e < rows * COLUMNS) {
                shared[e] = block_[first * ld_ + e];
            }
        }
    }
    void start(const Barrier& barrier, T* shared, std::int64_t first) const {
        const int lane = threadIdx.x % 32;
        const T* const from = block_ + first * ld_;
        const unsigned to = shared_address(shared);
        if (whole) {
            if (lane == 0) {
                barrier.copy(to, from, bytes(first));
            }
        } else {
            for (int row = lane; row < present(first); row += 32) {
                barrier.copy(to + row * (PITCH * size), from + row * ld_, columns_ * size);
            }
        }
    }

  private:
    int present(std::int64_t first) const {
        return static_cast<int>(minimum<std::int64_t>(ROWS, rows_ - first));
    }
    const T* const block_;
    const std::int64_t ld_;
    const int columns_;
    const std::int64_t rows_;
};

/// The chunks of rows that a team processes: first, first + stride, ... below end.
struct Chunks {
    std::int64_t first, end, stride;
};

/// Calls read(stage) and then finish(chunk) for each chunk, by all threads of a team. The threads
/// call start(stage, chunk) STAGES - 1 chunks earlier, and prepare() while the first copies are in
/// flight. With one stage, they wait for the copies of each chunk at once.
template <int STAGES, int TEAM, class Start, class Prepare, class Read, class Finish>
void for_copied_chunks(int team, Chunks chunks, Start start, Prepare prepare, Read read,
                       Finish finish) {
    if constexpr (STAGES == 1) {
        prepare();
        for (std::int64_t chunk = chunks.first; chunk < chunks.end; chunk += chunks.stride) {
            sync_team<TEAM>(team);  // no thread uses the former chunk
            start(0, chunk);
            commit_copies();
            wait_for_copies<0>();
            sync_team<TEAM>(team);
            read(0);
            finish(chunk);
        }
        return;
    }
    constexpr int pending = STAGES > 1 ? STAGES - 2 : 0;
    std::int64_t ahead = chunks.first;
    const auto start_next = [&](int stage) {
        if (ahead < chunks.end) {
            start(stage, ahead);
        }
        commit_copies();
        ahead += chunks.stride;
    };
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        start_next(stage);
    }
    prepare();
    int stage = 0;
    for (std::int64_t chunk = chunks.first; chunk < chunks.end; chunk += chunks.stride) {
        wait_for_copies<pending>();
        // The copies of this stage have arrived for all threads, and no thread uses the stage that
        // is filled next.
        sync_team<TEAM>(team);
        start_next(stage == 0 ? STAGES - 1 : stage - 1);
        read(stage);
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        finish(chunk);
    }
    wait_for_copies<0>();
}

/// As for_copied_chunks, but the first warp of the team calls start(full, stage, chunk), which
/// issues copies that arrive at the barrier `full`. `barriers`: 2 STAGES for this team, in shared
/// memory; all threads of the block must call this.
template <int STAGES, int TEAM, class Start, class Prepare, class Read, class Finish>
void for_bulk_chunks(std::uint64_t* barriers, Chunks chunks, Start start, Prepare prepare,
                     Read read, Finish finish) {
    const int thread = threadIdx.x % TEAM;
    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            Barrier(barriers + stage).init(1);
            Barrier(barriers + STAGES + stage).init(TEAM / 32);
        }
    }
    __syncthreads();
    std::int64_t ahead = chunks.first;
    if (thread < 32) {
        for (int stage = 0; stage < STAGES - 1 && ahead < chunks.end; ++stage) {
            start(Barrier(barriers + stage), stage, ahead);
            ahead += chunks.stride;
        }
    }
    prepare();
    int stage = 0;
    unsigned parity = 0;
    for (std::int64_t chunk = chunks.first; chunk < chunks.end; chunk += chunks.stride) {
        if (thread < 32 && ahead < chunks.end) {
            const int next = stage == 0 ? STAGES - 1 : stage - 1;
            Barrier(barriers + STAGES + next).wait(stage == 0 ? parity ^ 1 : parity);
            start(Barrier(barriers + next), next, ahead);
            ahead += chunks.stride;
        }
        Barrier(barriers + stage).wait(parity);
        read(stage);
        __syncwarp();
        if (thread % 32 == 0) {
            Barrier(barriers + STAGES + stage).arrive();
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        parity ^= stage == 0;
        finish(chunk);
    }
}

}  // namespace quiver
