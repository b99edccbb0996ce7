// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/program_record.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cuda/hash.hpp"

namespace quiver::cuda {
namespace {

constexpr std::string_view magic = "quiver cubin 1";

/// The names in lines `#include "name"` and `#include <name>`.
std::vector<std::string> included_names(const char* text) {
    std::vector<std::string> names;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        const std::size_t open = line.find_first_of("\"<");
        if (line.starts_with("#include") && open != std::string::npos) {
            names.push_back(line.substr(open + 1, line.find_first_of("\">", open + 1) - open - 1));
        }
    }
    return names;
}

void add_with_includes(std::span<const EmbeddedSource> sources, const std::string& name,
                       std::map<std::string, const char*>& texts) {
    const auto found = std::find_if(sources.begin(), sources.end(),
                                    [&](const auto& source) { return name == source.name; });
    if (found != sources.end() && texts.emplace(name, found->text).second) {
        for (const std::string& included : included_names(found->text)) {
            add_with_includes(sources, included, texts);
        }
    }
}

/// The hash_with_includes() of every embedded source.
std::map<std::string, std::uint64_t> hash_embedded_sources() {
    std::map<std::string, std::uint64_t> hashes;
    for (const EmbeddedSource& source : embedded_sources()) {
        hashes[source.name] = hash_with_includes(embedded_sources(), source.name);
    }
    return hashes;
}

std::string join(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        text += line + "\n";
    }
    return text;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::uint64_t checksum(const std::string& key, const std::string& names, const std::string& image) {
    return hash(image, hash(names, hash(key)));
}

}  // namespace

std::uint64_t hash_with_includes(std::span<const EmbeddedSource> sources, const std::string& name) {
    std::map<std::string, const char*> texts;
    add_with_includes(sources, name, texts);
    std::uint64_t result = hash_start;
    for (const auto& [included, text] : texts) {
        result = hash(text, hash(included, result));
    }
    return result;
}

std::string key_of(const CompileRequest& request) {
    // The same for all requests of a process.
    static const std::string version = "; NVRTC " + nvrtc_version() + ", sources ";
    static const std::map<std::string, std::uint64_t> hashes = hash_embedded_sources();
    const auto found = hashes.find(request.source);
    return describe(request) + version + hex(found == hashes.end() ? hash_start : found->second);
}

std::string record_name(const std::string& key) {
    const std::uint64_t first = hash(key);
    return hex(first) + hex(hash(key, ~first));
}

std::string to_record(const std::string& key, const CompiledProgram& program) {
    const std::string names = join(program.lowered_names);
    std::string record(magic);
    for (const std::size_t bytes : {key.size(), names.size(), program.image.size()}) {
        record += " " + std::to_string(bytes);
    }
    return record + " " + hex(checksum(key, names, program.image)) + "\n" + key + names +
           program.image;
}

std::optional<CompiledProgram> from_record(const std::string& record, const std::string& key,
                                           std::size_t expressions) {
    const std::size_t header_end = record.find('\n');
    if (header_end == std::string::npos || record.compare(0, magic.size(), magic) != 0) {
        return std::nullopt;
    }
    std::istringstream header(record.substr(magic.size(), header_end - magic.size()));
    std::size_t key_bytes = 0;
    std::size_t names_bytes = 0;
    std::size_t image_bytes = 0;
    std::string sum;
    header >> key_bytes >> names_bytes >> image_bytes >> sum;
    std::size_t left = record.size() - header_end - 1;
    for (const std::size_t part : {key_bytes, names_bytes, image_bytes}) {
        if (part > left) {
            return std::nullopt;
        }
        left -= part;
    }
    const std::string stored_key = record.substr(header_end + 1, key_bytes);
    const std::string names = record.substr(header_end + 1 + key_bytes, names_bytes);
    CompiledProgram result;
    result.image = record.substr(header_end + 1 + key_bytes + names_bytes, image_bytes);
    result.lowered_names = split(names);
    if (!header || left != 0 || stored_key != key || result.lowered_names.size() != expressions ||
        sum != hex(checksum(key, names, result.image))) {
        return std::nullopt;
    }
    return result;
}

bool write_whole(const std::string& folder, const std::string& path, const std::string& content,
                 unsigned mode) {
    std::string aside = folder + "/writing.XXXXXX";
    const int file = ::mkstemp(aside.data());
    if (file < 0) {
        return false;
    }
    std::size_t done = 0;
    while (done < content.size()) {
        const ssize_t count = ::write(file, content.data() + done, content.size() - done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    const bool readable = ::fchmod(file, mode) == 0;
    const bool closed = ::close(file) == 0 && readable;
    if (done != content.size() || !closed || ::rename(aside.c_str(), path.c_str()) != 0) {
        static_cast<void>(::unlink(aside.c_str()));
        return false;
    }
    return true;
}

}  // namespace quiver::cuda
