// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/hamiltonian/hamiltonian_operator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/fused_arguments.hpp"
#include "kernels/hamiltonian/entry_math.hpp"
#include "kernels/hamiltonian/expression.hpp"
#include "kernels/hamiltonian/placed.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/operation.hpp"
#include "kernels/sparse/halo.hpp"

namespace quiver {
namespace {

constexpr std::array<double, 256> make_roots() {
    std::array<double, 256> roots{};
    for (std::size_t n = 0; n < roots.size(); ++n) {
        roots[n] = __builtin_sqrt(static_cast<double>(n));
    }
    return roots;
}
const std::array<double, 256> roots_of_counts = make_roots();

/// The sites of the ones of a mask, for messages.
std::string sites_of(const HamiltonianModel& model, std::uint64_t mask) {
    std::string text;
    for (int bit = 0; bit < model.bits(); ++bit) {
        if ((mask >> bit & 1) != 0) {
            text += (text.empty() ? "" : ", ") + std::to_string(bit % model.sites);
        }
    }
    return text;
}

/// Throws InputError if a term changes the number of ones in the bits of `mask`.
void require_conserved(const HamiltonianModel& model, const Expression& h, std::uint64_t mask,
                       const char* name) {
    for (const auto& [move, coefficient] : h) {
        if (count_ones(move.flip & mask) != 2 * count_ones(move.value & mask)) {
            throw InputError("Hamiltonian: the terms change the sector's number of " +
                             std::string(name) + ", at sites " + sites_of(model, move.flip) +
                             "; omit that sector");
        }
    }
}

/// The terms after a permutation of the sites or the flip of the spins.
template <class Change>
Expression changed_expression(const HamiltonianModel& model, std::vector<HamiltonianTerm> terms,
                              const Change& change) {
    for (HamiltonianTerm& term : terms) {
        for (SiteOperator& one : term.operators) {
            change(one, term.coefficient);
        }
    }
    return expression_of(model, terms);
}

void require_symmetries(const HamiltonianModel& model, const std::vector<HamiltonianTerm>& terms,
                        const Expression& h) {
    const int sites = model.sites;
    const auto require = [&](bool used, const char* name, const auto& change) {
        if (used && !same_operator(h, changed_expression(model, terms, change))) {
            throw InputError(std::string("Hamiltonian: the terms are not the same after the ") +
                             name + "; omit that sector");
        }
    };
    require(model.sector.momentum.has_value(), "translation by one site (sector momentum)",
            [&](SiteOperator& one, auto&) { one.site = (one.site + 1) % sites; });
    require(model.sector.reflection != 0, "reflection of the sites (sector reflection)",
            [&](SiteOperator& one, auto&) { one.site = sites - 1 - one.site; });
    require(model.sector.inversion != 0, "exchange of up and down (sector inversion)",
            [&](SiteOperator& one, std::complex<double>& coefficient) {
                if (model.particles == Particles::fermions) {
                    one.up = !one.up;
                } else if (one.action == '+' || one.action == '-') {
                    one.action = one.action == '+' ? '-' : '+';
                } else if (one.action == 'z' || one.action == 'y') {
                    coefficient = -coefficient;
                }
            });
}

void require_sector(const HamiltonianModel& model, const std::vector<HamiltonianTerm>& terms,
                    const Expression& h) {
    const std::uint64_t low = low_ones(model.sites);
    if (model.sector.ones) {
        require_conserved(model, h, low_ones(model.bits()),
                          model.particles == Particles::spins ? "up spins (sz)" : "particles");
    }
    if (model.sector.up) {
        require_conserved(model, h, low, "down fermions (down)");
        require_conserved(model, h, low << model.sites, "up fermions (up)");
    }
    require_symmetries(model, terms, h);
}

/// A coefficient as T; throws InputError if T is real and the coefficient is not.
template <class T>
T scalar_from(std::complex<double> value) {
    if constexpr (is_complex_v<T>) {
        return T(static_cast<real_t<T>>(value.real()), static_cast<real_t<T>>(value.imag()));
    } else {
        if (std::abs(value.imag()) > 1e-13 * std::abs(value)) {
            throw InputError("Hamiltonian: the matrix is complex; a complex scalar is wanted");
        }
        return static_cast<T>(value.real());
    }
}

/// The lists of terms that a kernel reads.
template <class T>
struct TermLists {
    T constant = T(0);
    std::vector<DiagonalTerm<T>> diagonal;
    std::vector<SignTerm<T>> signs;
    std::vector<ExchangeTerm<T>> exchanges;
    std::vector<FlipTerm<T>> flips;
    int entries = 0;

