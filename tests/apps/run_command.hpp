// SPDX-License-Identifier: BSD-3-Clause
// Runs the built command and captures its exit status, its output and its JSON.
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

/// A temporary folder; the destructor removes it.
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

/// Runs `quiver ARGUMENTS` in a shell, under mpirun for more than one rank. `before` is shell text
/// in front of the command, such as `NAME=value `.
Outcome run_command(const std::string& arguments, int ranks = 1, const std::string& before = "");

/// Runs the lines of a shell script on every rank, in `folder`. A call of `quiver` in them runs the
/// command and ends the script. After `seconds` all ranks are ended, with status 124.
Outcome run_script(const std::string& lines, int ranks, const Folder& folder, int seconds);

/// The outcome of `quiver eigs ARGUMENTS` in the place under test, and its JSON (null if none).
struct EigsOutcome : Outcome {
    nlohmann::json json;
};
EigsOutcome run_eigs(const std::string& arguments, int ranks = 1);

}  // namespace quiver::test
