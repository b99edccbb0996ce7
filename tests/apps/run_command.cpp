// SPDX-License-Identifier: BSD-3-Clause
#include "tests/apps/run_command.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace quiver::test {
namespace {

std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "quiver-cli-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        throw std::runtime_error("mkdtemp " + name);
    }
    return name;
}

bool on_device() {
    const char* place = std::getenv("QUIVER_TEST_PLACE");
    return place != nullptr && std::string(place) == "device";
}

std::string launcher(int ranks) {
    return ranks > 1 ? std::string(QUIVER_MPIEXEC) + " " + std::to_string(ranks) + " " : "";
}

Outcome run_line(const std::string& line) {
    const Folder folder;
    const std::string out = folder.path("out");
    const std::string err = folder.path("err");
    const int raw = std::system((line + " >" + out + " 2>" + err).c_str());
    Outcome outcome;
    outcome.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
    outcome.out = read_file(out);
    outcome.err = read_file(err);
    return outcome;
}

}  // namespace

Folder::Folder() : folder_(make_folder()) {}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
}

std::string read_file(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

Outcome run_command(const std::string& arguments, int ranks, const std::string& before) {
    return run_line(before + launcher(ranks) + QUIVER_COMMAND + " " + arguments);
}

Outcome run_script(const std::string& lines, int ranks, const Folder& folder, int seconds) {
    const Folder place;
    const std::string script =
        place.write("script", "cd " + folder.path("") + "\nquiver() { exec " +
                                  QUIVER_COMMAND " \"$@\"; }\n" + lines + "\n");
    return run_line("timeout " + std::to_string(seconds) + " " + launcher(ranks) + "sh " + script);
}

EigsOutcome run_eigs(const std::string& arguments, int ranks) {
    const Folder folder;
    const std::string file = folder.path("out.json");
    const char* place = on_device() ? "cuda" : "host";
    EigsOutcome outcome;
    static_cast<Outcome&>(outcome) =
        run_command("eigs " + arguments + " --device " + place + " --json " + file, ranks);
    const std::string text = read_file(file);
    if (!text.empty()) {
        outcome.json = nlohmann::json::parse(text);
    }
    return outcome;
}

}  // namespace quiver::test
