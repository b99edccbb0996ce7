// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/hamiltonian/state_basis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/memory.hpp"
#include "kernels/hamiltonian/placed.hpp"
#include "kernels/hamiltonian/words.hpp"
#include "kernels/host/simd.hpp"

namespace quiver {
namespace {

/// A vector of this length takes 140 TB in double precision.
constexpr std::int64_t most_states = std::int64_t{1} << 44;
/// Longer words get their rank from binomials, because the tables would be larger than the caches.
constexpr int most_table_bits = 40;

/// The tables of WordList.
struct RankTables {
    std::vector<std::int64_t> high;
    std::vector<std::int32_t> low;

    void fill(WordList& list) {
        if (list.ones < 0 || list.bits > most_table_bits || list.bits == 0) {
            return;
        }
        list.low_bits = list.bits - list.bits / 2;
        const int high_bits = list.bits - list.low_bits;
        high.resize(std::size_t{1} << high_bits);
        low.resize(std::size_t{1} << list.low_bits);
        for (std::size_t word = 0; word < low.size(); ++word) {
            low[word] = static_cast<std::int32_t>(rank_of(word));
        }
        for (std::size_t word = 0; word < high.size(); ++word) {
            const int below = list.ones - count_ones(word);
            // The first word with these high bits has its lower ones in the lowest bits.
            high[word] = below < 0 || below > list.low_bits
                             ? 0
                             : rank_of(std::uint64_t{word} << list.low_bits | low_ones(below));
        }
        list.high = high.data();
        list.low = low.data();
    }
};

}  // namespace

struct StateBasis::Tables {
    std::array<RankTables, 2> ranks;
    std::vector<std::uint64_t> representatives;
    std::vector<unsigned char> stabiliser;
    std::vector<std::int64_t> bucket;
    StateSpace host{};
    StateSpace placed{};
    std::vector<Buffer> copies;

