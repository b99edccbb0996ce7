// SPDX-License-Identifier: BSD-3-Clause
// One step of Lloyd's iteration in one pass over the points, with the products of points and
// centres on the tensor cores, in double precision for all types. Each warp works alone: it copies
// 32 rows to shared memory, finds their centres, and adds the rows to sums in shared memory. The
// order of all additions depends on the shape of the launch and on the labels only.
#pragma once

#include "convert.cuh"
#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/operations/kmeans_layout.hpp"
#include "kernels/operations/kmeans_step.hpp"
#include "mma.cuh"
#include "reduce.cuh"
#include "stage.cuh"

namespace quiver {

template <class In, class T>
constexpr KmeansProductsLayout kmeans_layout(KmeansConfig cfg) {
    return KmeansProductsLayout(cfg.d, cfg.tiles, cfg.pitch, cfg.warps, cfg.team, cfg.stages,
                                sizeof(In), sizeof(T));
}

/// Where a lane's elements of the fragments of mma() are. A sum may take the columns in any order:
/// a lane has columns 8 q + 2 t and 8 q + 2 t + 1 in steps 2 q and 2 q + 1, so that it loads two
/// neighbours at once. An odd last step has columns in the order of mma().
template <int D>
struct FragmentColumns {
    static constexpr int steps = ceil_div(D, 4);

    /// Calls use(step, value) for the elements of a row of U; t is the lane's number in its quad.
    template <class U, class Use>
    static void for_elements(const U* row, int t, Use use) {
#pragma unroll
        for (int q = 0; q < steps / 2; ++q) {
            const auto pair = *reinterpret_cast<const Pack<U, 2>*>(row + 8 * q + 2 * t);
            use(2 * q, pair.value[0]);
            use(2 * q + 1, pair.value[1]);
        }
        if constexpr (steps % 2 == 1) {
            use(steps - 1, row[4 * (steps - 1) + t]);
        }
    }
};

/// The centres in shared memory: -c with `pitch` numbers a row, and ||c||^2 / 2. Rows that fill up
/// the last tile of eight are zero and have an infinite ||c||^2 / 2.
template <class In, class T, KmeansConfig CFG>
struct TensorCentres {
    static constexpr KmeansProductsLayout layout = kmeans_layout<In, T>(CFG);
    static constexpr int count = 8 * CFG.tiles;

    const double* negative;
    const double* half_squares;

    /// All threads of the block must call this; other threads' values are there after a barrier.
    static void prepare(const KmeansStepArgs<In, T>& args, double* negative, double* half_squares) {
        const int thread = threadIdx.x;
        for (int e = thread; e < count * layout.centre_pitch; e += 32 * CFG.warps) {
            const int j = e / layout.centre_pitch;
            const int p = e % layout.centre_pitch;
            negative[e] =
                j < args.k && p < CFG.d ? -static_cast<double>(args.centres[j * CFG.d + p]) : 0.0;
        }
        for (int j = thread; j < count; j += 32 * CFG.warps) {
            double squares = 0;
            for (int p = 0; p < CFG.d && j < args.k; ++p) {
                const double value = static_cast<double>(args.centres[j * CFG.d + p]);
                squares = multiply_add(value, value, squares);
            }
            half_squares[j] = j < args.k ? squares / 2 : __longlong_as_double(0x7ff0000000000000);
        }
    }
    const double* row(int j) const { return negative + j * layout.centre_pitch; }
};

/// Lets the groups of warps of a block use the tensor cores in turns: while one group multiplies,
/// the others load and add. Each group calls wait() and release() once for every tile of the block.
/// With one group there are no turns.
template <int WARPS, int GROUPS>
class Turns {
    static constexpr int width = 32 * WARPS / GROUPS;
    /// The barriers of a block that teams (sync_team) do not use.
    static constexpr int first_barrier = 15;

  public:
    /// Group 0 has the first turn.
    explicit Turns(int warp) : group_(warp / (WARPS / GROUPS)) {
        if (GROUPS > 1 && group_ == GROUPS - 1) {
            arrive(0);
        }
    }
    void wait() const {
        if constexpr (GROUPS > 1) {
            asm volatile("bar.sync %0, %1;" ::"r"(first_barrier - group_), "n"(2 * width)
                         : "memory");
        }
    }
    /// last: the block has no more tiles, so that nobody waits for a further turn of group 0.
    void release(bool last) const {
        if (GROUPS > 1 && !(last && group_ == GROUPS - 1)) {
            arrive(group_ == GROUPS - 1 ? 0 : group_ + 1);
        }
    }

