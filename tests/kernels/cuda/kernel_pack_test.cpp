// SPDX-License-Identifier: BSD-3-Clause
// Tests packs and the compile queue: kernels are found again, damaged packs are ignored, and a
// kernel that is requested twice is compiled once. Needs no GPU.
#include "kernels/cuda/kernel_pack.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "blockvec/error.hpp"
#include "kernels/cuda/compile_queue.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/program_record.hpp"
#include "kernels/warm.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::cuda {
namespace {

namespace fs = std::filesystem;

class KernelPackTest : public ::testing::Test {
  protected:
    KernelPackTest() {
        std::string name = (fs::temp_directory_path() / "quiver_pack_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        folder = name;
    }
    ~KernelPackTest() override { fs::remove_all(folder); }

    static CompileRequest fill(const char* scalar) {
        return {"column_ops.cuh", {std::string("quiver::fill<") + scalar + ">"}, "sm_90"};
    }
    /// Writes a pack with the program and a note; returns its path.
    std::string write_pack(const CompileRequest& request, const CompiledProgram& program) const {
        std::string path = (folder / KernelPack::file_name("sm_90")).string();
        const std::string key = key_of(request);
        KernelPack::write(path, {{record_name(key), to_record(key, program)}, {"note", "text"}});
        return path;
    }

    fs::path folder;
};

TEST_F(KernelPackTest, ACacheTakesProgramsFromAPack) {
    const CompileRequest request = fill("double");
    const CompiledProgram program = compile(request);
    const auto pack = KernelPack::open(write_pack(request, program));
    ASSERT_NE(pack, nullptr);
    EXPECT_EQ(pack->size(), 2u);
    EXPECT_EQ(pack->find("note"), "text");
    EXPECT_FALSE(pack->find("nothing").has_value());

    CubinCache cache("", {}, {pack});
    EXPECT_TRUE(cache.has(request));
    EXPECT_FALSE(cache.has(fill("float")));
    const CompiledProgram found = cache.get(request);
    EXPECT_EQ(cache.compilations(), 0);
    EXPECT_EQ(found.image, program.image);
    EXPECT_EQ(found.lowered_names, program.lowered_names);
}

TEST_F(KernelPackTest, DamageCostsACompilationOnly) {
    const CompileRequest request = fill("float");
    const CompiledProgram program = compile(request);
    const std::string path = write_pack(request, program);
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    const std::string whole = text.str();
    const auto compilations_with = [&](const std::string& content) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
        auto pack = KernelPack::open(path);
        CubinCache cache("", {}, pack ? CubinCache::Packs{pack} : CubinCache::Packs{});
        EXPECT_EQ(cache.get(request).image, program.image);
        return cache.compilations();
    };
    EXPECT_EQ(compilations_with(whole), 0);
    EXPECT_EQ(compilations_with(""), 1);
    EXPECT_EQ(compilations_with(whole.substr(0, 70)), 1);
    EXPECT_EQ(compilations_with(whole.substr(0, whole.size() / 2)), 1);
    for (const std::size_t at : {std::size_t{3}, std::size_t{80}, whole.size() / 2}) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ 4);
        EXPECT_EQ(compilations_with(flipped), 1) << "byte " << at;
    }
}

TEST_F(KernelPackTest, OtherUsersCanReadIt) {
    const CompileRequest request = fill("float");
    const auto mode = fs::status(write_pack(request, {"image", {"name"}, ""})).permissions();
    EXPECT_EQ(mode & fs::perms::others_read, fs::perms::others_read);
}

TEST(ProgramRecord, AKeyDependsOnASourceAndWhatItIncludes) {
    const std::vector<EmbeddedSource> sources = {
        {"a.cuh", "#pragma once\n#include \"b.cuh\"\nint a;\n"},
        {"b.cuh", "#include <cstdint>\n#include \"a.cuh\"\nint b;\n"},
        {"cstdint", "int c;\n"},
        {"d.cuh", "int d;\n"}};
    const auto hashes = [&](std::size_t changed) {
        std::vector<EmbeddedSource> edited = sources;
        if (changed < edited.size()) {
            edited[changed].text = "int other;\n";
        }
        std::vector<std::uint64_t> result;
        result.reserve(edited.size());
        for (const EmbeddedSource& source : edited) {
            result.push_back(hash_with_includes(edited, source.name));
        }
        return result;
    };
    const auto before = hashes(sources.size());
    EXPECT_NE(before[2], before[3]);
    const auto inner = hashes(2);
    EXPECT_NE(inner[0], before[0]);
    EXPECT_NE(inner[1], before[1]);
    EXPECT_NE(inner[2], before[2]);
    EXPECT_EQ(inner[3], before[3]);
    const auto apart = hashes(3);
    EXPECT_EQ(std::vector(apart.begin(), apart.end() - 1),
              std::vector(before.begin(), before.end() - 1));
    EXPECT_NE(apart[3], before[3]);
    // In the library, two sources that share their includes have different keys.
    EXPECT_NE(key_of({"tsmm.cuh", {"f"}, "sm_90"}), key_of({"tsmttsm.cuh", {"f"}, "sm_90"}));
    for (const EmbeddedSource& source : embedded_sources()) {
        std::istringstream text(source.text);
        for (std::string line; std::getline(text, line);) {
            if (const auto open = line.find('"');
                line.starts_with("#include") && open < line.size()) {
                const std::string name = line.substr(open + 1, line.rfind('"') - open - 1);
                EXPECT_TRUE(std::any_of(embedded_sources().begin(), embedded_sources().end(),
                                        [&](const auto& other) { return name == other.name; }))
                    << source.name << " includes " << name;
            }
        }
    }
}

