// SPDX-License-Identifier: BSD-3-Clause
// Runs a fuzz target without libFuzzer: on all files of a corpus, then on mutations of them. Usage:
// fuzz_NAME CORPUS [RUNS] [SEED]. Each input is first stored in fuzz_NAME.input, so that a failure
// can be repeated with this file as CORPUS.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(in), {});
}

class Mutator {
  public:
    Mutator(std::vector<Bytes> corpus, std::uint64_t seed)
        : corpus_(std::move(corpus)), random_(seed) {}

    Bytes next() {
        Bytes bytes = corpus_[below(corpus_.size())];
        const std::size_t changes = 1 + below(4);
        for (std::size_t i = 0; i < changes; ++i) {
            change(bytes);
        }
        return bytes;
    }

  private:
    std::size_t below(std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
    }
    void insert(Bytes& bytes, std::string_view text) {
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)),
                     text.begin(), text.end());
    }
    void change(Bytes& bytes) {
        static constexpr std::string_view words[] = {"\n",
                                                     "\r\n",
                                                     " ",
                                                     "%",
                                                     "\t",
                                                     ",",
                                                     "=",
                                                     "-1",
                                                     "0",
                                                     "1e308",
                                                     "1e-320",
                                                     "nan",
                                                     "inf",
                                                     "9223372036854775807",
                                                     "9223372036854775808",
                                                     "0x1p3",
                                                     "symmetric",
                                                     "hermitian",
                                                     "skew-symmetric",
                                                     "array",
                                                     "complex",
                                                     "pattern",
                                                     "integer",
                                                     "general",
                                                     "nx=2",
                                                     "boundary=periodic",
                                                     "L=4",
                                                     "seed=0",
                                                     "1 1 1\n",
                                                     "2 1 3.5\n",
                                                     "\xef\xbb\xbf"};
        const std::size_t at = bytes.empty() ? 0 : below(bytes.size());
        const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t length =
            bytes.empty() ? 0 : 1 + below(std::min<std::size_t>(bytes.size() - at, 16));
        const auto end = place + static_cast<std::ptrdiff_t>(length);
        switch (below(6)) {
            case 0:
                insert(bytes, words[below(std::size(words))]);
                break;
            case 1:
                if (!bytes.empty()) {
                    bytes[at] ^= static_cast<std::uint8_t>(1u << below(8));
                }
                break;
            case 2:
                bytes.erase(place, end);
                break;
            case 3: {
                const Bytes part(place, end);
                insert(bytes, {reinterpret_cast<const char*>(part.data()), part.size()});
                break;
            }
            case 4: {
                const Bytes& other = corpus_[below(corpus_.size())];
                bytes.resize(at);
                bytes.insert(bytes.end(),
                             other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1)),
                             other.end());
                break;
            }
            default:
                if (!bytes.empty()) {
                    bytes[at] = static_cast<std::uint8_t>('0' + below(10));
                }
        }
    }

    std::vector<Bytes> corpus_;
    std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s CORPUS [RUNS] [SEED]\n", argv[0]);
        return 2;
    }
    const std::filesystem::path given = argv[1];
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(given)) {
        for (const auto& entry : std::filesystem::directory_iterator(given)) {
            files.push_back(entry.path());
        }
        std::sort(files.begin(), files.end());
    } else {
        files.push_back(given);
    }
    const std::string under_way = std::string(argv[0]) + ".input";
    const auto run = [&](const Bytes& bytes) {
        std::ofstream(under_way, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    };
    std::vector<Bytes> corpus;
    for (const auto& file : files) {
        corpus.push_back(read_file(file));
        std::printf("%s\n", file.c_str());
        std::fflush(stdout);
        run(corpus.back());
    }
    if (corpus.empty()) {
        std::fprintf(stderr, "no files in %s\n", argv[1]);
        return 2;
    }
    const long runs = argc > 2 ? std::atol(argv[2]) : 0;
    const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    std::printf("%ld mutations of %zu files, seed %llu\n", runs, corpus.size(),
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    Mutator mutator(std::move(corpus), seed);
    for (long i = 0; i < runs; ++i) {
        run(mutator.next());
    }
    std::filesystem::remove(under_way);
}
