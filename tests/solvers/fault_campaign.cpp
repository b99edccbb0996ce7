// SPDX-License-Identifier: BSD-3-Clause
// Injects faults into running solves independently of the detector: each solve is a child process,
// in which a thread flips one random bit of the solve's memory at a random time.
//
//     fault_campaign [--solves N] [--seconds S] [--rows 2184|5814|19656] [--methods a,b]
//         [--modes detect,correct] [--where PLACE] [--updates] [--device host|cuda] [--threads N]
//         [--seed N] [--only METHOD,MODE,CHOICE,MOMENT] [--json FILE] [--strict]
//
// Faults change memory that the process allocates from the construction of the matrix until the end
// of the solve, except the right-hand sides and the references of this program. PLACE: `buffers`,
// any buffer of a Context; `values` or `indices` of the matrix, `checksums`, `blocks` (vectors and
// scratch): a buffer of this kind only; `each`, one of these four kinds; `heap`, the larger blocks
// of operator new (projected matrices); `all`, buffers and heap. With --device cuda these are the
// buffers on the GPU and the host memory of the Context that is not page-locked. The linker
// redirects the allocator's calls to the functions below. Eigenvalues are compared with the formula
// of the Laplacian; residuals are computed by loops in this file. The outcome of a solve is one of
//   quiet     right, and no fault was reported
//   repaired  right, and the protection counted a fault
//   refused   an error, or a result that is not both converged and verified
//   crashed   a signal
//   endless   no end within the time limit
//   wrong     converged and verified, but not right
// With --strict the exit status is 1 if any solve crashed, was wrong or did not end. A solve has
// one thread unless --threads says otherwise; more threads than free cores wait for each other.
// --seed repeats places and moments. A moment is a share of the time that a solve without a fault
// takes, and this time varies. --only repeats one fault --solves times; the list of failures prints
// its arguments, together with --where. (Under gdb: `set follow-fork-mode child`.)
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blockvec/config.hpp"
#if QUIVER_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "tests/support/problems.hpp"