TEST_F(KernelPackTest, TheQueueCompilesWhatIsRequestedAndOnlyOnce) {
    CubinCache caches[] = {CubinCache(folder.string()), CubinCache(folder.string())};
    const char* const scalars[] = {"float", "double", "quiver::Complex<float>",
                                   "quiver::Complex<double>"};
    {
        // Two queues with one folder, as of two ranks of a node.
        CompileQueue first(caches[0], 2);
        CompileQueue second(caches[1], 2);
        for (const char* scalar : scalars) {
            first.request(fill(scalar));
            first.request(fill(scalar));
            second.request(fill(scalar));
        }
        for (const char* scalar : scalars) {
            const CompiledProgram program = first.get(fill(scalar));
            EXPECT_EQ(program.lowered_names.size(), 1u);
            EXPECT_EQ(second.get(fill(scalar)).image, program.image);
        }
    }
    EXPECT_EQ(caches[0].compilations() + caches[1].compilations(), 4);
}

TEST_F(KernelPackTest, TheQueueReportsCompileErrorsToTheCaller) {
    CubinCache cache(folder.string());
    CompileQueue queue(cache, 1);
    const CompileRequest wrong{"column_ops.cuh", {"quiver::no_such_kernel<double>"}, "sm_90"};
    queue.request(wrong);
    EXPECT_FALSE(queue.ready(wrong));
    EXPECT_THROW(queue.get(wrong), DeviceError);
    // get() without a previous request():
    EXPECT_NO_THROW(queue.get(fill("double")));
    EXPECT_TRUE(queue.ready(fill("double")));
}

TEST_F(KernelPackTest, TheQueueWaitsForTasksAndRequests) {
    CubinCache cache(folder.string());
    CompileQueue queue(cache, 2);
    queue.wait();
    queue.run([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        queue.request(fill("float"));
        queue.request(fill("double"), true);
        queue.request({"column_ops.cuh", {"quiver::no_such_kernel<double>"}, "sm_90"});
    });
    queue.wait();
    EXPECT_TRUE(queue.ready(fill("float")));
    EXPECT_TRUE(queue.ready(fill("double")));
    EXPECT_EQ(cache.compilations(), 3);  // also the one that fails
}

TEST_F(KernelPackTest, TheQueueRunsTasksAndEndsWithWorkLeft) {
    CubinCache cache(folder.string());
    {
        CompileQueue queue(cache, 1);
        queue.run([&] {
            for (const char* scalar : {"float", "double"}) {
                queue.request(fill(scalar));
            }
            throw InputError("dropped");
        });
        while (!queue.ready(fill("float"))) {
            std::this_thread::yield();
        }
    }
    EXPECT_LE(cache.compilations(), 2);
    EXPECT_GE(cache.compilations(), 1);
}

/// All products of small operands share the kernels of a few widths, and these are in the pack.
TEST_F(KernelPackTest, ThePackHasTheKernelsOfSmallOperands) {
    const PackContents contents = pack_contents("sm_90", false);
    std::set<std::string> names;
    for (const KernelInstance& kernel : contents.kernels) {
        EXPECT_TRUE(names.insert(kernel.expression).second) << kernel.expression;
    }
    EXPECT_FALSE(contents.plans.empty());
    Context ctx;
    Planner planner(ctx, Machine());
    EXPECT_EQ(planner.version(), contents.version);
    auto random = test::make_generator();
    const auto check = [&]<class T>() {
        const auto pick = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(random);
        };
        for (int i = 0; i < 20; ++i) {
            const int n = pick(1, 16);
            const int m = pick(n, 64);
            for (const KernelInstance& kernel : kernels_of<T>(planner, {.rows = pick(1, 1000),
                                                                       .blocks = {n},
                                                                       .bases = {0, m},
                                                                       .stride = m,
                                                                       .kept = {0, n}})) {
                EXPECT_TRUE(names.contains(kernel.expression))
                    << m << " x " << n << ": " << kernel.expression;
            }
        }
        EXPECT_TRUE(sparse_kernels<T>({.widths = {0, -1}, .dots = true}).empty());
        for (const KernelInstance& kernel : column_kernels<T>()) {
            EXPECT_TRUE(names.contains(kernel.expression)) << kernel.expression;
        }
    };
    check.template operator()<float>();
    check.template operator()<double>();
    check.template operator()<std::complex<float>>();
    check.template operator()<std::complex<double>>();
}