    explicit TermLists(const Expression& h) {
        for (const auto& [move, coefficient] : h) {
            if (move.flip == 0) {
                add_diagonal(move.sign, scalar_from<T>(coefficient));
            } else {
                // <s| H |s ^ flip>: before the move the flipped bits are those of s ^ flip.
                add_flip({move.flip, move.value ^ move.flip, move.value ^ move.flip, move.sign,
                          scalar_from<T>(coefficient)});
            }
        }
        for (auto flip = flips.begin(); flip != flips.end();) {
            flip = becomes_exchange(*flip) ? flips.erase(flip) : flip + 1;
        }
        entries = static_cast<int>(flips.size());
        for (const ExchangeTerm<T>& term : exchanges) {
            entries += count_ones(term.mask);
        }
    }

  private:
    void add_diagonal(std::uint64_t sign, T coefficient) {
        const int ones = count_ones(sign);
        if (ones == 0) {
            constant += coefficient;
        } else if (ones > 2) {
            signs.push_back({sign, coefficient});
        } else {
            const std::uint64_t bit = sign & (~sign + 1);
            const int shift = ones == 1 ? 0 : lowest_one(sign ^ bit) - lowest_one(bit);
            add_bit(diagonal, bit, shift, coefficient).count += 1;
        }
    }
    /// Joins two moves of the same bits in opposite directions.
    void add_flip(const FlipTerm<T>& term) {
        const auto opposite = std::find_if(flips.begin(), flips.end(), [&](const auto& other) {
            return other.flip == term.flip && other.value == (term.value ^ term.flip) &&
                   other.other == other.value && other.sign == term.sign &&
                   other.coefficient == term.coefficient;
        });
        if (opposite == flips.end()) {
            flips.push_back(term);
        } else {
            opposite->other = term.value;
        }
    }
    bool becomes_exchange(const FlipTerm<T>& term) {
        const bool exchanges_bits = count_ones(term.flip) == 2 && count_ones(term.value) == 1 &&
                                    term.other != term.value && term.sign == 0;
        if (exchanges_bits) {
            const std::uint64_t bit = term.flip & (~term.flip + 1);
            add_bit(exchanges, bit, lowest_one(term.flip ^ bit) - lowest_one(bit),
                    term.coefficient);
        }
        return exchanges_bits;
    }
    template <class Term>
    static Term& add_bit(std::vector<Term>& terms, std::uint64_t bit, int shift, T coefficient) {
        auto found = std::find_if(terms.begin(), terms.end(), [&](const Term& term) {
            return term.shift == shift && term.coefficient == coefficient;
        });
        if (found == terms.end()) {
            Term term{};
            term.shift = shift;
            term.coefficient = coefficient;
            found = terms.insert(terms.end(), term);
        }
        found->mask |= bit;
        return *found;
    }
};

}  // namespace

template <class T>
struct HamiltonianOperator<T>::Data {
    std::shared_ptr<const StateBasis> basis;
    Place place = Place::host;
    TermLists<T> lists;
    std::vector<T> characters;
    std::vector<std::uint64_t> halo_bits;
    std::vector<std::int64_t> halo_before;
    std::unique_ptr<Halo<T>> halo;
    std::vector<Buffer> copies;
    std::int64_t bytes = 0;
    /// With host pointers, and with pointers to the Context's place.
    HamiltonianArgs<T> host{};
    HamiltonianArgs<T> placed{};

