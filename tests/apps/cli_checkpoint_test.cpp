// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs --checkpoint --resume`: one rank or all ranks of a run are killed repeatedly, and
// the run resumes on changing numbers of ranks. It must end with the right eigenvalues.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blockvec/config.hpp"
#include "tests/apps/run_command.hpp"
#include "tests/support/sanitizers.hpp"

namespace quiver::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// The path of the newest manifest; "" if there is none.
std::string newest_manifest(const std::string& folder) {
    std::string newest;
    std::error_code error;
    for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
        if (at->path().extension() == ".json") {
            newest = std::max(newest, at->path().string());
        }
    }
    return newest;
}

/// The parent of a process; 0 if the process has ended or is a zombie.
pid_t parent_of(pid_t process) {
    std::ifstream in("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(in, text);
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream rest(text.substr(name_end + 1));
    char state = 'Z';
    pid_t parent = 0;
    rest >> state >> parent;
    return state == 'Z' || state == 'X' ? 0 : parent;
}

/// Whether a process has installed a handler for a signal.
bool handles(pid_t process, int signal) {
    std::ifstream in("/proc/" + std::to_string(process) + "/status");
    for (std::string word; in >> word;) {
        if (word == "SigCgt:") {
            std::uint64_t handled = 0;
            in >> std::hex >> handled;
            return (handled >> (signal - 1) & 1) != 0;
        }
    }
    return false;
}

/// The command under mpirun (or alone), and all processes that it starts.
class CommandRun {
  public:
    CommandRun(const std::string& arguments, int ranks, const Folder& folder) {
        const std::string launcher =
            ranks > 1 ? std::string(QUIVER_MPIEXEC) + " " + std::to_string(ranks) + " " : "";
        const std::string line = "exec " + launcher + QUIVER_COMMAND + " " + arguments + " >" +
                                 folder.path("out") + " 2>" + folder.path("err");
        root_ = fork();
        if (root_ == 0) {
            execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
            _exit(127);
        }
    }
    CommandRun(const CommandRun&) = delete;
    CommandRun& operator=(const CommandRun&) = delete;
    ~CommandRun() { kill_all(); }

    bool ended() {
        if (!ended_) {
            ended_ = waitpid(root_, &status_, WNOHANG) == root_;
        }
        return ended_;
    }
    /// Waits for the end of the command. Returns its exit status, or -1 if a signal ended it.
    int wait() {
        if (!ended_) {
            waitpid(root_, &status_, 0);
            ended_ = true;
        }
        return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
    }
    void signal_root(int signal) const { kill(root_, signal); }
    bool root_handles(int signal) const { return handles(root_, signal); }
    void kill_all() {
        const std::vector<pid_t> all = process_tree();
        for (const pid_t process : all) {
            kill(process, SIGKILL);
        }
        wait();
        wait_until_ended(all);
    }
    /// Kills one rank; the launcher must end the others.
    void kill_rank(std::mt19937_64& generator) {
        const std::vector<pid_t> all = process_tree();
        std::vector<pid_t> ranks;
        for (const pid_t process : all) {
            std::ifstream in("/proc/" + std::to_string(process) + "/comm");
            std::string name;
            std::getline(in, name);
            if (name == "quiver") {
                ranks.push_back(process);
            }
        }
        if (!ranks.empty()) {
            kill(ranks[generator() % ranks.size()], SIGKILL);
        }
        wait();
        wait_until_ended(all);
    }

  private:
    /// This run's processes, parents first.
    std::vector<pid_t> process_tree() {
        std::vector<pid_t> all;
        if (ended()) {
            return all;
        }
        all.push_back(root_);
        std::vector<pid_t> others;
        for (const auto& entry : fs::directory_iterator("/proc")) {
            const std::string name = entry.path().filename().string();
            if (name.find_first_not_of("0123456789") == std::string::npos) {
                others.push_back(static_cast<pid_t>(std::stol(name)));
            }
        }
        for (std::size_t at = 0; at < all.size(); ++at) {
            for (const pid_t process : others) {
                if (parent_of(process) == all[at]) {
                    all.push_back(process);
                }
            }
        }
        return all;
    }
    /// Waits until all processes have ended, because only one run at a time may use the folder.
    static void wait_until_ended(const std::vector<pid_t>& all) {
        for (const pid_t process : all) {
            while (parent_of(process) != 0) {
                std::this_thread::sleep_for(milliseconds(2));
            }
        }
    }

    pid_t root_ = 0;
    int status_ = 0;
    bool ended_ = false;
};

const std::string problem = "gen:laplace3d,nx=16 -k 6 --method lanczos --basis 26 --tol 1e-10";

void expect_exact(const nlohmann::json& json) {
    ASSERT_TRUE(json.is_object());
    EXPECT_EQ(json["converged"], true);
    ASSERT_EQ(json["eigenvalues"].size(), 6U);
    for (std::size_t j = 0; j < 6; ++j) {
        EXPECT_NEAR(json["eigenvalues"][j].get<double>(),
                    json["exact_eigenvalues"][j].get<double>(),
                    json["tolerance"].get<double>() * 12);
    }
}

class CheckpointCli : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!config::have_hdf5) {
            GTEST_SKIP() << "built without HDF5";
        }
    }
    std::string saved() const { return "--checkpoint " + ck + " --resume " + ck; }

    Folder folder;
    std::string ck = folder.path("ck");
};