    bool find_representatives(Context& ctx, std::int64_t plain,
                              const std::vector<std::complex<double>>& characters,
                              const KeepGoing& keep_going);
    void search(int threads, std::int64_t first, std::int64_t last,
                const std::vector<std::complex<double>>& characters);
    void gather(const Comm& comm);
    void fill_buckets();
    std::int64_t place(Context& ctx);
};

namespace {

/// The number of elements that map the state to itself; 0 if the state is no representative or the
/// sector has no combination of its images.
int stabiliser_of(const StateSpace& space, std::uint64_t word,
                  const std::vector<std::complex<double>>& characters) {
    int count = 0;
    double sum = 0;
    space.for_each_image(word, [&](const SmallestImage& image) {
        if (image.word == word) {
            ++count;
            const double real = characters[static_cast<std::size_t>(image.element)].real();
            sum += image.negative ? -real : real;
        }
        if (image.word < word) {
            sum = 0;
        }
        return image.word >= word;
    });
    // The sum over the stabiliser is its order or 0.
    return sum > 0.5 ? count : 0;
}

StateSpace plain_space(const HamiltonianModel& model) {
    const Sector& sector = model.sector;
    StateSpace space{};
    const bool two_counts = sector.up.has_value();
    space.low = two_counts ? word_list(model.sites, *sector.down)
                           : word_list(model.bits(), sector.ones.value_or(-1));
    space.high = two_counts ? word_list(model.sites, *sector.up) : word_list(0, -1);
    space.sites = model.sites;
    space.species = model.particles == Particles::fermions ? 2 : 1;
    space.fermions = model.particles != Particles::spins;
    space.translations = sector.momentum ? model.sites : 1;
    space.reflects = sector.reflection != 0;
    space.inverts = sector.inversion != 0;
    return space;
}

}  // namespace

/// Appends the representatives among the rows `first` to `last` - 1 of the plain states.
void StateBasis::Tables::search(int threads, std::int64_t first, std::int64_t last,
                                const std::vector<std::complex<double>>& characters) {
    const int chunks = static_cast<int>(
        std::min<std::int64_t>(std::int64_t{16} * threads, (last - first) / 256 + 1));
    std::vector<std::vector<std::uint64_t>> words(static_cast<std::size_t>(chunks));
    std::vector<std::vector<unsigned char>> counts(static_cast<std::size_t>(chunks));
    host::for_chunks(chunks, last - first, [&](host::Chunk chunk) {
        const auto at = static_cast<std::size_t>(chunk.index);
        std::int64_t row = first + chunk.first;
        const std::int64_t end = first + chunk.last;
        std::uint64_t word = row < end ? host.plain_word(row) : 0;
        for (; row < end; word = host.next(row, word), ++row) {
            const int count = stabiliser_of(host, word, characters);
            if (count > 0) {
                words[at].push_back(word);
                counts[at].push_back(static_cast<unsigned char>(count));
            }
        }
    });
    for (std::size_t at = 0; at < words.size(); ++at) {
        representatives.insert(representatives.end(), words[at].begin(), words[at].end());
        stabiliser.insert(stabiliser.end(), counts[at].begin(), counts[at].end());
    }
}

/// Every rank examines its share of the plain states. Returns false on all ranks if keep_going does
/// so on one.
bool StateBasis::Tables::find_representatives(Context& ctx, std::int64_t plain,
                                              const std::vector<std::complex<double>>& characters,
                                              const KeepGoing& keep_going) {
    constexpr std::int64_t noticeable = 100'000'000;
    if (plain >= noticeable) {
        ctx.emit(NoticeEvent{"searching " + std::to_string(plain) +
                             " states for those of the symmetry sector"});
    }
    const Comm& comm = ctx.comm();
    const RowMap share = RowMap::by_rows(comm, plain);
    // The images of a part take about 0.1 s of one core. All ranks have the same number of parts.
    constexpr std::int64_t images = 20'000'000;
    const std::int64_t part = std::max<std::int64_t>(images / std::ssize(characters), 1);
    const std::int64_t parts = comm.max((share.local_rows() + part - 1) / part);
    for (std::int64_t i = 0; i < parts; ++i) {
        bool goes_on = true;
        comm.agree([&] {
            search(ctx.threads(), share.first_row() + std::min(i * part, share.local_rows()),
                   share.first_row() + std::min((i + 1) * part, share.local_rows()), characters);
            IterationEvent event{"exact diagonalisation"};
            event.iteration = i + 1;
            event.stage = "states";
            goes_on = !keep_going || keep_going(event);
        });
        if (keep_going && comm.sum(std::int64_t{goes_on ? 0 : 1}) > 0) {
            return false;
        }
    }
    gather(comm);
    return true;
}

/// Gives every rank the representatives of all ranks, in the order of the ranks.
void StateBasis::Tables::gather(const Comm& comm) {
    if (comm.size() == 1) {
        return;
    }
    const std::vector<std::int64_t> counts =
        comm.gather(static_cast<std::int64_t>(representatives.size()));
    std::int64_t total = 0;
    for (const std::int64_t count : counts) {
        total += count;
    }
    std::vector<std::uint64_t> words;
    std::vector<unsigned char> orders;
    comm.agree([&] {
        words.resize(static_cast<std::size_t>(total));
        orders.resize(static_cast<std::size_t>(total));
    });
    std::size_t first = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
        const auto count = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
        if (rank == comm.rank()) {
            std::copy(representatives.begin(), representatives.end(), words.data() + first);
            std::copy(stabiliser.begin(), stabiliser.end(), orders.data() + first);
        }
        comm.broadcast(words.data() + first, count * sizeof(std::uint64_t), rank);
        comm.broadcast(orders.data() + first, count, rank);
        first += count;
    }
    representatives.swap(words);
    stabiliser.swap(orders);
}

void StateBasis::Tables::fill_buckets() {
    const int bits = host.bits();
    host.bucket_shift = std::max(0, bits - 18);
    bucket.assign((std::size_t{1} << (bits - host.bucket_shift)) + 1, 0);
    for (const std::uint64_t word : representatives) {
        ++bucket[(word >> host.bucket_shift) + 1];
    }
    for (std::size_t i = 1; i < bucket.size(); ++i) {
        bucket[i] += bucket[i - 1];
    }
    host.representatives = representatives.data();
    host.stabiliser = stabiliser.data();
    host.bucket = bucket.data();
}