    Data(std::shared_ptr<const StateBasis> states, const Expression& h)
        : basis(std::move(states)), lists(h) {
        const RowMap& map = basis->row_map();
        for (const std::complex<double> value : basis->characters()) {
            characters.push_back(scalar_from<T>(value));
        }
        host.rows = map.local_rows();
        host.first = map.first_row();
        host.entries = lists.entries;
        host.space = basis->host_space();
        host.terms.constant = lists.constant;
        host.terms.diagonal = list_of(lists.diagonal);
        host.terms.signs = list_of(lists.signs);
        host.terms.exchanges = list_of(lists.exchanges);
        host.terms.flips = list_of(lists.flips);
        host.characters = characters.data();
        host.roots = roots_of_counts.data();
    }
    template <class V>
    static TermList<V> list_of(const std::vector<V>& terms) {
        return {terms.data(), static_cast<int>(terms.size())};
    }

    void plan_halo(Context& ctx);
    std::vector<std::int64_t> mark_needed(int threads);
    void upload(Context& ctx);
};

/// Marks the rows of other ranks that this rank's rows need, and returns them.
template <class T>
std::vector<std::int64_t> HamiltonianOperator<T>::Data::mark_needed(int threads) {
    const std::int64_t all = basis->row_map().global_rows();
    halo_bits.assign(static_cast<std::size_t>(all / 64 + 1), 0);
    const int chunks = host::chunk_count(threads, host.rows, 64);
    host::for_chunks(chunks, host.rows, [&](host::Chunk chunk) {
        for (std::int64_t i = chunk.first; i < chunk.last; ++i) {
            const std::int64_t row = host.first + i;
            const std::uint64_t word = host.space.word(row);
            quiver::for_each_entry(host, word, [&](std::uint64_t t, T value) {
                const std::int64_t column = entry_of<EntryMath>(host, row, t, value).column;
                const std::int64_t own = column - host.first;
                if (own < 0 || own >= host.rows) {
                    std::atomic_ref(halo_bits[static_cast<std::size_t>(column / 64)])
                        .fetch_or(std::uint64_t{1} << column % 64, std::memory_order_relaxed);
                }
            });
        }
    });
    std::vector<std::int64_t> needed;
    halo_before.reserve(halo_bits.size());
    for (std::size_t at = 0; at < halo_bits.size(); ++at) {
        halo_before.push_back(static_cast<std::int64_t>(needed.size()));
        for (std::uint64_t left = halo_bits[at]; left != 0; left &= left - 1) {
            needed.push_back(static_cast<std::int64_t>(at) * 64 + lowest_one(left));
        }
    }
    return needed;
}

template <class T>
void HamiltonianOperator<T>::Data::plan_halo(Context& ctx) {
    std::vector<std::int64_t> needed;
    std::vector<std::uint8_t> stage;
    ctx.comm().agree([&] {
        if (ctx.comm().size() > 1) {
            needed = mark_needed(ctx.threads());
            stage.assign(needed.size(), 0);
            host.halo_rows = {halo_bits.data(), halo_before.data()};
        }
    });
    halo = std::make_unique<Halo<T>>(ctx, basis->row_map(), needed, stage, 1);
}

template <class T>
void HamiltonianOperator<T>::Data::upload(Context& ctx) {
    PlacedArrays arrays(ctx);
    const auto place_list = [&](auto list) {
        list.data = arrays.place(list.data, static_cast<std::size_t>(list.count));
        return list;
    };
    placed = host;
    placed.space = basis->space();
    placed.terms.diagonal = place_list(host.terms.diagonal);
    placed.terms.signs = place_list(host.terms.signs);
    placed.terms.exchanges = place_list(host.terms.exchanges);
    placed.terms.flips = place_list(host.terms.flips);
    placed.characters = arrays.place(characters);
    placed.roots = arrays.place(host.roots, roots_of_counts.size());
    placed.halo_rows = {arrays.place(halo_bits), arrays.place(halo_before)};
    bytes = arrays.bytes() + static_cast<std::int64_t>(halo->plan().bytes());
    copies = arrays.take();
    place = ctx.place();
}

std::shared_ptr<const StateBasis> make_state_basis(Context& ctx, const HamiltonianModel& model,
                                                   const StateBasis::KeepGoing& keep_going) {
    ctx.comm().agree([&] {
        const Expression h = expression_of(model, model.terms);
        if (!same_operator(h, adjoint(h))) {
            throw InputError(
                "Hamiltonian: the terms are not Hermitian; `hc` at the end of a term adds its "
                "adjoint");
        }
        require_sector(model, model.terms, h);
    });
    return std::make_shared<const StateBasis>(ctx, model, keep_going);
}

template <class T>
HamiltonianOperator<T>::HamiltonianOperator(Context& ctx, const HamiltonianModel& model)
    : HamiltonianOperator(ctx, make_state_basis(ctx, model), model.terms) {}

template <class T>
HamiltonianOperator<T>::HamiltonianOperator(Context& ctx, std::shared_ptr<const StateBasis> basis,
                                            const std::vector<HamiltonianTerm>& terms) {
    ctx.comm().agree([&] {
        const HamiltonianModel& model = basis->model();
        const Expression h = expression_of(model, terms);
        require_sector(model, terms, h);
        data_ = std::make_unique<Data>(std::move(basis), h);
    });
    data_->plan_halo(ctx);
    ctx.comm().agree([&] { data_->upload(ctx); });
}

template <class T>
HamiltonianOperator<T>::HamiltonianOperator(HamiltonianOperator&&) noexcept = default;
template <class T>
HamiltonianOperator<T>& HamiltonianOperator<T>::operator=(HamiltonianOperator&&) noexcept = default;
template <class T>
HamiltonianOperator<T>::~HamiltonianOperator() = default;

template <class T>
const std::shared_ptr<const StateBasis>& HamiltonianOperator<T>::basis() const {
    return data_->basis;
}

template <class T>
std::int64_t HamiltonianOperator<T>::halo_size() const {
    return data_->halo->size();
}

template <class T>
std::int64_t HamiltonianOperator<T>::memory_bytes() const {
    return data_->basis->memory_bytes() + data_->bytes;
}

template <class T>
void HamiltonianOperator<T>::for_each_entry(std::int64_t row,
                                            const std::function<void(std::int64_t, T)>& use) const {
    const HamiltonianArgs<T>& args = data_->host;
    const std::int64_t global = args.first + row;
    const std::uint64_t word = args.space.word(global);
    use(global, diagonal_entry<EntryMath>(args, word));
    quiver::for_each_entry(args, word, [&](std::uint64_t t, T value) {
        const StateEntry<T> entry = entry_of<EntryMath>(args, global, t, value);
        if (entry.value != T(0)) {
            use(entry.column, entry.value);
        }
    });
}

template <class T>
const RowMap& HamiltonianOperator<T>::row_map() const {
    return data_->basis->row_map();
}

template <class T>
void HamiltonianOperator<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    apply_fused(ctx, x, y, {});
}

