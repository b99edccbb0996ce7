// SPDX-License-Identifier: BSD-3-Clause
// Tests the cache of compiled programs: entries are found again, recompiled if damaged, and shared;
// a cache that fails causes no error. Needs no GPU.
#include "kernels/cuda/cubin_cache.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

namespace quiver::cuda {
namespace {

namespace fs = std::filesystem;

class CubinCacheTest : public ::testing::Test {
  protected:
    CubinCacheTest() {
        std::string name = (fs::temp_directory_path() / "quiver_cache_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        folder = name;
    }
    ~CubinCacheTest() override { fs::remove_all(folder); }

    std::string read(const fs::path& path) const {
        std::ostringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        return text.str();
    }
    void write(const fs::path& path, const std::string& text) const {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    }

    fs::path folder;
    const CompileRequest request{
        "column_ops.cuh", {"quiver::fill<double>", "quiver::axpby<float>"}, "sm_90"};
};

TEST_F(CubinCacheTest, FindsAProgramAgain) {
    CubinCache first((folder / "a" / "b").string());
    const auto compiled = first.get(request);
    CubinCache second((folder / "a" / "b").string());
    const auto found = second.get(request);

    EXPECT_EQ(first.compilations(), 1);
    EXPECT_EQ(second.compilations(), 0);
    ASSERT_FALSE(compiled.image.empty());
    EXPECT_EQ(found.image, compiled.image);
    EXPECT_EQ(found.lowered_names, compiled.lowered_names);
    EXPECT_EQ(found.lowered_names.size(), 2u);
    EXPECT_EQ(fs::status(folder / "a" / "b").permissions(), fs::perms::owner_all);
}

TEST_F(CubinCacheTest, KeepsRequestsApart) {
    const CubinCache cache(folder.string());
    CompileRequest other = request;
    other.arch = "sm_80";
    EXPECT_NE(cache.path(request), cache.path(other));
    other = request;
    other.options = {"-lineinfo"};
    EXPECT_NE(cache.path(request), cache.path(other));
    other = request;
    other.expressions.pop_back();
    EXPECT_NE(cache.path(request), cache.path(other));
}

TEST_F(CubinCacheTest, RecompilesWhatIsBroken) {
    CubinCache first(folder.string());
    const auto good = first.get(request);
    const std::string path = first.path(request);
    const std::string text = read(path);
    std::string flipped = text;
    flipped[text.size() / 2] = static_cast<char>(flipped[text.size() / 2] ^ 1);
    CompileRequest other = request;
    other.arch = "sm_80";
    static_cast<void>(first.get(other));

    const std::string broken[] = {flipped,
                                  text.substr(0, text.size() - 1),
                                  text + "x",
                                  "",
                                  "not a cubin",
                                  "quiver cubin 1 18446744073709551615 1 1 0\n",
                                  read(first.path(other))};
    for (const std::string& content : broken) {
        ASSERT_NE(content, text);
        write(path, content);
        CubinCache mending(folder.string());
        EXPECT_EQ(mending.get(request).image, good.image);
        EXPECT_EQ(mending.compilations(), 1);
        EXPECT_EQ(read(path), text);
    }
}

TEST_F(CubinCacheTest, WorksWithoutAFolder) {
    write(folder / "file", "");
    for (const std::string& unusable : {(folder / "file" / "cache").string(), std::string()}) {
        CubinCache cache(unusable);
        EXPECT_FALSE(cache.get(request).image.empty());
        EXPECT_FALSE(cache.get(request).image.empty());
        EXPECT_EQ(cache.compilations(), 2);
    }
}

TEST_F(CubinCacheTest, ThreadsCompileOnce) {
    CubinCache caches[] = {CubinCache(folder.string()), CubinCache(folder.string())};
    CompiledProgram programs[2];
    std::thread other([&] { programs[0] = caches[0].get(request); });
    programs[1] = caches[1].get(request);
    other.join();

    EXPECT_EQ(caches[0].compilations() + caches[1].compilations(), 1);
    EXPECT_EQ(programs[0].image, programs[1].image);
}

TEST_F(CubinCacheTest, ProcessesCompileOnce) {
    int compilations = 0;
    pid_t children[2];
    for (pid_t& child : children) {
        child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            int status = 99;
            try {
                CubinCache cache(folder.string());
                const bool whole = cache.get(request).lowered_names.size() == 2;
                status = whole ? cache.compilations() : 98;
            } catch (...) {
            }
            ::_exit(status);
        }
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status));
        compilations += WEXITSTATUS(status);
    }

    EXPECT_EQ(compilations, 1);
    for (const auto& entry : fs::directory_iterator(folder)) {
        EXPECT_EQ(entry.path().filename().string().find("writing"), std::string::npos)
            << "temporary file remains: " << entry.path();
    }
}

TEST_F(CubinCacheTest, DoesNotWaitForever) {
    CubinCache cache(folder.string(), std::chrono::milliseconds(50));
    const std::string path = cache.path(request) + ".lock";
    const int stuck = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_GE(stuck, 0);
    ASSERT_EQ(::flock(stuck, LOCK_EX | LOCK_NB), 0);

    EXPECT_FALSE(cache.get(request).image.empty());
    EXPECT_EQ(cache.compilations(), 1);
    ::close(stuck);
}

TEST_F(CubinCacheTest, FolderComesFromTheEnvironment) {
    const char* const names[] = {"QUIVER_CACHE", "XDG_CACHE_HOME", "HOME"};
    std::vector<std::pair<bool, std::string>> before;
    for (const char* name : names) {
        const char* value = std::getenv(name);
        before.emplace_back(value != nullptr, value != nullptr ? value : "");
    }

    ::setenv("QUIVER_CACHE", "/q", 1);
    ::setenv("XDG_CACHE_HOME", "/x", 1);
    ::setenv("HOME", "/h", 1);
    EXPECT_EQ(cache_folder(), "/q");
    ::setenv("QUIVER_CACHE", "", 1);
    EXPECT_EQ(cache_folder(), "/x/quiver");
    ::unsetenv("XDG_CACHE_HOME");
    EXPECT_EQ(cache_folder(), "/h/.cache/quiver");
    ::unsetenv("HOME");
    EXPECT_EQ(cache_folder(), "");

    for (std::size_t i = 0; i < before.size(); ++i) {
        before[i].first ? ::setenv(names[i], before[i].second.c_str(), 1) : ::unsetenv(names[i]);
    }
}

}  // namespace
}  // namespace quiver::cuda
