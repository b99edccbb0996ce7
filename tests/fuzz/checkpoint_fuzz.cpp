// SPDX-License-Identifier: BSD-3-Clause
// Reads any bytes as a part of a checkpoint. The bytes must be refused with one line, or give a
// state from which a solver resumes or which it refuses. An input that begins with F is read as the
// file of a rank, with a manifest that matches it. Any other input is read as a manifest twice:
// unchanged, and with a corrected checksum.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/checkpoint/checkpoint_folder.hpp"
#include "apps/matrices/generators.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/fuzz/fuzz_support.hpp"

namespace quiver::fuzz {
namespace {

using apps::CheckpointFolder;
using apps::CheckpointManifest;
using apps::FolderState;

constexpr Method methods[] = {Method::lanczos, Method::chebyshev, Method::lobpcg,
                              Method::jacobi_davidson, Method::filter};

/// Gives a solver one state.
class Given : public Checkpoint<double> {
  public:
    explicit Given(const SavedState<double>* saved) : saved_(saved) {}
    bool due() override { return false; }
    const SavedState<double>* saved() const override { return saved_; }
    void save(Context&, const SolverState<double>&) override {}

  private:
    const SavedState<double>* saved_;
};

/// A folder with one generation, whose two files can be replaced, and runs that resume from it.
class Harness {
  public:
    Harness() {
        std::string name = (std::filesystem::temp_directory_path() / "quiver-fuzz-XXXXXX").string();
        require(::mkdtemp(name.data()) != nullptr, "mkdtemp failed");
        folder_ = name;
        for (std::size_t at = 0; at < std::size(methods); ++at) {
            record(at);
        }
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            std::filesystem::remove(entry.path());
        }
        std::filesystem::create_symlink(manifest_file_.path(), folder_ / apps::manifest_name(0));
        std::filesystem::create_symlink(rank_file_.path(), folder_ / apps::rank_file_name(0, 0));
    }
    Harness(const Harness&) = delete;
    Harness& operator=(const Harness&) = delete;
    ~Harness() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    void take_manifest(const std::string& text) {
        parse(text);
        const std::size_t line = text.find('\n');
        const std::string body = line == std::string::npos ? text : text.substr(line + 1);
        std::optional<CheckpointManifest> manifest =
            parse("{\"crc64\": \"" + apps::to_hex(apps::crc64(body.data(), body.size())) + "\",\n" +
                  body);
        if (!manifest) {
            return;
        }
        require(apps::parse_manifest(apps::to_text(*manifest), "again") == *manifest,
                "a written manifest has other contents");
        const std::size_t method = method_of(manifest->solver);
        manifest->generation = 0;
        manifest->files.resize(1, recorded_[method].manifest.files.front());
        manifest->files.front() = recorded_[method].manifest.files.front();
        manifest->offsets = {0, manifest->offsets.back()};
        go_on(*manifest, recorded_[method].rank_file, method);
    }

    void take_rank_file(std::span<const std::uint8_t> bytes) {
        constexpr std::size_t lanczos = 0;
        CheckpointManifest manifest = recorded_[lanczos].manifest;
        manifest.files.front() = {static_cast<std::int64_t>(bytes.size()),
                                  apps::crc64(bytes.data(), bytes.size())};
        go_on(manifest, {bytes.begin(), bytes.end()}, lanczos);
    }

  private:
    struct Recorded {
        CheckpointManifest manifest;
        std::vector<std::uint8_t> rank_file;
    };

    static std::size_t method_of(const std::string& solver) {
        for (std::size_t at = 0; at < std::size(methods); ++at) {
            if (solver == to_string(methods[at])) {
                return at;
            }
        }
        return 0;
    }
    static EigenOptions options(std::size_t method) {
        EigenOptions result;
        result.k = 2;
        result.method = methods[method];
        result.max_basis = method == 0 ? 10 : 0;
        result.max_iterations = 40;
        if (methods[method] == Method::filter) {
            result.window = Window{1.9, 2.1};
        }
        return result;
    }
    static std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    /// Records the checkpoint that an early stopped run of the method leaves.
    void record(std::size_t method) {
        const std::filesystem::path place = folder_ / "record";
        std::filesystem::create_directory(place);
        CheckpointFolder<double> checkpoint(ctx_, {place.string(), 0, std::nullopt},
                                            matrix_.row_map(), {{"-k", "2"}});
        EigenProblem<double> problem{matrix_};
        problem.checkpoint = &checkpoint;
        EigenOptions early = options(method);
        int reports = 0;
        early.keep_going = [&](const IterationEvent&) { return ++reports < 2; };
        eigensolve(ctx_, problem, early);
        const std::vector<std::int64_t> there = apps::generations_in(place.string());
        require(!there.empty(), std::string("no state of ") + to_string(methods[method]));
        const std::vector<std::uint8_t> text = bytes_of(place / apps::manifest_name(there.front()));
        recorded_[method].manifest =
            apps::parse_manifest({text.begin(), text.end()}, "recorded manifest");
        recorded_[method].manifest.generation = 0;
        recorded_[method].rank_file = bytes_of(place / apps::rank_file_name(there.front(), 0));
        std::filesystem::remove_all(place);
    }

    static std::optional<CheckpointManifest> parse(const std::string& text) {
        try {
            return apps::parse_manifest(text, "manifest");
        } catch (const Error& error) {
            require(error.kind() == ErrorKind::input,
                    std::string("not an input error: ") + error.what());
            require_message(error.what(), "manifest");
            return std::nullopt;
        }
    }

    void go_on(const CheckpointManifest& manifest, const std::vector<std::uint8_t>& rank_file,
               std::size_t method) {
        const std::string text = apps::to_text(manifest);
        manifest_file_.assign({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
        rank_file_.assign(rank_file);
        try {
            const auto state =
                FolderState<double>::open(ctx_.comm(), folder_.string(), 0, matrix_.row_map());
            Given given(state.get());
            EigenProblem<double> problem{matrix_};
            problem.checkpoint = &given;
            eigensolve(ctx_, problem, options(method));
        } catch (const Error& error) {
            require(error.kind() == ErrorKind::input || error.kind() == ErrorKind::shape ||
                        error.kind() == ErrorKind::numerical,
                    std::string("no input, shape or numerical error: ") + error.what());
            require_message(error.what(), "");
        }
    }

    std::filesystem::path folder_;
    Context ctx_;
    SparseMatrix<double> matrix_{ctx_,
                                 apps::generate<double>(ctx_.comm(), "gen:laplace1d,nx=60", 1)};
    std::array<Recorded, std::size(methods)> recorded_;
    MemoryFile manifest_file_;
    MemoryFile rank_file_;
};

}  // namespace
}  // namespace quiver::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static quiver::fuzz::Harness harness;
    if (size > 0 && data[0] == 'F') {
        harness.take_rank_file({data + 1, size - 1});
    } else {
        harness.take_manifest({reinterpret_cast<const char*>(data), size});
    }
    return 0;
}