  private:
    static void arrive(int group) {
        asm volatile("bar.arrive %0, %1;" ::"r"(first_barrier - group), "n"(2 * width) : "memory");
    }
    const int group_;
};

/// The points of a warp in registers, as fragments of mma(), and the search for their centres. A
/// lane has elements of rows 8 r + g for r = 0 .. 3, with g = lane / 4; lane (g, t) receives the
/// results of row 8 t + g.
template <class In, class T, KmeansConfig CFG>
class WarpPoints {
    static constexpr int steps = FragmentColumns<CFG.d>::steps;
    using Columns = FragmentColumns<CFG.d>;
    using Centres = TensorCentres<In, T, CFG>;
    /// Steps of one product, and tiles of centres between comparisons; more tiles would need more
    /// registers than a thread of so many has.
    static constexpr int depth = steps >= 4 ? 4 : steps >= 2 ? 2 : 1;
    static constexpr int group = CFG.d > 48 || (CFG.d > 16 && CFG.warps > 8) ? 1 : 2;

  public:
    int label = 0;
    double distance = 0;

    /// `rows`: the rows in shared memory; `origin`: in shared memory, zero beyond d.
    WarpPoints(const In* rows, const T* origin) : g_(threadIdx.x % 32 / 4), t_(threadIdx.x % 4) {
        T shift[steps];
        Columns::for_elements(origin, t_, [&](int s, T value) { shift[s] = value; });
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            Columns::for_elements(
                rows + (8 * r + g_) * Centres::layout.pitch, t_, [&](int s, In value) {
                    x_[r][s] = static_cast<double>(Converter<T>::from(value) - shift[s]);
                });
        }
    }

    /// The label of the least ||c||^2 / 2 - x c, which is the centre at the least distance, and the
    /// distance.
    template <class Turn>
    void find(const Centres& centres, const Turn& turns, bool last) {
        turns.wait();
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            best_[r] = __longlong_as_double(0x7ff0000000000000);
            found_[r] = 0;
        }
#pragma unroll(CFG.unroll)
        for (int n = 0; n + group <= CFG.tiles; n += group) {
            compare<group>(centres, n);
        }
        if constexpr (CFG.tiles % group > 0) {
            compare<CFG.tiles % group>(centres, CFG.tiles / group * group);
        }
        turns.release(last);
        reduce();
        measure(centres);
    }

  private:
    /// Adds the products of STEPS steps; the first ones are added to `start`.
    template <int STEPS, int COUNT>
    void multiply(double (&sum)[COUNT][2][4], const double (&start)[COUNT][4],
                  const double (&b)[COUNT][steps], int first) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            double right[STEPS];
#pragma unroll
            for (int s = 0; s < STEPS; ++s) {
                right[s] = b[i][first + s];
            }
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                double left[2 * STEPS];
#pragma unroll
                for (int e = 0; e < 2 * STEPS; ++e) {
                    left[e] = x_[2 * m + e % 2][first + e / 2];
                }
                if (first == 0) {
                    mma<STEPS>(sum[i][m], left, right, start[i]);
                } else {
                    mma<STEPS>(sum[i][m], left, right);
                }
            }
        }
    }

    /// Compares all rows with the centres of COUNT tiles.
    template <int COUNT>
    void compare(const Centres& centres, int n) {
        double start[COUNT][4];
        double sum[COUNT][2][4];
        double b[COUNT][steps];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const auto half = *reinterpret_cast<const Pack<double, 2>*>(centres.half_squares +
                                                                        8 * (n + i) + 2 * t_);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                start[i][e] = half.value[e % 2];
            }
            Columns::for_elements(centres.row(8 * (n + i) + g_), t_,
                                  [&](int s, double value) { b[i][s] = value; });
        }
#pragma unroll
        for (int s = 0; s + depth <= steps; s += depth) {
            multiply<depth>(sum, start, b, s);
        }