namespace {

/// The purpose of an allocation, deduced from its time.
enum Stage : int { unwatched, of_matrix, of_indices, of_checks, of_solve };

enum Origin : int { of_buffer, of_heap, of_device };

/// Flips bits of a byte in the memory of a GPU, concurrently with the work of all streams.
#if QUIVER_HAVE_CUDA
void flip_on_device(unsigned char* byte, unsigned bits) {
    cudaStream_t stream = nullptr;
    unsigned char value = 0;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMemcpyAsync(&value, byte, 1, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    value = static_cast<unsigned char>(value ^ bits);
    cudaMemcpyAsync(byte, &value, 1, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
}
#else
void flip_on_device(unsigned char* /*byte*/, unsigned /*bits*/) {}
#endif

/// The live allocations of this process since the recording began. Allocates nothing itself.
class Registry {
  public:
    struct Block {
        unsigned char* begin = nullptr;
        std::size_t bytes = 0;
        Stage stage = unwatched;
        Origin origin = of_buffer;

        /// Allocates nothing.
        const char* place() const {
            return origin == of_heap     ? "heap"
                   : stage == of_indices ? "indices"
                   : stage == of_matrix  ? "values"
                   : stage == of_checks  ? "checksums"
                                         : "blocks";
        }
        bool is_in(const std::string& where) const {
            return where == "all" || where == place() || (where == "buffers" && origin != of_heap);
        }
    };

    void add(void* pointer, std::size_t bytes, Origin origin) {
        if (stage == unwatched || pointer == nullptr) {
            return;
        }
        const Lock lock(busy_);
        for (Block& block : blocks_) {
            if (block.begin == nullptr) {
                block = {static_cast<unsigned char*>(pointer), bytes, stage, origin};
                ++live_;
                return;
            }
        }
    }
    void remove(void* pointer) {
        if (live_ == 0 || pointer == nullptr) {
            return;
        }
        const Lock lock(busy_);
        for (Block& block : blocks_) {
            if (block.begin == pointer) {
                block = {};
                --live_;
                return;
            }
        }
    }
    /// Marks the block that begins at `pointer` as indices of the matrix.
    void mark_indices(const void* pointer) {
        for (Block& block : blocks_) {
            if (pointer != nullptr && block.begin == pointer) {
                block.stage = of_indices;
            }
        }
    }
    /// Flips a bit, chosen uniformly over all bytes of the blocks in `where`. First calls
    /// tell(block) with the block that contains the bit.
    template <class Tell>
    void flip(std::uint64_t choice, const std::string& where, Tell&& tell) {
        const unsigned bits = 1U << (choice & 7);
        const Block byte = byte_of(choice >> 3, where, [&](const Block& block, std::size_t at) {
            tell(block);
            if (block.origin != of_device) {
                volatile unsigned char* const here = block.begin + at;
                *here = static_cast<unsigned char>(*here ^ bits);
            }
        });
        // Not under the lock: CUDA calls may free memory, and remove() takes the lock.
        if (byte.origin == of_device) {
            flip_on_device(byte.begin, bits);
        }
    }

    /// Ends the injection of faults: after the solve its result belongs to the caller.
    void close() {
        const Lock lock(busy_);
        closed_ = true;
    }

    std::atomic<Stage> stage{unwatched};

  private:
    /// Calls found(block, byte) under the lock and returns the byte as a block of its own.
    template <class Found>
    Block byte_of(std::size_t number, const std::string& where, Found&& found) {
        const Lock lock(busy_);
        const auto eligible = [&](const Block& block) {
            return !closed_ && block.begin != nullptr && block.is_in(where);
        };
        std::size_t bytes = 0;
        for (const Block& block : blocks_) {
            bytes += eligible(block) ? block.bytes : 0;
        }
        std::size_t at = bytes > 0 ? number % bytes : 0;
        for (const Block& block : blocks_) {
            if (!eligible(block)) {
                continue;
            }
            if (at < block.bytes) {
                found(block, at);
                return {block.begin + at, 1, block.stage, block.origin};
            }
            at -= block.bytes;
        }
        return {};
    }
    class Lock {
      public:
        explicit Lock(std::atomic_flag& flag) : flag_(flag) {
            while (flag_.test_and_set(std::memory_order_acquire)) {
            }
        }
        ~Lock() { flag_.clear(std::memory_order_release); }

      private:
        std::atomic_flag& flag_;
    };
    Block blocks_[2048];
    bool closed_ = false;
    std::atomic<int> live_ = 0;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

// A global, because the allocator's functions cannot reach it otherwise.
Registry registry;

/// Smaller blocks of operator new hold no matrices, so they get no faults.
constexpr std::size_t least_heap_block = 256;

}  // namespace

// The names are those of the linker option --wrap.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" {
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
void __real_free(void* pointer);
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes);
void __wrap_free(void* pointer);

void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
    void* const pointer = __real_aligned_alloc(alignment, bytes);
    registry.add(pointer, bytes, of_buffer);
    return pointer;
}
void __wrap_free(void* pointer) {
    registry.remove(pointer);
    __real_free(pointer);
}
#if QUIVER_HAVE_CUDA
cudaError_t __real_cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream);
cudaError_t __real_cudaFreeAsync(void* pointer, cudaStream_t stream);

cudaError_t __wrap_cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
    const cudaError_t error = __real_cudaMallocAsync(pointer, bytes, stream);
    if (error == cudaSuccess) {
        registry.add(*pointer, bytes, of_device);
    }
    return error;
}
cudaError_t __wrap_cudaFreeAsync(void* pointer, cudaStream_t stream) {
    registry.remove(pointer);
    return __real_cudaFreeAsync(pointer, stream);
}
#endif
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

void* operator new(std::size_t bytes) {
    void* const pointer = std::malloc(bytes);
    if (pointer == nullptr) {
        throw std::bad_alloc();
    }
    if (bytes >= least_heap_block) {
        registry.add(pointer, bytes, of_heap);
    }
    return pointer;
}
void operator delete(void* pointer) noexcept {
    registry.remove(pointer);
    __real_free(pointer);
}
void operator delete(void* pointer, std::size_t /*bytes*/) noexcept {
    operator delete(pointer);
}

