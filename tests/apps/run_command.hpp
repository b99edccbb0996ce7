// SPDX-License-Identifier: BSD-3-Clause
// Runs the built command in a temporary folder.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace quiver::test {

struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
};

/// A folder that is removed with the object.
class Folder {
  public:
    Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder();
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    /// Writes a file and returns its path.
    std::string write(const std::string& name, const std::string& text) const;

  private:
    std::filesystem::path folder_;
};

std::string read_file(const std::string& path);

/// `quiver ARGUMENTS` (a shell's words), under mpirun for more than one rank; the shell runs
/// `before` first.
Outcome run_command(const std::string& arguments, int ranks = 1, const std::string& before = "");

/// The lines of a shell script, run by every rank in `folder`; `quiver` is the command. After
/// `seconds` all ranks are ended, with status 124.
Outcome run_script(const std::string& lines, int ranks, const Folder& folder, int seconds);

/// The outcome of `quiver eigs ARGUMENTS` in the place under test, and the JSON that it wrote.
struct EigsOutcome : Outcome {
    nlohmann::json json;
};
EigsOutcome run_eigs(const std::string& arguments, int ranks = 1);

}  // namespace quiver::test