template <class T>
void HamiltonianOperator<T>::apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                                         const ApplyOptions<T>& options) {
    check_fused(ctx, row_map(), x, y, options);
    if (x.cols == 0) {
        return;
    }
    HamiltonianArgs<T> args = data_->placed;
    args.width = x.cols;
    args.alpha = options.alpha;
    args.beta = options.beta;
    args.shift = options.shift.size() == 1 ? options.shift[0] : T(0);
    args.x = x.data;
    args.ldx = x.ld;
    args.y = y.data;
    args.ldy = y.ld;
    dispatch<operations::hamiltonian, T>(ctx, [&](const auto& kernel) {
        const Ledger::Entry entry = kernel.enter(cost(args));
        const bool many = options.shift.size() > 1;
        const LeafArray<T> shifts(ctx, many ? options.shift : std::span<const T>());
        args.shifts = many ? shifts.data() : nullptr;
        if (ctx.comm().size() > 1) {
            data_->halo->begin(ctx, x);
            args.halo = data_->halo->arrive(ctx, 0);
        }
        kernel.leaf(args);
    });
    form_dots<T>(ctx, x, y, options);
}

template <class T>
void HamiltonianOperator<T>::prepare(Context& ctx, std::span<const int> widths, bool) {
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device) {
            for (const int width : widths) {
                if (width > 0) {
                    cuda::request_hamiltonian<T>(ctx, width, data_->placed.space.symmetric());
                }
            }
        }
    }
}

#define QUIVER_INSTANTIATE(T) template class HamiltonianOperator<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
