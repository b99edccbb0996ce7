// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/kernel_pack.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "blockvec/cache_folder.hpp"
#include "blockvec/error.hpp"
#include "kernels/cuda/hash.hpp"
#include "kernels/output_file.hpp"

namespace quiver::cuda {
namespace {

/// A file consists of a header line with this text, the size of the index in bytes and its hash;
/// the index, one line per record with its name, compressed size and size; and the compressed
/// records in the same order.
constexpr std::string_view magic = "quiver pack 1";
constexpr std::size_t header_bytes = 64;

std::string header_of(const std::string& index) {
    std::string header =
        std::string(magic) + " " + std::to_string(index.size()) + " " + hex(hash(index));
    header.resize(header_bytes - 1, ' ');
    return header + "\n";
}

/// Returns nothing if the file is too short.
std::optional<std::string> read_at(int file, std::uint64_t offset, std::size_t bytes) {
    std::string content(bytes, '\0');
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t count =
            ::pread(file, content.data() + done, bytes - done, static_cast<off_t>(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return std::nullopt;
        }
        done += static_cast<std::size_t>(count);
    }
    return content;
}

std::string compressed(const std::string& record) {
    uLongf bytes = compressBound(record.size());
    std::string stored(bytes, '\0');
    if (compress2(reinterpret_cast<Bytef*>(stored.data()), &bytes,
                  reinterpret_cast<const Bytef*>(record.data()), record.size(),
                  Z_DEFAULT_COMPRESSION) != Z_OK) {
        throw Error(ErrorKind::other, "zlib cannot compress a kernel");
    }
    stored.resize(bytes);
    return stored;
}

std::vector<std::string> pack_folders() {
    std::vector<std::string> folders;
    const auto append = [&](const char* list) {
        std::istringstream words(list == nullptr ? "" : list);
        for (std::string folder; std::getline(words, folder, ':');) {
            if (!folder.empty()) {
                folders.push_back(folder);
            }
        }
    };
    append(std::getenv("QUIVER_PACKS"));
    folders.push_back(cache_folder());
    append(QUIVER_PACK_FOLDERS);
    return folders;
}

}  // namespace

KernelPack::~KernelPack() {
    static_cast<void>(::close(file_));
}

std::shared_ptr<const KernelPack> KernelPack::open(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return nullptr;
    }
    const std::shared_ptr<KernelPack> pack(new KernelPack(file));
    const auto header = read_at(file, 0, header_bytes);
    if (!header || header->compare(0, magic.size(), magic) != 0) {
        return nullptr;
    }
    std::istringstream words(header->substr(magic.size()));
    std::size_t index_bytes = 0;
    std::string sum;
    constexpr std::size_t most_index_bytes = 64 << 20;
    if (!(words >> index_bytes >> sum) || index_bytes > most_index_bytes) {
        return nullptr;
    }
    const auto index = read_at(file, header_bytes, index_bytes);
    if (!index || hex(hash(*index)) != sum) {
        return nullptr;
    }
    std::istringstream lines(*index);
    std::uint64_t offset = header_bytes + index_bytes;
    std::string name;
    Entry entry{};
    while (lines >> name >> entry.stored >> entry.bytes) {
        entry.offset = offset;
        pack->entries_.emplace(name, entry);
        offset += entry.stored;
    }
    return pack;
}

std::optional<std::string> KernelPack::find(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
        return std::nullopt;
    }
    const Entry& entry = found->second;
    const auto stored = read_at(file_, entry.offset, entry.stored);
    std::string record(entry.bytes, '\0');
    uLongf bytes = entry.bytes;
    if (!stored ||
        uncompress(reinterpret_cast<Bytef*>(record.data()), &bytes,
                   reinterpret_cast<const Bytef*>(stored->data()), stored->size()) != Z_OK ||
        bytes != entry.bytes) {
        return std::nullopt;
    }
    return record;
}

void KernelPack::write(const std::string& path,
                       const std::vector<std::pair<std::string, std::string>>& records) {
    std::string index;
    std::string content;
    for (const auto& [name, record] : records) {
        const std::string stored = compressed(record);
        index +=
            name + " " + std::to_string(stored.size()) + " " + std::to_string(record.size()) + "\n";
        content += stored;
    }
    OutputFile(path).require_regular_file("a pack of kernels");
    write_output(path, header_of(index) + index + content);
    // The file must be readable for other users of a shared folder.
    if (::chmod(path.c_str(), 0644) != 0) {
        throw Error(ErrorKind::other, "cannot write " + path + ": " + std::strerror(errno));
    }
}

std::string KernelPack::file_name(const std::string& arch) {
    return "quiver-" + arch + ".pack";
}

std::vector<std::shared_ptr<const KernelPack>> KernelPack::installed(const std::string& arch) {
    std::vector<std::shared_ptr<const KernelPack>> packs;
    for (const std::string& folder : pack_folders()) {
        if (auto pack = folder.empty() ? nullptr : open(folder + "/" + file_name(arch))) {
            packs.push_back(std::move(pack));
        }
    }
    return packs;
}

}  // namespace quiver::cuda