namespace quiver {
namespace {

struct Grid {
    int nx, ny, nz;
    std::int64_t rows() const { return std::int64_t{nx} * ny * nz; }
};

struct Options {
    int solves = 4;  // of each method in each mode
    double seconds = 1e9;
    Grid grid{14, 13, 12};
    std::vector<std::string> methods{"lanczos", "chebyshev", "lobpcg", "jd",      "filter",
                                     "cg",      "minres",    "gmres",  "bicgstab"};
    std::vector<std::string> modes{"detect", "correct"};
    std::string where = "buffers";
    bool updates = false;
    bool strict = false;
    bool device = false;
    int threads = 1;
    std::uint64_t seed = 1;
    std::string json;
    /// --only: the fault, instead of random ones.
    std::uint64_t choice = 0;
    double moment = -1;
};

/// The report of a child process to its parent, in shared memory.
struct Report {
    bool finished = false;
    double seconds = 0;  // of the solve
    char place[16] = "none";
    bool claims = false;
    bool right = false;
    bool noticed = false;
    double error = 0;  // in units of the allowed error
    char message[200] = {};
};

constexpr int wanted = 4;
constexpr double tolerance = 1e-9;
constexpr double norm = 12;

/// The problem of a child process, and the check of its result.
class Solve {
  public:
    Solve(const Options& options, const std::string& method, AbftMode mode)
        : grid_(options.grid),
          method_(method),
          ctx_(Comm(), options.device ? Device::cuda() : Device::host()),
          watch_matrix_((registry.stage = of_matrix, true)),
          a_(test::laplace3d<double>(ctx_, grid_.nx, grid_.ny, grid_.nz)),
          guarded_(watched_checks(), a_, {mode, {}, 14, options.updates}) {
        const auto arrays = a_.arrays();
        for (std::size_t i = 1; i < arrays.size(); ++i) {  // the first holds the values
            registry.mark_indices(arrays[i].data);
        }
        registry.stage = of_solve;
    }

    void run(Report& report) {
        const std::map<std::string, Method> eigensolvers{{"lanczos", Method::lanczos},
                                                         {"chebyshev", Method::chebyshev},
                                                         {"lobpcg", Method::lobpcg},
                                                         {"jd", Method::jacobi_davidson},
                                                         {"filter", Method::filter}};
        const auto at = eigensolvers.find(method_);
        at != eigensolvers.end() ? run_eigen(at->second, report) : run_linear(report);
        report.noticed = guarded_.counts().faults > 0;
    }

  private:
    Context& watched_checks() {
        registry.stage = of_checks;
        return ctx_;
    }

    /// The Laplacian, entry by entry.
    double times(const double* x, std::int64_t ld, int column, std::int64_t row) const {
        const std::int64_t nx = grid_.nx;
        const std::int64_t plane = nx * grid_.ny;
        const auto value = [&](std::int64_t i) { return x[i * ld + column]; };
        double sum = 6 * value(row);
        sum -= row % nx > 0 ? value(row - 1) : 0;
        sum -= row % nx + 1 < nx ? value(row + 1) : 0;
        sum -= row % plane >= nx ? value(row - nx) : 0;
        sum -= row % plane + nx < plane ? value(row + nx) : 0;
        sum -= row >= plane ? value(row - plane) : 0;
        sum -= row + plane < grid_.rows() ? value(row + plane) : 0;
        return sum;
    }