TEST_F(CheckpointCli, TenKillsInARow) {
    const char* given = std::getenv("QUIVER_TEST_SEED");
    const std::uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
    std::printf("seed: QUIVER_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::mt19937_64 generator(seed);
    const std::string arguments = "eigs " + problem + " --device host --every 0 " + saved();
    int saves = 0;
    // There are more than 10 runs only if no checkpoint exists yet from which the last run resumes.
    for (int attempt = 0; attempt < 10 || (attempt < 40 && newest_manifest(ck).empty());
         ++attempt) {
        const auto ranks = static_cast<int>(1 + generator() % 3);
        const std::string before = newest_manifest(ck);
        SCOPED_TRACE("run " + std::to_string(attempt) + " on " + std::to_string(ranks) +
                     " ranks, from " + before + ", seed " + std::to_string(seed));
        int status = 0;
        if (attempt % 3 == 0) {
            // A rank is killed after an agreement of the ranks, possibly between the writing of the
            // files and of the manifest.
            const std::string fault =
                "QUIVER_FAULT=" + std::to_string(16 + generator() % 20) + "@" +
                std::to_string(generator() % static_cast<unsigned>(ranks)) + ":kill ";
            status = run_command(arguments, ranks, fault).status;
        } else {
            CommandRun run(arguments, ranks, folder);
            while (!run.ended() && newest_manifest(ck) == before) {
                std::this_thread::sleep_for(milliseconds(1));
            }
            std::this_thread::sleep_for(milliseconds(generator() % 60));
            if (attempt % 3 == 1) {
                run.kill_all();
            } else {
                run.kill_rank(generator);
            }
            status = run.wait();
        }
        ASSERT_NE(status, 2) << read_file(folder.path("err"));
        saves += status == 0 || newest_manifest(ck) != before ? 1 : 0;
        if (status == 0) {
            // The run ended before the kill: the next run starts from the beginning.
            fs::remove_all(ck);
        }
    }
    EXPECT_GE(saves, 6) << "runs that saved a state or ended";
    const EigsOutcome last = run_eigs(problem + " " + saved(), 2);
    EXPECT_EQ(last.status, 0) << last.err;
    EXPECT_NE(last.err.find("resuming from " + ck), std::string::npos) << last.err;
    expect_exact(last.json);
}

/// With each method 3 ranks write a checkpoint, and 1 and 2 ranks resume from it.
TEST_F(CheckpointCli, OtherNumbersOfRanksResume) {
    for (const std::string method : {"lanczos", "chebyshev", "lobpcg", "jd"}) {
        SCOPED_TRACE(method);
        const std::string arguments = "gen:laplace3d,nx=12 -k 6 --method " + method;
        const std::string where = folder.path(method);
        const EigsOutcome first =
            run_eigs(arguments + " --max-iterations 25 --checkpoint " + where, 3);
        ASSERT_EQ(first.status, 1) << first.err;
        for (const int ranks : {1, 2}) {
            const EigsOutcome second = run_eigs(arguments + " --resume " + where, ranks);
            ASSERT_EQ(second.status, 0) << second.err;
            expect_exact(second.json);
            EXPECT_GT(second.json["iterations"], first.json["iterations"]);
        }
    }
}

/// A fault before the first Ritz procedure of a resumed run: the steps since the state that was
/// read are repeated.
TEST_F(CheckpointCli, AResumedSearchIsRepaired) {
    const std::string arguments = "gen:laplace3d,nx=12 -k 6 --block 1 --method lanczos";
    for (const int iterations : {25, 240}) {  // searching, verifying
        const std::string where = folder.path("ck" + std::to_string(iterations));
        ASSERT_EQ(run_eigs(arguments + " --every 0 --checkpoint " + where + " --max-iterations " +
                           std::to_string(iterations))
                      .status,
                  1);
        for (const int step : {1, 2}) {
            for (const int ranks : {1, 2}) {
                SCOPED_TRACE(std::to_string(iterations) + ", step " + std::to_string(step));
                const EigsOutcome last =
                    run_eigs(arguments + " --abft correct --resume " + where +
                                 " --inject rate=1,where=basis,rank=0,bit=54,seed=2,step=" +
                                 std::to_string(step),
                             ranks);
                ASSERT_EQ(last.status, 0) << last.err;
                expect_exact(last.json);
                EXPECT_GT(last.json["abft"]["injected"], 0);
                EXPECT_GT(last.json["iterations"], iterations);
            }
        }
    }
}

TEST_F(CheckpointCli, ASignalSavesTheState) {
    const std::string arguments =
        "eigs gen:laplace3d,nx=30 -k 20 --tol 1e-12 --device host "
        "--method lanczos --every 1e6 --checkpoint " +
        ck;
    CommandRun run(arguments, 1, folder);
    // A signal before the handler is installed would end the process; MPI_Init alone may take a
    // second.
    while (!run.ended() && !run.root_handles(SIGTERM)) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(newest_manifest(ck), "") << "no state is due yet";
    run.signal_root(SIGTERM);
    EXPECT_EQ(run.wait(), 1) << read_file(folder.path("err"));
    EXPECT_NE(newest_manifest(ck), "");
    EXPECT_NE(read_file(folder.path("out")).find("interrupted"), std::string::npos);
}

TEST_F(CheckpointCli, DamageAndAnotherProblemAreReported) {
    const std::string arguments = problem + " --every 0 --max-iterations 40";
    ASSERT_EQ(run_eigs(arguments + " --checkpoint " + ck).status, 1);
    const auto refused = [&](const std::string& options, const std::string& word, int ranks = 1) {
        const EigsOutcome outcome = run_eigs(options, ranks);
        EXPECT_EQ(outcome.status, 2) << outcome.err;
        EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
        // mpirun adds lines of its own.
        EXPECT_EQ(outcome.err.find("quiver: "), outcome.err.rfind("quiver: ")) << outcome.err;
    };
    refused("gen:laplace3d,nx=16 -k 5 --method lanczos --resume " + ck,
            "the checkpoint is of -k 6, this run is of 5", 2);
    refused("gen:laplace3d,nx=8,ny=16,nz=32 -k 6 --method lanczos --basis 26 --resume " + ck,
            "the checkpoint is of MATRIX 4096 rows");
    refused(problem + " --scalar s --resume " + ck, "scalar d and 4096 rows, this run has s");
    refused(problem + " --resume " + folder.path("no"), "no such folder");
    refused(problem + " --resume " + folder.path(""), "the folder has no checkpoint");
    refused(problem + " --checkpoint " + ck, "it holds a checkpoint; continue it with --resume");
    refused(problem + " --every -2 --checkpoint " + folder.path("x"), "--every -2: seconds");

    const std::string newest = newest_manifest(ck);
    const std::string rank_file = newest.substr(0, newest.size() - 5) + "-rank-0000.h5";
    fs::resize_file(rank_file, fs::file_size(rank_file) / 2);
    const EigsOutcome older = run_eigs(problem + " --resume " + ck, 2);
    EXPECT_EQ(older.status, 0) << older.err;
    EXPECT_NE(older.err.find("size or checksum differ from the manifest; using generation "),
              std::string::npos)
        << older.err;
    expect_exact(older.json);
    for (const auto& entry : fs::directory_iterator(ck)) {
        if (entry.path().extension() == ".json") {
            std::string text = read_file(entry.path().string());
            text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 4);
            std::ofstream(entry.path()) << text;
        }
    }
    refused(problem + " --resume " + ck, "no checkpoint is complete: ", 2);
}

TEST_F(CheckpointCli, AFullDiskIsReportedAndTheRunContinues) {
    if (!files_may_be_limited) {
        GTEST_SKIP() << "the sanitizer writes files of its own";
    }
    // ulimit -f counts blocks of 512 bytes. The first states fit; later ones have more columns.
    const Outcome outcome = run_script(
        "trap '' XFSZ\nexport OMPI_MCA_btl=self,tcp PMIX_MCA_gds=hash\nulimit -f 1500\nquiver "
        "eigs " +
            problem + " --device host --every 0 --checkpoint ck",
        1, folder, 100);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("note: no checkpoint: cannot write "), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find(" stays, the run continues"), std::string::npos) << outcome.err;
    for (const auto& entry : fs::directory_iterator(ck)) {
        EXPECT_NE(entry.path().extension(), ".part");
    }
    const EigsOutcome again = run_eigs(problem + " --resume " + ck);
    EXPECT_EQ(again.status, 0) << again.err;
    expect_exact(again.json);
}

}  // namespace
}  // namespace quiver::test
