// SPDX-License-Identifier: BSD-3-Clause
// Tests outputs by name: files, links, pipes and character devices. The device is a pseudo terminal
// that the test creates; a link in the test's folder names it.
#include "kernels/output_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "blockvec/error.hpp"

namespace quiver {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
  protected:
    OutputFileTest() {
        std::string name = (fs::temp_directory_path() / "quiver-output-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("mkdtemp");
        }
        folder_ = name;
    }
    ~OutputFileTest() override { fs::remove_all(folder_); }

    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string text_of(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream(path(name)).rdbuf();
        return text.str();
    }
    std::int64_t entries() const {
        return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
    }
    static std::string refusal_of(const std::string& name) {
        try {
            const OutputFile output(name);
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    }

    fs::path folder_;
};

TEST_F(OutputFileTest, AFileAppearsWholeOrNotAtAll) {
    {
        OutputFile output(path("a"));
        const int file = output.open();
        EXPECT_EQ(::write(file, "part", 4), 4);
        ::close(file);
        EXPECT_FALSE(fs::exists(path("a")));
    }
    EXPECT_EQ(entries(), 0) << "an unpublished output is removed";
    OutputFile(path("a")).check();
    EXPECT_EQ(entries(), 0) << "a check leaves no file";
    write_output(path("a"), "one");
    write_output(path("a"), "two", true);
    EXPECT_EQ(text_of("a"), "two");
    EXPECT_EQ(entries(), 1);
}

TEST_F(OutputFileTest, MissingFoldersAreCreated) {
    OutputFile(path("checked/deep/a")).check();
    EXPECT_TRUE(fs::is_directory(path("checked/deep")));
    write_output(path("b/c/a"), "text");
    EXPECT_EQ(text_of("b/c/a"), "text");
}

TEST_F(OutputFileTest, AReplacedFileKeepsItsPermissions) {
    write_output(path("a"), "old");
    fs::create_symlink("a", path("link"));
    for (const auto mode : {fs::perms(0600), fs::perms(0664), fs::perms(0777), fs::perms(0400)}) {
        fs::permissions(path("a"), mode);
        write_output(path("link"), "new", true);
        EXPECT_EQ(fs::status(path("a")).permissions(), mode);
    }
}

TEST_F(OutputFileTest, LinksStayAndTheirTargetsAreWritten) {
    fs::create_directory(path("far"));
    std::ofstream(path("far/old")) << "old";
    fs::create_symlink("far/old", path("link"));
    fs::create_symlink("link", path("chain"));
    fs::create_symlink("far/new/file", path("dangling"));
    write_output(path("chain"), "new");
    EXPECT_EQ(text_of("far/old"), "new");
    write_output(path("dangling"), "made");
    EXPECT_EQ(text_of("far/new/file"), "made");
    for (const char* link : {"link", "chain", "dangling"}) {
        EXPECT_TRUE(fs::is_symlink(path(link))) << link;
    }
    EXPECT_EQ(entries(), 4);
    EXPECT_TRUE(same_output(path("chain"), path("far/old")));
    EXPECT_TRUE(same_output(path("dangling"), path("far/new/file")));
    EXPECT_FALSE(same_output(path("link"), path("dangling")));
    EXPECT_FALSE(same_output("-", path("link")));
    EXPECT_TRUE(same_output("-", "-"));
}

TEST_F(OutputFileTest, APipeIsWrittenDirectly) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    fs::create_symlink("pipe", path("link"));
    OutputFile(path("pipe")).check();  // does not wait for a reader
    for (const char* name : {"pipe", "link"}) {
        std::string got;
        std::thread reader([&] { got = text_of("pipe"); });
        write_output(path(name), "through the pipe");
        reader.join();
        EXPECT_EQ(got, "through the pipe");
    }
    EXPECT_TRUE(fs::is_fifo(path("pipe")));
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(entries(), 2);
}

TEST_F(OutputFileTest, ACharacterDeviceIsWrittenDirectly) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) {
        GTEST_SKIP() << "no pseudo terminal";
    }
    const std::string device = ::ptsname(terminal);
    // Stays open, because the terminal would otherwise drop the output before it is read.
    const int other_end = ::open(device.c_str(), O_RDWR | O_NOCTTY);
    fs::create_symlink(device, path("link"));
    OutputFile(path("link")).check();
    EXPECT_FALSE(OutputFile(path("link")).is_regular_file());
    write_output(path("link"), "text");
    char got[5] = {};
    EXPECT_EQ(::read(terminal, got, 4), 4);
    EXPECT_STREQ(got, "text");
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_TRUE(fs::is_character_file(device));
    EXPECT_EQ(entries(), 1);
    ::close(other_end);
    ::close(terminal);
}

TEST_F(OutputFileTest, WhatCannotBeAnOutputIsRefused) {
    EXPECT_NE(refusal_of("").find("cannot write '': "), std::string::npos);
    EXPECT_NE(refusal_of(path("")).find("it is a directory"), std::string::npos);
    EXPECT_NE(refusal_of(path("no/such/")).find("is the name of a folder"), std::string::npos);
    fs::create_symlink("loop", path("loop"));
    EXPECT_NE(refusal_of(path("loop")).find("symbolic links"), std::string::npos);
    std::ofstream(path("file")) << "text";
    EXPECT_NE(refusal_of(path("file/a")).find("Not a directory"), std::string::npos);
    const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path("socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_NE(refusal_of(path("socket")).find("neither a regular file nor a pipe"),
              std::string::npos);
    ::close(server);
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    EXPECT_THROW(OutputFile(path("pipe")).require_regular_file("this"), InputError);
    EXPECT_THROW(OutputFile("-").require_regular_file("this"), InputError);
    EXPECT_EQ(text_of("file"), "text");
    EXPECT_EQ(entries(), 4);
}

}  // namespace
}  // namespace quiver
