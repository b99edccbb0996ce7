// SPDX-License-Identifier: BSD-3-Clause
#include "apps/checkpoint/checkpoint_folder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "apps/mix.hpp"
#include "apps/report.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/hdf5_file.hpp"
#include "kernels/local_file.hpp"
#include "kernels/sync_file.hpp"

namespace quiver::apps {
namespace {

namespace fs = std::filesystem;

/// A larger file cannot be a manifest.
constexpr std::uintmax_t most_manifest_bytes = std::uintmax_t{1} << 28;

std::string in_folder(const std::string& folder, const std::string& name) {
    return (fs::path(folder) / name).string();
}

std::string read_text(const std::string& path) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    std::ifstream in(path, std::ios::binary);
    if (error || !in) {
        throw InputError(path + ": cannot be read");
    }
    if (bytes > most_manifest_bytes) {
        throw InputError(fmt::format("{}: too large for a manifest ({} bytes)", path, bytes));
    }
    return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Returns the text of a file, which rank 0 reads, on all ranks. Collective.
std::string share_text(const Comm& comm, const std::string& path) {
    std::string text;
    comm.agree([&] {
        if (comm.rank() == 0) {
            text = read_text(path);
        }
    });
    auto bytes = static_cast<std::int64_t>(text.size());
    comm.broadcast(&bytes, sizeof(bytes), 0);
    text.resize(static_cast<std::size_t>(bytes));
    comm.broadcast(text.data(), text.size(), 0);
    return text;
}

std::int64_t share(const Comm& comm, std::int64_t value) {
    comm.broadcast(&value, sizeof(value), 0);
    return value;
}

template <class R>
std::uint64_t bits_of(R value) {
    if constexpr (is_complex_v<R>) {
        return mix(std::bit_cast<std::int64_t>(static_cast<double>(value.real())),
                   std::bit_cast<std::int64_t>(static_cast<double>(value.imag())));
    } else {
        return std::bit_cast<std::uint64_t>(static_cast<double>(value));
    }
}

void require_same(const CheckpointIdentity& asked, const CheckpointIdentity& saved,
                  const std::string& folder) {
    for (std::size_t at = 0; at < asked.size(); ++at) {
        const auto& [name, value] = asked[at];
        const std::string of =
            at < saved.size() && saved[at].first == name ? saved[at].second : "unknown";
        if (of != value) {
            throw InputError(
                fmt::format("--resume {}: the checkpoint is of {} {}, this run is of {}", folder,
                            name, of, value));
        }
    }
}

}  // namespace

void check_checkpoint(const CheckpointOptions& options, int rank) {
    if (!(options.every >= 0) || !std::isfinite(options.every)) {
        throw InputError(fmt::format("--every {}: seconds, 0 or more", options.every));
    }
    if (options.asked()) {
        require_hdf5();
    }
    if (rank != 0) {
        return;
    }
    const bool same = options.read_from == options.write_to;
    std::error_code error;
    if (options.read_from && !same && !fs::is_directory(*options.read_from, error)) {
        throw InputError(fmt::format("--resume {}: no such folder", *options.read_from));
    }
    if (!options.write_to) {
        return;
    }
    const std::string& folder = *options.write_to;
    if (folder.empty()) {
        throw InputError("--checkpoint '': the name of a folder is wanted");
    }
    fs::create_directories(folder, error);
    const std::string reason = error ? error.message() : "it is not a folder";
    if (!fs::is_directory(folder, error)) {
        throw InputError(fmt::format("--checkpoint {}: {}", folder, reason));
    }
    if (!same && !generations_in(folder).empty()) {
        throw InputError(
            fmt::format("--checkpoint {}: it holds a checkpoint; continue it with --resume {}, or "
                        "name another folder",
                        folder, folder));
    }
    check_writable(in_folder(folder, manifest_name(0)), "--checkpoint");
}

template <class T>
std::string describe_matrix(const Comm& comm, const CsrRows<T>& rows) {
    std::uint64_t sum = 0;
    for (std::int64_t row = 0; row < rows.map.local_rows(); ++row) {
        const auto at = static_cast<std::size_t>(row);
        for (std::int64_t j = rows.row_start[at]; j < rows.row_start[at + 1]; ++j) {
            const auto entry = static_cast<std::size_t>(j);
            const std::uint64_t place = mix(rows.map.first_row() + row, rows.column[entry]);
            // A sum of 64-bit words does not depend on the order of its terms.
            sum += mix(static_cast<std::int64_t>(place),
                       static_cast<std::int64_t>(bits_of(rows.value[entry])));
        }
    }
    std::uint64_t all = 0;
    for (const std::int64_t part : comm.gather(static_cast<std::int64_t>(sum))) {
        all += static_cast<std::uint64_t>(part);
    }
    return fmt::format("{} rows, {} entries, fingerprint {}", rows.map.global_rows(),
                       comm.sum(rows.nonzeros()), to_hex(all));
}

template <class T>
FolderState<T>::FolderState(CheckpointManifest manifest, std::string folder, RowMap map)
    : SavedState<T>(manifest.solver, manifest.numbers,
                    in_folder(folder, manifest_name(manifest.generation))),
      manifest_(std::move(manifest)),
      folder_(std::move(folder)),
      map_(std::move(map)) {}

template <class T>
std::string FolderState<T>::path(int rank) const {
    return in_folder(folder_, rank_file_name(manifest_.generation, rank));
}

template <class T>
std::unique_ptr<FolderState<T>> FolderState<T>::open(const Comm& comm, const std::string& folder,
                                                     std::int64_t generation, RowMap map) {
    const std::string name = in_folder(folder, manifest_name(generation));
    const std::string text = share_text(comm, name);
    CheckpointManifest manifest;
    comm.agree([&] {
        manifest = parse_manifest(text, name);
        if (manifest.generation != generation) {
            throw InputError(
                fmt::format("{}: it belongs to generation {}", name, manifest.generation));
        }
        const auto files = static_cast<int>(manifest.files.size());
        for (int file = comm.rank(); file < files; file += comm.size()) {
            const std::string path = in_folder(folder, rank_file_name(generation, file));
            if (sum_of_file(path) != manifest.files[static_cast<std::size_t>(file)]) {
                throw InputError(path + ": size or checksum differ from the manifest");
            }
        }
    });
    comm.agree([&] {
        if (manifest.scalar != std::string(1, letter(dtype_v<T>)) ||
            manifest.offsets.back() != map.global_rows()) {
            throw ShapeError(fmt::format("{}: scalar {} and {} rows, this run has {} and {}", name,
                                         manifest.scalar, manifest.offsets.back(),
                                         letter(dtype_v<T>), map.global_rows()));
        }
    });
    return std::unique_ptr<FolderState>(
        new FolderState(std::move(manifest), folder, std::move(map)));
}

template <class T>
void FolderState<T>::read(Context& ctx, const std::string& block, BlockView<T> x) const {
    const auto at = manifest_.blocks.find(block);
    const int cols = at == manifest_.blocks.end() ? 0 : at->second.cols;
    if (cols != x.cols) {
        this->refuse(fmt::format("block {} has {} columns, {} are wanted", block, cols, x.cols));
    }
    if (cols == 0) {
        return;
    }
    ctx.comm().agree([&] {
        const std::int64_t begin = map_.first_row();
        const std::int64_t end = begin + map_.local_rows();
        for (std::size_t file = 0; file < manifest_.files.size(); ++file) {
            const std::int64_t first = std::max(begin, manifest_.offsets[file]);
            const std::int64_t last = std::min(end, manifest_.offsets[file + 1]);
            if (first < last) {
                read_local_rows(ctx, path(static_cast<int>(file)), block,
                                first - manifest_.offsets[file],
                                x.row_range(first - begin, last - first));
            }
        }
    });
}

template <class T>
SmallMatrix<T> FolderState<T>::matrix(Context& ctx, const std::string& name, int rows,
                                      int cols) const {
    const auto at = manifest_.matrices.find(name);
    const CheckpointManifest::Shape shape =
        at == manifest_.matrices.end() ? CheckpointManifest::Shape{} : at->second;
    if (shape != CheckpointManifest::Shape{rows, cols}) {
        this->refuse(fmt::format("matrix {} is {} x {}, {} x {} are wanted", name, shape.rows,
                                 shape.cols, rows, cols));
    }
    SmallMatrix<T> result;
    ctx.comm().agree([&] {
        result = SmallMatrix<T>(rows, cols);
        if (rows > 0 && cols > 0) {
            read_local_rows(ctx, path(0), name, 0, result.view());
        }
    });
    return result;
}

template <class T>
CheckpointFolder<T>::CheckpointFolder(Context& ctx, const CheckpointOptions& options, RowMap map,
                                      CheckpointIdentity identity)
    : folder_(options.write_to.value_or("")),
      every_(options.every),
      map_(std::move(map)),
      identity_(std::move(identity)) {
    if (options.read_from) {
        find_saved(ctx, *options.read_from);
    }
    schedule_next_save();
}

template <class T>
void CheckpointFolder<T>::find_saved(Context& ctx, const std::string& folder) {
    const Comm& comm = ctx.comm();
    std::vector<std::int64_t> generations;
    if (comm.rank() == 0) {
        generations = generations_in(folder);
    }
    const std::int64_t count = share(comm, std::ssize(generations));
    generations.resize(static_cast<std::size_t>(count));
    comm.broadcast(generations.data(), generations.size() * sizeof(std::int64_t), 0);
    if (count == 0) {
        if (folder != folder_) {
            throw_collective(ErrorKind::input,
                             fmt::format("--resume {}: the folder has no checkpoint", folder));
        }
        ctx.emit(NoticeEvent{"no checkpoint in " + folder + " yet: starting from the beginning"});
        return;
    }
    std::string failures;
    for (const std::int64_t generation : generations) {
        try {
            saved_ = FolderState<T>::open(comm, folder, generation, map_);
        } catch (const Error& error) {
            if (!error.collective() || error.kind() != ErrorKind::input) {
                throw;
            }
            failures += std::string(failures.empty() ? "" : "; ") + error.what();
            continue;
        }
        comm.agree([&] { require_same(identity_, saved_->manifest().identity, folder); });
        if (!failures.empty()) {
            ctx.emit(NoticeEvent{fmt::format("{}; using generation {}", failures, generation)});
        }
        ctx.emit(NoticeEvent{fmt::format("resuming from {}, generation {}", folder, generation)});
        if (folder == folder_) {
            newest_ = generations.front();
            whole_ = generation;
        }
        return;
    }
    throw_collective(ErrorKind::input,
                     fmt::format("--resume {}: no checkpoint is complete: {}", folder, failures));
}

template <class T>
void CheckpointFolder<T>::schedule_next_save() {
    // Seconds; longer than any run. Larger numbers would overflow the clock.
    constexpr double longest = 1e9;
    const std::chrono::duration<double> wait(std::min(every_, longest));
    next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
}

template <class T>
bool CheckpointFolder<T>::due() {
    return !folder_.empty() && map_.rank() == 0 && Clock::now() >= next_;
}

template <class T>
FileSum CheckpointFolder<T>::write_rank_file(Context& ctx, const SolverState<T>& state,
                                             std::int64_t generation) {
    std::vector<NamedBlock<T>> blocks;
    for (const auto& [name, block] : state.blocks) {
        blocks.push_back({name, block});
    }
    for (const auto& [name, matrix] : state.matrices) {
        if (map_.rank() == 0 && matrix.rows() > 0) {
            blocks.push_back({name, matrix.view()});
        }
    }
    const std::string path = in_folder(folder_, rank_file_name(generation, map_.rank()));
    write_local_file<T>(ctx, path, blocks);
    if (const int code = sync_file(folder_); code != 0) {
        throw Error(ErrorKind::other, "cannot write " + path + ": " + std::strerror(code));
    }
    return sum_of_file(path);
}

template <class T>
CheckpointManifest CheckpointFolder<T>::describe(const SolverState<T>& state,
                                                 std::int64_t generation,
                                                 std::vector<FileSum> files) const {
    CheckpointManifest manifest;
    manifest.generation = generation;
    manifest.identity = identity_;
    manifest.scalar = std::string(1, letter(dtype_v<T>));
    manifest.solver = state.solver;
    manifest.numbers = state.numbers;
    for (const auto& [name, block] : state.blocks) {
        manifest.blocks[name] = {map_.global_rows(), block.cols};
    }
    for (const auto& [name, matrix] : state.matrices) {
        manifest.matrices[name] = {matrix.rows(), matrix.cols()};
    }
    manifest.offsets = map_.offsets();
    manifest.files = std::move(files);
    return manifest;
}

template <class T>
void CheckpointFolder<T>::write_manifest(const CheckpointManifest& manifest) const {
    for (std::size_t rank = 0; rank < manifest.files.size(); ++rank) {
        const std::string path =
            in_folder(folder_, rank_file_name(manifest.generation, static_cast<int>(rank)));
        std::error_code error;
        if (fs::file_size(path, error) != static_cast<std::uintmax_t>(manifest.files[rank].bytes)) {
            throw Error(ErrorKind::other,
                        fmt::format("rank 0 does not see the file {} that rank {} has written: all "
                                    "ranks need the same folder",
                                    path, rank));
        }
    }
    const std::string path = in_folder(folder_, manifest_name(manifest.generation));
    constexpr bool durable = true;
    write_file(path, to_text(manifest), durable);
    if (const int code = sync_file(folder_); code != 0) {
        throw Error(ErrorKind::other, "cannot write " + path + ": " + std::strerror(code));
    }
}

template <class T>
void CheckpointFolder<T>::save(Context& ctx, const SolverState<T>& state) {
    if (folder_.empty()) {
        return;
    }
    const Comm& comm = ctx.comm();
    const std::int64_t generation = newest_ + 1;
    try {
        FileSum mine;
        comm.agree([&] { mine = write_rank_file(ctx, state, generation); });
        const std::vector<std::int64_t> bytes = comm.gather(mine.bytes);
        const std::vector<std::int64_t> crc = comm.gather(static_cast<std::int64_t>(mine.crc));
        comm.agree([&] {
            if (comm.rank() == 0) {
                std::vector<FileSum> files;
                for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
                    files.push_back({bytes[rank], static_cast<std::uint64_t>(crc[rank])});
                }
                write_manifest(describe(state, generation, std::move(files)));
            }
        });
        newest_ = generation;
        if (comm.rank() == 0) {
            remove_generations(folder_, [&](std::int64_t other) {
                return other != generation && other != whole_;
            });
        }
        whole_ = generation;
        trouble_.clear();
    } catch (const Error& error) {
        if (!error.collective() ||
            (error.kind() != ErrorKind::other && error.kind() != ErrorKind::input)) {
            throw;
        }
        if (comm.rank() == 0) {
            remove_generations(folder_, [&](std::int64_t other) { return other == generation; });
        }
        const std::string trouble = error.what();
        if (std::exchange(trouble_, trouble) != trouble) {  // report a repeated reason once
            ctx.emit(NoticeEvent{fmt::format(
                "no checkpoint: {}; {}, the run continues", trouble,
                whole_ < 0 ? "there is none yet" : fmt::format("generation {} stays", whole_))});
        }
    }
    // No rank begins the next generation before rank 0 has removed the old ones.
    comm.barrier();
    schedule_next_save();
}

#define QUIVER_INSTANTIATE(T)                                             \
    template std::string describe_matrix(const Comm&, const CsrRows<T>&); \
    template class FolderState<T>;                                        \
    template class CheckpointFolder<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