/// The number of columns of a basis must not decide whether a solve waits for the compiler.
TEST_F(KernelPackTest, ThePackHasTheKernelsOfEveryBasis) {
    const PackContents contents = pack_contents("sm_90", false);
    std::set<std::string> names;
    for (const KernelInstance& kernel : contents.kernels) {
        names.insert(kernel.expression);
    }
    Context ctx;
    Planner planner(ctx, Machine());
    alignas(16) static std::byte memory[64];
    const auto check = [&]<class T>() {
        T* const x = reinterpret_cast<T*>(memory);
        T* const y = reinterpret_cast<T*>(memory + 32);
        for (const std::int64_t rows : {1'000, 10'000'000}) {
            for (int m = 67; m <= 1000; m += 31) {
                for (int n = 1; n <= 16; ++n) {
                    const bool streams = prefers_streams(dtype_v<T>, m, n);
                    if (!streams && rows > 1'000) {
                        continue;  // large operands may get kernels of their own
                    }
                    for (const int gap : {0, 1, 400}) {
                        KernelList list;
                        append_kernels(planner,
                                       TsmmArgs<T>{rows, m, n, T(1), x, m + gap, x, n, T(1), y, n},
                                       list);
                        ASSERT_GE(list.size(), 1u) << m << " x " << n;
                        ASSERT_LE(list.size(), streams && m <= 512 ? 1u : 2u) << m << " x " << n;
                        for (const KernelInstance& kernel : list) {
                            EXPECT_STREQ(kernel.source, streams ? "tsmm_streamed.cuh" : "tsmm.cuh")
                                << m << " x " << n;
                            EXPECT_TRUE(names.contains(kernel.expression))
                                << m << " x " << n << ": " << kernel.expression;
                        }
                    }
                }
            }
        }
    };
    check.template operator()<float>();
    check.template operator()<double>();
    check.template operator()<std::complex<float>>();
    check.template operator()<std::complex<double>>();
}

TEST_F(KernelPackTest, ThePackHasTheStreamedSumsOfEveryBasis) {
    const PackContents contents = pack_contents("sm_90", false);
    std::set<std::string> names;
    for (const KernelInstance& kernel : contents.kernels) {
        names.insert(kernel.expression);
    }
    Context ctx;
    Planner planner(ctx, Machine());
    alignas(16) static std::byte memory[64];
    std::size_t streamed = 0;
    const auto check = [&]<class T>() {
        T* const a = reinterpret_cast<T*>(memory);
        T* const b = reinterpret_cast<T*>(memory + 32);
        for (const std::int64_t rows : {1'000, 10'000'000}) {
            for (int m = 129; m <= 1400; m += 31) {
                for (int n = 1; n <= 16; ++n) {
                    if (prefers_cublas_tsmttsm(dtype_v<T>, m, n)) {
                        continue;
                    }
                    for (const int gap : {0, 1, 400}) {
                        const auto unit = Layout::of(a, m, m + gap, sizeof(T)).unit;
                        const int panel = streamed_sums_panel(dtype_v<T>, m, unit == 16);
                        const int panels = (m + panel - 1) / panel;
                        const int width = (m + panels - 1) / panels;
                        KernelList list;
                        append_kernels(
                            planner, TsmttsmArgs<T>{rows, m, n, T(1), a, m + gap, b, n, T(0), a, n},
                            list);
                        ASSERT_GE(list.size(), 1u) << m << " x " << n;
                        const bool streams = prefers_streamed_sums(dtype_v<T>, width, n);
                        for (const KernelInstance& kernel : list) {
                            ASSERT_STREQ(kernel.source,
                                         streams ? "tsmttsm_streamed.cuh" : "tsmttsm.cuh")
                                << m << " x " << n;
                            if (streams) {
                                ++streamed;
                                EXPECT_TRUE(names.contains(kernel.expression))
                                    << m << " x " << n << ": " << kernel.expression;
                            }
                        }
                    }
                }
            }
        }
    };
    check.template operator()<float>();
    check.template operator()<double>();
    check.template operator()<std::complex<float>>();
    check.template operator()<std::complex<double>>();
    EXPECT_GT(streamed, 1000u);
}

TEST_F(KernelPackTest, RefusesArchitecturesWithoutPacks) {
    for (const char* arch : {"sm_50", "compute_90", "", "H200"}) {
        EXPECT_THROW(pack_contents(arch, false), InputError) << arch;
    }
}

}  // namespace
}  // namespace quiver::cuda