#pragma unroll
        for (int s = steps / depth * depth; s < steps; ++s) {
            multiply<1>(sum, start, b, s);
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
#pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const double value = sum[i][r / 2][2 * (r % 2) + e];
                    if (value < best_[r]) {
                        best_[r] = value;
                        found_[r] = 8 * (n + i) + e;
                    }
                }
            }
        }
    }

    /// Keeps the better of this lane's result for one row and the result of lane ^ mask.
    static void keep_better(double& best, int& found, double given, int given_label, int mask) {
        const double other = shuffle_xor(given, mask);
        const int other_label = shuffle_xor(given_label, mask);
        const bool better = (other < best) | ((other == best) & (other_label < found));
        best = choose(better, other, best);
        found = choose(better, other_label, found);
    }

    /// Lanes of a quad exchange their results, until each has the result of its row.
    void reduce() {
        const bool upper = t_ & 2;
        const bool odd = t_ & 1;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            found_[r] += 2 * t_;
        }
        double best[2];
        int found[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            best[r] = choose(upper, best_[2 + r], best_[r]);
            found[r] = choose(upper, found_[2 + r], found_[r]);
            keep_better(best[r], found[r], choose(upper, best_[r], best_[2 + r]),
                        choose(upper, found_[r], found_[2 + r]), 2);
        }
        double own = choose(odd, best[1], best[0]);
        label = choose(odd, found[1], found[0]);
        keep_better(own, label, choose(odd, best[0], best[1]), choose(odd, found[0], found[1]), 1);
    }

    /// ||x - c||^2 for the row's centre c.
    void measure(const Centres& centres) {
        double sum[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int nearest = shuffle(label, r, 4);
            sum[r] = 0;
            Columns::for_elements(centres.row(nearest), t_, [&](int s, double value) {
                const double difference = x_[r][s] + value;
                sum[r] = multiply_add(difference, difference, sum[r]);
            });
        }
        const bool upper = t_ & 2;
        const bool odd = t_ & 1;
        double part[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            part[r] = choose(upper, sum[2 + r], sum[r]) +
                      shuffle_xor(choose(upper, sum[r], sum[2 + r]), 2);
        }
        distance = choose(odd, part[1], part[0]) + shuffle_xor(choose(odd, part[0], part[1]), 1);
    }

    const int g_;
    const int t_;
    double x_[4][steps];
    double best_[4];
    int found_[4];
};

/// The numbers of a warp's points and the sums of their distances, for each centre and, as a last
/// one, for rows that do not exist.
template <class T>
struct WarpTotals {
    T* distances;
    int* numbers;

    /// Adds one point of each lane. Lanes with equal labels form pairs of neighbours, then pairs of
    /// pairs and so on; the first of them adds for all.
    void add(int label, T distance) const {
        constexpr unsigned all = 0xffffffffu;
        const int lane = threadIdx.x % 32;
        const unsigned equal = __match_any_sync(all, label);
        const unsigned before = (1U << lane) - 1;
        int rank = __popc(equal & before);
        const bool first = rank == 0;
        unsigned after = equal & ~before & ~(1U << lane);
        while (__any_sync(all, after != 0)) {
            const int next = after != 0 ? __ffs(static_cast<int>(after)) - 1 : lane;
            const T given = shuffle(distance, next);
            if (after != 0) {
                distance = distance + given;
            }
            after &= ~__ballot_sync(all, rank % 2 == 1);
            rank /= 2;
        }
        if (first) {
            distances[label] = distances[label] + distance;
            numbers[label] += __popc(equal);
        }
        __syncwarp();
    }
};

/// Adds a warp's 32 rows to the sums of their centres: 16 neighbouring lanes, one for each column,
/// add row after row, the lower half of the warp rows 0 .. 15, the upper half the others.
template <class In, class T, KmeansConfig CFG>
class WarpSums {
    static constexpr KmeansProductsLayout layout = kmeans_layout<In, T>(CFG);
    static constexpr int batch = 8;

  public:
    explicit WarpSums(T* sums) : sums_(sums) {}

    /// Adds columns first .. first + 15. collide: some label of row i is that of row 16 + i.
    void add(const In* rows, const int* labels, const T* origin, int first, bool collide) const {
        const int lane = threadIdx.x % 32;
        const int half = lane / 16;
        const int column = first + lane % 16;
        const bool exists = CFG.d % 16 == 0 || column < CFG.d;
        const T shift = exists ? origin[column] : T{};
        const In* const from = rows + 16 * half * layout.pitch + (exists ? column : first);
        T* const to = sums_ + (exists ? column : first);
#pragma unroll
        for (int i = 0; i < 16; i += batch) {
            T value[batch];
            int label[batch];
#pragma unroll
            for (int b = 0; b < batch; b += 4) {
                const auto four =
                    *reinterpret_cast<const Pack<int, 4>*>(labels + 16 * half + i + b);
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                    label[b + v] = four.value[v];
                }
            }
#pragma unroll
            for (int b = 0; b < batch; ++b) {
                value[b] = Converter<T>::from(from[(i + b) * layout.pitch]) - shift;
            }
            if (collide) {
                merge(value, label, half);
            }
#pragma unroll
            for (int b = 0; b < batch; ++b) {
                if (exists && (!collide || label[b] >= 0)) {
                    T* const sum = to + label[b] * CFG.d;
                    *sum = *sum + value[b];
                }
            }
        }
    }

  private:
    /// Where both halves have the same label, the lower half takes the sum of both rows and the
    /// upper half none.
    static void merge(T (&value)[batch], int (&label)[batch], int half) {
#pragma unroll
        for (int b = 0; b < batch; ++b) {
            const T other = shuffle_xor(value[b], 16);
            if (shuffle_xor(label[b], 16) == label[b]) {
                value[b] = half == 0 ? value[b] + other : T{};
                label[b] = half == 0 ? label[b] : -1;
            }
        }
    }

    T* const sums_;
};

