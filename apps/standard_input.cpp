// SPDX-License-Identifier: BSD-3-Clause
#include "apps/standard_input.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

/// Creates a file for reading and writing that has no name in any folder.
int make_nameless_file(const std::string& folder) {
    std::string name = (std::filesystem::path(folder) / "quiver-input-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file >= 0) {
        ::unlink(name.c_str());
    }
    return file;
}

void copy_standard_input(int to, const std::string& folder) {
    const auto refuse = [&](const char* what, const std::string& where) {
        throw Error(ErrorKind::other, std::string(what) + where + ": " + std::strerror(errno));
    };
    std::array<char, std::size_t{1} << 16> text;
    while (true) {
        const ssize_t got = ::read(STDIN_FILENO, text.data(), text.size());
        if (got == 0) {
            return;
        }
        if (got < 0 && errno != EINTR) {
            refuse("cannot read standard input", "");
        }
        for (ssize_t done = 0; done < got;) {
            const ssize_t count =
                ::write(to, text.data() + done, static_cast<std::size_t>(got - done));
            if (count < 0 && errno != EINTR) {
                refuse("cannot copy standard input to a temporary file in ",
                       folder + " (set TMPDIR to a folder with enough space, or name a file)");
            }
            done += std::max<ssize_t>(count, 0);
        }
    }
}

/// Copies standard input; returns the name under which this process can open the copy.
std::string copied_standard_input() {
    const std::string folder = std::filesystem::temp_directory_path().string();
    const int file = make_nameless_file(folder);
    if (file < 0) {
        throw Error(ErrorKind::other,
                    "cannot make a temporary file in " + folder + ": " + std::strerror(errno));
    }
    copy_standard_input(file, folder);
    return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace

MatrixMarketSource matrix_source(const Comm& comm, const std::string& spec) {
    if (spec != standard_input_name) {
        return spec;
    }
    std::string copy;
    comm.agree([&] {
        if (comm.rank() == 0) {
            // Standard input can be read only once, so all calls share one copy.
            static const std::string only_copy = copied_standard_input();
            copy = only_copy;
        }
    });
    return MatrixMarketSource::on_rank_0(copy, "standard input");
}

void require_one_standard_input(std::initializer_list<std::string> names) {
    if (std::count(names.begin(), names.end(), standard_input_name) > 1) {
        throw InputError(
            "'-' is standard input, which can hold only one matrix; name a file for the other one");
    }
}

}  // namespace quiver::apps