    void run_eigen(Method method, Report& report) {
        registry.stage = unwatched;
        const std::vector<double> spectrum = test::laplace3d_spectrum(grid_.nx, grid_.ny, grid_.nz);
        registry.stage = of_solve;
        EigenProblem<double> problem{guarded_};
        problem.protection = &guarded_;
        EigenOptions options;
        options.method = method;
        options.k = wanted;
        options.tol = tolerance;
        std::vector<double> exact(spectrum.begin(), spectrum.begin() + wanted);
        if (method == Method::filter) {
            options.k = 1;
            options.window = Window{0, (spectrum[wanted - 1] + spectrum[wanted]) / 2};
        }
        const EigenResult<double> result = eigensolve(ctx_, problem, options);
        registry.close();
        report.claims = result.converged && result.multiplicity == Multiplicity::verified;
        report.right = result.eigenvalues.size() == exact.size();
        const std::vector<double> x = on_host(result.vectors.view());
        const std::int64_t ld = result.vectors.view().cols;
        for (std::size_t j = 0; j < exact.size() && report.right; ++j) {
            const int column = static_cast<int>(j);
            double squares = 0;
            double length = 0;
            for (std::int64_t row = 0; row < grid_.rows(); ++row) {
                const double own = x[static_cast<std::size_t>(row * ld + column)];
                const double rest = times(x.data(), ld, column, row) - result.eigenvalues[j] * own;
                squares += rest * rest;
                length += own * own;
            }
            const double allowed = (result.tolerance + 100 * epsilon_v<double>)*norm;
            judge(std::abs(result.eigenvalues[j] - exact[j]) / allowed, report);
            judge(std::sqrt(squares / length) / (2 * allowed), report);
        }
        note(result.message, report);
    }

    void run_linear(Report& report) {
        const LinearMethod method = method_ == "cg"       ? LinearMethod::cg
                                    : method_ == "minres" ? LinearMethod::minres
                                    : method_ == "gmres"  ? LinearMethod::gmres
                                                          : LinearMethod::bicgstab;
        // The caller's right-hand sides get no faults: they would change the problem.
        registry.stage = unwatched;
        BlockVector<double> b(ctx_, a_.row_map(), wanted);
        fill_random(ctx_, 7, b);
        const std::vector<double> given = on_host(b.view());
        registry.stage = of_solve;
        BlockVector<double> x(ctx_, a_.row_map(), wanted);
        LinearProblem<double> problem{guarded_, b.view()};
        problem.protection = &guarded_;
        LinearOptions options;
        options.tol = tolerance;
        options.max_iterations = 5000;
        const LinearResult result = linear_solve(ctx_, method, problem, x.view(), options);
        registry.close();
        report.claims = result.converged;
        report.right = true;
        const std::vector<double> found = on_host(x.view());
        for (int j = 0; j < wanted; ++j) {
            double squares = 0;
            double length = 0;
            for (std::int64_t row = 0; row < grid_.rows(); ++row) {
                const double own = given[static_cast<std::size_t>(row * wanted + j)];
                const double rest = own - times(found.data(), wanted, j, row);
                squares += rest * rest;
                length += own * own;
            }
            judge(std::sqrt(squares / length) / (2 * tolerance), report);
        }
        note(result.message, report);
    }

    /// The elements of a block in host memory, row by row.
    std::vector<double> on_host(BlockView<const double> x) {
        std::vector<double> values(static_cast<std::size_t>(x.rows * x.cols));
        copy(ctx_, x, BlockView<double>(values.data(), x.rows, x.cols, x.cols));
        return values;
    }

    static void judge(double error, Report& report) {
        report.error = std::max(report.error, std::isfinite(error) ? error : 1e300);
        report.right = report.right && error <= 1;
    }
    static void note(const std::string& message, Report& report) {
        std::snprintf(report.message, sizeof(report.message), "%s", message.c_str());
    }