/// The shared memory of a thread block and the parts of its work.
template <class In, class T, KmeansConfig CFG>
struct KmeansProductsBlock {
    static constexpr KmeansProductsLayout layout = kmeans_layout<In, T>(CFG);
    static constexpr int threads = 32 * CFG.warps;
    static constexpr int tile_rows = threads;

    const KmeansStepArgs<In, T>& args;
    unsigned char* memory;
    int thread;

    explicit KmeansProductsBlock(const KmeansStepArgs<In, T>& given)
        : args(given),
          memory(dynamic_shared<unsigned char>()),
          thread(static_cast<int>(threadIdx.x)) {}

    template <class U>
    U* at(int offset) const {
        return reinterpret_cast<U*>(memory + offset);
    }
    double* negative() const { return at<double>(0); }
    double* half_squares() const { return at<double>(layout.half_squares()); }
    T* origin() const { return at<T>(layout.origin()); }
    In* stage(int warp, int stage) const {
        return at<In>(layout.warp(warp) + stage * layout.stage_bytes());
    }
    T* distances(int warp) const { return at<T>(layout.warp(warp) + layout.distances()); }
    int* numbers(int warp) const { return at<int>(layout.warp(warp) + layout.numbers()); }
    /// The labels of 32 rows, and a number that is not zero if they collide; see WarpSums.
    int* labels(int warp) const { return at<int>(layout.warp(warp) + layout.labels()); }
    T* sums(int team) const { return at<T>(layout.sums(team)); }

    int size() const { return args.k * (CFG.d + 2); }

    void prepare(double* partial) const {
        TensorCentres<In, T, CFG>::prepare(args, negative(), half_squares());
        for (int p = thread; p < layout.padded; p += threads) {
            origin()[p] = p < CFG.d ? args.origin[p] : T{};
        }
        // Zeros are zeros in every type; also the columns after d, which no copy writes.
        for (int e = layout.warp(0) / 4 + thread; e < layout.bytes() / 4; e += threads) {
            at<int>(0)[e] = 0;
        }
        for (int e = thread; e < size(); e += threads) {
            partial[e] = 0;
        }
        __syncthreads();
    }

    /// Moves the sums to `partial`. Each thread adds to the same elements every time.
    void fold(double* partial) const {
        __syncthreads();
        for (int e = thread; e < size(); e += threads) {
            const int j = e / (CFG.d + 2);
            const int p = e % (CFG.d + 2);
            double sum = partial[e];
            const auto move = [&](auto& from) {
                sum += static_cast<double>(from);
                from = 0;
            };
            if (p < CFG.d) {
                for (int team = 0; team < CFG.warps / CFG.team; ++team) {
                    move(sums(team)[j * CFG.d + p]);
                }
            } else {
                for (int warp = 0; warp < CFG.warps; ++warp) {
                    if (p == CFG.d) {
                        move(numbers(warp)[j]);
                    } else {
                        move(distances(warp)[j]);
                    }
                }
            }
            partial[e] = sum;
        }
        __syncthreads();
    }

    /// Finds the labels of a warp's rows `first` .. first + 31, of which `count` exist.
    template <class Turn>
    void assign(int warp, const In* rows, std::int64_t first, std::int64_t count, const Turn& turns,
                bool last) const {
        const int lane = thread % 32;
        const int row = 8 * (lane % 4) + lane / 4;
        int label = args.k;
        if (count > 0) {
            WarpPoints<In, T, CFG> points(rows, origin());
            points.find({negative(), half_squares()}, turns, last);
            const T distance = static_cast<T>(points.distance);
            if (row < count) {
                label = points.label;
                if (args.labels != nullptr) {
                    args.labels[first + row] = label;
                }
                if (args.distances != nullptr) {
                    args.distances[first + row] = distance;
                }
            }
            WarpTotals<T>{distances(warp), numbers(warp)}.add(label, distance);
        } else {
            turns.wait();
            turns.release(last);
        }
        labels(warp)[row] = label;
        const int collide = __any_sync(0xffffffffu, label == shuffle_xor(label, 2));
        if (lane == 0) {
            labels(warp)[32] = collide;
        }
    }

