// SPDX-License-Identifier: BSD-3-Clause
#include "apps/checkpoint/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int format = 1;
constexpr std::string_view prefix = "checkpoint-";
constexpr std::string_view suffix = ".json";
constexpr std::string_view sum_begin = "{\"crc64\": \"";
constexpr std::string_view sum_end = "\",\n";
constexpr std::size_t sum_digits = 16;

ordered_json shapes_to_json(const std::map<std::string, CheckpointManifest::Shape>& shapes) {
    ordered_json result = ordered_json::object();
    for (const auto& [name, shape] : shapes) {
        result[name] = {shape.rows, shape.cols};
    }
    return result;
}

/// Reads the parts of a manifest. Throws InputError for an invalid part.
class Reader {
  public:
    Reader(const json& object, std::string origin) : object_(object), origin_(std::move(origin)) {}

    [[noreturn]] void refuse(const std::string& why) const {
        throw InputError(origin_ + ": " + why);
    }
    const json& part(const char* name, json::value_t type) const {
        const auto at = object_.find(name);
        if (at == object_.end() || at->type() != type) {
            refuse(std::string("no valid ") + name);
        }
        return *at;
    }
    /// A string without control characters.
    std::string text(const json& value, const char* what) const {
        std::string result = value.is_string() ? value.get<std::string>() : "\n";
        for (const char letter : result) {
            const auto code = static_cast<unsigned char>(letter);
            if (code < 0x20 || code == 0x7f) {
                refuse(std::string(what) + ": a text without control characters is wanted");
            }
        }
        return result;
    }
    /// A whole number from 0 to `most`.
    std::int64_t whole(const json& value, std::int64_t most, const char* what) const {
        if (!value.is_number_unsigned() ||
            value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
            refuse(fmt::format("{}: a whole number from 0 to {} is wanted", what, most));
        }
        return value.get<std::int64_t>();
    }
    CheckpointManifest::Shape shape(const json& value) const {
        if (!value.is_array() || value.size() != 2) {
            refuse("rows and columns of each block are wanted");
        }
        return {whole(value[0], INT64_MAX, "rows"),
                static_cast<int>(whole(value[1], INT_MAX, "columns"))};
    }
    std::map<std::string, CheckpointManifest::Shape> shapes(const char* of) const {
        std::map<std::string, CheckpointManifest::Shape> result;
        for (const auto& [name, value] : part(of, json::value_t::object).items()) {
            result[text(name, of)] = shape(value);
        }
        return result;
    }
    StateNumbers numbers() const {
        StateNumbers result;
        for (const auto& [name, list] : part("numbers", json::value_t::object).items()) {
            std::vector<double>& values = result[text(name, "numbers")];
            if (!list.is_array()) {
                refuse("an entry of numbers is not a list");
            }
            for (const json& value : list) {
                if (!value.is_number() || !std::isfinite(value.get<double>())) {
                    refuse("an entry of numbers is not a finite number");
                }
                values.push_back(value.get<double>());
            }
        }
        return result;
    }
    CheckpointIdentity identity() const {
        CheckpointIdentity result;
        for (const json& pair : part("identity", json::value_t::array)) {
            if (!pair.is_array() || pair.size() != 2) {
                refuse("an entry of identity is not a name with a value");
            }
            result.emplace_back(text(pair[0], "identity"), text(pair[1], "identity"));
        }
        return result;
    }

  private:
    const json& object_;
    std::string origin_;
};

std::uint64_t from_hex(const std::string& digits, const Reader& reader) {
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
    if (digits.size() != sum_digits || error != std::errc() || stop != end) {
        reader.refuse("a checksum is not a number of 16 hexadecimal digits");
    }
    return value;
}

CheckpointManifest read_parts(const Reader& reader) {
    CheckpointManifest manifest;
    const std::int64_t version =
        reader.whole(reader.part("format", json::value_t::number_unsigned), INT64_MAX, "format");
    if (version != format) {
        reader.refuse(fmt::format("format {}; this quiver reads format {}", version, format));
    }
    manifest.generation = reader.whole(reader.part("generation", json::value_t::number_unsigned),
                                       INT64_MAX - 1, "generation");
    manifest.identity = reader.identity();
    manifest.scalar = reader.text(reader.part("scalar", json::value_t::string), "scalar");
    manifest.solver = reader.text(reader.part("solver", json::value_t::string), "solver");
    manifest.numbers = reader.numbers();
    manifest.blocks = reader.shapes("blocks");
    manifest.matrices = reader.shapes("matrices");
    for (const json& row : reader.part("offsets", json::value_t::array)) {
        manifest.offsets.push_back(reader.whole(row, INT64_MAX, "offsets"));
    }
    for (const json& file : reader.part("files", json::value_t::array)) {
        if (!file.is_array() || file.size() != 2 || !file[1].is_string()) {
            reader.refuse("bytes and checksum of each file are wanted");
        }
        manifest.files.push_back({reader.whole(file[0], INT64_MAX, "bytes"),
                                  from_hex(file[1].get<std::string>(), reader)});
    }
    const std::vector<std::int64_t>& offsets = manifest.offsets;
    if (manifest.files.empty() || offsets.size() != manifest.files.size() + 1 ||
        offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end())) {
        reader.refuse(fmt::format("{} files do not match {} row offsets", manifest.files.size(),
                                  offsets.size()));
    }
    for (const auto& [name, shape] : manifest.blocks) {
        if (shape.rows != offsets.back()) {
            reader.refuse(fmt::format("block {} has {} rows, the files have {}", name, shape.rows,
                                      offsets.back()));
        }
    }
    return manifest;
}