    Grid grid_;
    std::string method_;
    Context ctx_;
    bool watch_matrix_;
    SparseMatrix<double> a_;
    ProtectedMatrix<double> guarded_;
};

/// The choice of a bit, and the delay of its flip in seconds after the start of a solve; a negative
/// delay means no fault.
struct Fault {
    std::string where;
    std::uint64_t choice = 0;
    double delay = -1;
};

/// One solve with at most one fault.
void run_child(const Options& options, const std::string& method, AbftMode mode, const Fault& fault,
               Report& report) {
    omp_set_num_threads(options.threads);
    Solve solve(options, method, mode);
    const auto begin = std::chrono::steady_clock::now();
    std::thread striker([&] {
        if (fault.delay < 0) {
            return;
        }
        while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
               fault.delay) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        registry.flip(fault.choice, fault.where, [&](const Registry::Block& block) {
            std::strncpy(report.place, block.place(), sizeof(report.place) - 1);
        });
    });
    try {
        solve.run(report);
    } catch (const std::exception& error) {
        report.claims = false;
        std::snprintf(report.message, sizeof(report.message), "%s", error.what());
    }
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    striker.join();
    report.finished = true;
}

struct Outcome {
    std::string method, mode, where, place, kind, detail;
    std::uint64_t choice = 0;
    double moment = 0;  // share of the time of a solve without a fault
    double error = 0;
};

/// Forks a child; returns how it ended.
Outcome solve_in_child(const Options& options, const std::string& method, AbftMode mode,
                       const Fault& fault, double limit, double& seconds) {
    void* const memory =
        mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("mmap");
        std::exit(2);
    }
    Report& report = *new (memory) Report;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(static_cast<unsigned>(limit) + 1);
        run_child(options, method, mode, fault, report);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    Outcome outcome;
    outcome.place = report.place;
    outcome.detail = report.message;
    outcome.error = report.error;
    seconds = report.seconds;
    outcome.kind = !report.claims   ? "refused"
                   : !report.right  ? "wrong"
                   : report.noticed ? "repaired"
                                    : "quiet";
    if (!report.finished) {
        const bool endless = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        outcome.kind = endless ? "endless" : "crashed";
        outcome.detail = !WIFSIGNALED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                         : endless            ? "no end in " + std::to_string(limit) + " s"
                                              : strsignal(WTERMSIG(status));
    }
    munmap(memory, sizeof(Report));
    return outcome;
}

class Campaign {
  public:
    explicit Campaign(const Options& options) : options_(options), generator_(options.seed) {}

    /// Runs all solves; returns the exit status.
    int run() {
        const auto begin = std::chrono::steady_clock::now();
        for (const std::string& mode : options_.modes) {
            for (const std::string& method : options_.methods) {
                if (!measure(method, mode)) {
                    return 2;
                }
            }
        }
        for (int round = 0; round < options_.solves; ++round) {
            for (const auto& [key, seconds] : seconds_) {
                const std::chrono::duration<double> spent =
                    std::chrono::steady_clock::now() - begin;
                if (spent.count() > options_.seconds) {
                    return finish();
                }
                strike(key.first, key.second, seconds);
            }
        }
        return finish();
    }

  private:
    static AbftMode mode_of(const std::string& mode) {
        return mode == "detect" ? AbftMode::detect : AbftMode::correct;
    }
    /// Runs two solves without a fault and returns true if the second result is right. The first
    /// may wait for kernels to be compiled; moments of faults are drawn from the time that the
    /// second takes.
    bool measure(const std::string& method, const std::string& mode) {
        double& seconds = seconds_[{method, mode}];
        solve_in_child(options_, method, mode_of(mode), {}, 100, seconds);
        const Outcome outcome = solve_in_child(options_, method, mode_of(mode), {}, 100, seconds);
        if (outcome.kind != "quiet") {
            std::printf("%s %s without a fault: %s, error %.2g: %s\n", method.c_str(), mode.c_str(),
                        outcome.kind.c_str(), outcome.error, outcome.detail.c_str());
        }
        return outcome.kind == "quiet";
    }
    void strike(const std::string& method, const std::string& mode, double seconds) {
        constexpr const char* kinds[] = {"values", "indices", "checksums", "blocks"};
        std::uint64_t choice = generator_();
        double moment = std::uniform_real_distribution<double>(0, 1)(generator_);
        if (options_.moment >= 0) {
            choice = options_.choice;
            moment = options_.moment;
        }
        const std::string where = options_.where == "each" ? kinds[choice >> 62] : options_.where;
        double unused = 0;
        Outcome outcome =
            solve_in_child(options_, method, mode_of(mode), {where, choice, moment * seconds},
                           20 + 20 * seconds, unused);
        outcome.method = method;
        outcome.mode = mode;
        outcome.where = where;
        outcome.choice = choice;
        outcome.moment = moment;
        outcomes_.push_back(outcome);
    }