    /// Adds the rows of the warp's team to the sums; every warp adds some of the columns.
    void add(int warp, int stage_number) const {
        const int team = warp / CFG.team;
        const WarpSums<In, T, CFG> warp_sums(sums(team));
#pragma unroll 1
        for (int w = 0; w < CFG.team; ++w) {
            const int from = team * CFG.team + w;
            const int* const found = labels(from);
            const bool collide = found[32] != 0;
#pragma unroll 1
            for (int column = 16 * (warp % CFG.team); column < CFG.d; column += 16 * CFG.team) {
                if (collide) {
                    warp_sums.add(stage(from, stage_number), found, origin(), column, true);
                } else {
                    warp_sums.add(stage(from, stage_number), found, origin(), column, false);
                }
            }
        }
    }
};

/// The copies of a warp's 32 rows. RowCopy keeps an address for each of a lane's pieces in
/// registers unless the number of columns is a run-time argument.
template <class In, KmeansConfig CFG>
struct KmeansCopy {
    static constexpr int pieces = CFG.d * static_cast<int>(sizeof(In)) / CFG.bytes;
    using type = typename Choice<
        CFG.bytes == 2, ElementCopy<In, 32, 32, CFG.d, CFG.pitch>,
        RowCopy<In, 32, 32, CFG.d, CFG.pitch, (pieces <= 8), CFG.contiguous, CFG.bytes>>::type;
};

/// Requires a one-dimensional grid; `partials` has k (d + 2) numbers for each block.
template <class In, class T, KmeansConfig CFG>
__global__ void __launch_bounds__(32 * CFG.warps, 1)
    kmeans_products(KmeansStepArgs<In, T> args, double* partials, unsigned* counters, int group) {
    using Block = KmeansProductsBlock<In, T, CFG>;
    /// A sum in single precision has at most 8192 rows.
    constexpr int tiles_per_fold = 8192 / (32 * CFG.team);
    constexpr int team_width = 32 * CFG.team;
    const Block block(args);
    double* const partial = partials + static_cast<std::int64_t>(blockIdx.x) * block.size();
    block.prepare(partial);
    const int warp = threadIdx.x / 32;
    const int team = warp / CFG.team;
    const typename KmeansCopy<In, CFG>::type copy(threadIdx.x % 32, args.x, args.ldx, CFG.d);
    const std::int64_t tiles = (args.rows + Block::tile_rows - 1) / Block::tile_rows;
    const auto first_row = [&](std::int64_t at) { return at * Block::tile_rows + 32 * warp; };
    const auto start = [&](int stage, std::int64_t at) {
        const std::int64_t first = first_row(at);
        if (first < args.rows) {
            copy.start(block.stage(warp, stage), args.x, first, args.rows);
        }
        commit_copies();
    };
    const Turns<CFG.warps, CFG.groups> turns(warp);
    start(0, blockIdx.x);
    int stage = 0;
    int unfolded = 0;
#pragma unroll 1
    for (std::int64_t at = blockIdx.x; at < tiles; at += gridDim.x) {
        const std::int64_t first = first_row(at);
        if constexpr (CFG.stages == 2) {
            start(stage ^ 1, at + gridDim.x);
        }
        wait_for_copies<CFG.stages - 1>();
        __syncwarp();
        block.assign(warp, block.stage(warp, stage), first, args.rows - first, turns,
                     at + gridDim.x >= tiles);
        sync_team<team_width>(team);
        block.add(warp, stage);
        sync_team<team_width>(team);
        if constexpr (CFG.stages == 2) {
            stage ^= 1;
        } else {
            start(0, at + gridDim.x);
        }
        if (++unfolded == tiles_per_fold) {
            block.fold(partial);
            unfolded = 0;
        }
    }
    wait_for_copies<0>();
    block.fold(partial);
    sum_over_blocks<64 * 66, 32 * CFG.warps>(block.size(), partials, counters, group,
                                             static_cast<double*>(nullptr),
                                             [&](int i, double sum) { args.sums[i] = sum; });
}

}  // namespace quiver