/// Copies the tables to the Context's place; returns their bytes.
std::int64_t StateBasis::Tables::place(Context& ctx) {
    PlacedArrays arrays(ctx);
    placed = host;
    WordList* const lists[] = {&placed.low, &placed.high};
    for (std::size_t i = 0; i < 2; ++i) {
        lists[i]->binomials = arrays.place(binomials.data(), binomials.size());
        if (lists[i]->high != nullptr) {
            lists[i]->high = arrays.place(ranks[i].high);
            lists[i]->low = arrays.place(ranks[i].low);
        }
    }
    if (placed.symmetric()) {
        placed.representatives = arrays.place(representatives);
        placed.stabiliser = arrays.place(stabiliser);
        placed.bucket = arrays.place(bucket);
    }
    copies = arrays.take();
    return arrays.bytes();
}

StateBasis::StateBasis(Context& ctx, const HamiltonianModel& model, const KeepGoing& keep_going)
    : model_(model), tables_(std::make_unique<Tables>()) {
    StateSpace& space = tables_->host;
    std::int64_t plain = 0;
    ctx.comm().agree([&] {
        space = plain_space(model_);
        if (__builtin_mul_overflow(space.low.count, space.high.count, &plain) ||
            plain > most_states) {
            throw InputError("exact diagonalisation: " + std::to_string(model_.sites) + " " +
                             to_string(model_.particles) + " have more than 2^44 states in this " +
                             "sector; give fewer sites, or sectors such as `sector sz 0`");
        }
        tables_->ranks[0].fill(space.low);
        tables_->ranks[1].fill(space.high);
        space.rows = plain;
    });
    if (model_.sector.has_symmetries()) {
        interrupted_ = !tables_->find_representatives(ctx, plain, characters(), keep_going);
        if (interrupted_) {
            return;
        }
        ctx.comm().agree([&] {
            space.rows = static_cast<std::int64_t>(tables_->representatives.size());
            if (space.rows == 0) {
                throw InputError("exact diagonalisation: no state of " + std::to_string(plain) +
                                 " has these eigenvalues of momentum, reflection and inversion");
            }
            tables_->fill_buckets();
        });
    }
    map_ = RowMap::by_rows(ctx.comm(), space.rows);
    ctx.comm().agree([&] { bytes_ = tables_->place(ctx); });
}

StateBasis::~StateBasis() = default;

int StateBasis::order() const {
    const StateSpace& space = tables_->host;
    return space.translations * (space.reflects ? 2 : 1) * (space.inverts ? 2 : 1);
}

std::vector<std::complex<double>> StateBasis::characters() const {
    const Sector& sector = model_.sector;
    const int translations = tables_->host.translations;
    const std::int64_t k = sector.momentum.value_or(0);
    std::vector<std::complex<double>> all;
    for (int element = 0; element < order(); ++element) {
        const int of_group = element / translations;
        const bool reflected = sector.reflection != 0 && of_group % 2 == 1;
        const bool inverted = sector.inversion != 0 && of_group >= (sector.reflection != 0 ? 2 : 1);
        const double sign = (reflected ? sector.reflection : 1) * (inverted ? sector.inversion : 1);
        // Exact numbers for momenta 0 and pi.
        const std::int64_t turn = k * (element % translations) % translations;
        const double angle = 2 * std::numbers::pi * static_cast<double>(turn) / translations;
        const std::complex<double> value = 2 * turn == translations ? std::complex<double>(-1)
                                           : turn == 0              ? std::complex<double>(1)
                                                                    : std::polar(1.0, angle);
        all.push_back(sign * value);
    }
    return all;
}

const StateSpace& StateBasis::host_space() const {
    return tables_->host;
}

const StateSpace& StateBasis::space() const {
    return tables_->placed;
}

}  // namespace quiver