/// The number in the name "checkpoint-NUMBER" + rest; -1 for any other name. Sets `rest`.
std::int64_t generation_of(std::string_view name, std::string_view& rest) {
    if (!name.starts_with(prefix)) {
        return -1;
    }
    std::int64_t generation = -1;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, generation);
    rest = name.substr(static_cast<std::size_t>(stop - name.data()));
    return error == std::errc() && generation < INT64_MAX ? generation : -1;
}

/// Calls `visit` for every file of a checkpoint in the folder, with its path, its generation and
/// the rest of its name.
void visit_files(const std::string& folder,
                 const std::function<void(const std::filesystem::path&, std::int64_t,
                                          std::string_view)>& visit) {
    std::error_code error;
    for (auto at = std::filesystem::directory_iterator(folder, error);
         !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
        const std::string name = at->path().filename().string();
        std::string_view rest;
        const std::int64_t generation = generation_of(name, rest);
        if (generation >= 0 && (rest.starts_with(suffix) || rest.starts_with("-rank-"))) {
            visit(at->path(), generation, rest);
        }
    }
}

}  // namespace

std::string to_text(const CheckpointManifest& manifest) {
    ordered_json identity = ordered_json::array();
    for (const auto& [name, value] : manifest.identity) {
        identity.push_back({name, value});
    }
    ordered_json numbers = ordered_json::object();
    for (const auto& [name, values] : manifest.numbers) {
        numbers[name] = values;
    }
    ordered_json files = ordered_json::array();
    for (const FileSum& file : manifest.files) {
        files.push_back({file.bytes, to_hex(file.crc)});
    }
    const ordered_json object = {
        {"format", format},
        {"generation", manifest.generation},
        {"identity", std::move(identity)},
        {"scalar", manifest.scalar},
        {"solver", manifest.solver},
        {"numbers", std::move(numbers)},
        {"blocks", shapes_to_json(manifest.blocks)},
        {"matrices", shapes_to_json(manifest.matrices)},
        {"offsets", manifest.offsets},
        {"files", std::move(files)},
    };
    // One line for each part; the opening brace is in the line of the checksum.
    std::string text;
    for (const auto& [name, value] : object.items()) {
        text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ",\n", name,
                            value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    }
    text += "\n}\n";
    return std::string(sum_begin) + to_hex(crc64(text.data(), text.size())) + std::string(sum_end) +
           text;
}

CheckpointManifest parse_manifest(const std::string& text, const std::string& origin) {
    const std::size_t head = sum_begin.size() + sum_digits + sum_end.size();
    const std::string_view all = text;
    if (all.size() < head || !all.starts_with(sum_begin) ||
        all.substr(head - sum_end.size(), sum_end.size()) != sum_end) {
        throw InputError(origin +
                         ": not the manifest of a checkpoint, or its first line is damaged");
    }
    const std::string_view body = all.substr(head);
    if (all.substr(sum_begin.size(), sum_digits) != to_hex(crc64(body.data(), body.size()))) {
        throw InputError(origin + ": its checksum does not match its content");
    }
    constexpr bool throws = false;
    const json object = json::parse("{" + std::string(body), nullptr, throws);
    if (!object.is_object()) {
        throw InputError(origin + ": not a JSON object");
    }
    return read_parts(Reader(object, origin));
}

std::string manifest_name(std::int64_t generation) {
    return fmt::format("{}{:06}{}", prefix, generation, suffix);
}

std::string rank_file_name(std::int64_t generation, int rank) {
    return fmt::format("{}{:06}-rank-{:04}.h5", prefix, generation, rank);
}

std::vector<std::int64_t> generations_in(const std::string& folder) {
    std::vector<std::int64_t> result;
    visit_files(folder,
                [&](const std::filesystem::path& path, std::int64_t generation, std::string_view) {
                    if (path.filename() == manifest_name(generation)) {
                        result.push_back(generation);
                    }
                });
    std::sort(result.rbegin(), result.rend());
    return result;
}

void remove_generations(const std::string& folder,
                        const std::function<bool(std::int64_t)>& unwanted) {
    std::vector<std::filesystem::path> manifests;
    std::vector<std::filesystem::path> others;
    visit_files(folder, [&](const std::filesystem::path& path, std::int64_t generation,
                            std::string_view rest) {
        if (unwanted(generation)) {
            (rest == suffix ? manifests : others).push_back(path);
        }
    });
    // Remove manifests first, so that no manifest remains without its files.
    for (const auto* paths : {&manifests, &others}) {
        for (const std::filesystem::path& path : *paths) {
            std::error_code ignored;
            std::filesystem::remove(path, ignored);
        }
    }
}

}  // namespace quiver::apps