    int finish() const {
        constexpr const char* kinds[] = {"quiet",   "repaired", "refused",
                                         "crashed", "endless",  "wrong"};
        std::map<std::string, std::map<std::string, int>> counts;
        std::map<std::string, std::map<std::string, int>> places;
        int bad = 0;
        for (const Outcome& outcome : outcomes_) {
            ++counts[outcome.method + " " + outcome.mode][outcome.kind];
            ++places[outcome.place][outcome.kind];
            if (outcome.kind == "crashed" || outcome.kind == "endless" || outcome.kind == "wrong") {
                ++bad;
                std::printf("%s: --where %s --only %s,%s,%llu,%.17g: %s, error %.2g: %s\n",
                            outcome.kind.c_str(), outcome.where.c_str(), outcome.method.c_str(),
                            outcome.mode.c_str(), static_cast<unsigned long long>(outcome.choice),
                            outcome.moment, outcome.place.c_str(), outcome.error,
                            outcome.detail.c_str());
            }
        }
        for (const auto& table : {counts, places}) {
            std::printf("\n| solves |");
            for (const char* kind : kinds) {
                std::printf(" %s |", kind);
            }
            std::printf("\n|---|---|---|---|---|---|---|\n");
            for (const auto& [name, of] : table) {
                std::printf("| %s |", name.c_str());
                for (const char* kind : kinds) {
                    const auto at = of.find(kind);
                    std::printf(" %d |", at == of.end() ? 0 : at->second);
                }
                std::printf("\n");
            }
        }
        write_json();
        return options_.strict && bad > 0 ? 1 : 0;
    }
    void write_json() const {
        if (options_.json.empty()) {
            return;
        }
        std::ofstream out(options_.json);
        out << "[\n";
        for (std::size_t i = 0; i < outcomes_.size(); ++i) {
            const Outcome& outcome = outcomes_[i];
            std::string detail = outcome.detail;
            for (char& letter : detail) {
                letter = letter == '"' || letter == '\\' || letter < ' ' ? '\'' : letter;
            }
            out << R"({"method": ")" << outcome.method << R"(", "mode": ")" << outcome.mode
                << R"(", "place": ")" << outcome.place << R"(", "outcome": ")" << outcome.kind
                << R"(", "choice": )" << outcome.choice << R"(, "moment": )" << outcome.moment
                << R"(, "error": )" << outcome.error << R"(, "detail": ")" << detail
                << (i + 1 < outcomes_.size() ? "\"},\n" : "\"}\n");
        }
        out << "]\n";
    }

    Options options_;
    std::mt19937_64 generator_;
    std::map<std::pair<std::string, std::string>, double> seconds_;
    std::vector<Outcome> outcomes_;
};

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        parts.push_back(part);
    }
    return parts;
}

bool parse(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--updates" || name == "--strict") {
            (name == "--updates" ? options.updates : options.strict) = true;
            continue;
        }
        if (++i == argc) {
            return false;
        }
        const std::string value = argv[i];
        if (name == "--solves") {
            options.solves = std::stoi(value);
        } else if (name == "--seconds") {
            options.seconds = std::stod(value);
        } else if (name == "--rows") {
            options.grid = value == "2184"   ? Grid{14, 13, 12}
                           : value == "5814" ? Grid{19, 18, 17}
                                             : Grid{28, 27, 26};
        } else if (name == "--methods") {
            options.methods = split(value);
        } else if (name == "--modes") {
            options.modes = split(value);
        } else if (name == "--device") {
            options.device = value == "cuda";
        } else if (name == "--where") {
            options.where = value;
        } else if (name == "--threads") {
            options.threads = std::stoi(value);
        } else if (name == "--only") {
            const std::vector<std::string> parts = split(value);
            if (parts.size() != 4) {
                return false;
            }
            options.methods = {parts[0]};
            options.modes = {parts[1]};
            options.choice = std::stoull(parts[2]);
            options.moment = std::stod(parts[3]);
        } else if (name == "--seed") {
            options.seed = std::stoull(value);
        } else if (name == "--json") {
            options.json = value;
        } else {
            return false;
        }
    }
    return true;
}

}  // namespace
}  // namespace quiver

int main(int argc, char** argv) {
    quiver::Options options;
    if (!quiver::parse(argc, argv, options)) {
        std::fprintf(stderr,
                     "fault_campaign: unknown option or missing value; the first comment of the "
                     "source lists the options\n");
        return 2;
    }
    return quiver::Campaign(options).run();
}
