// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/nvrtc_compile.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <nvrtc.h>

#include "blockvec/error.hpp"
#include "blockvec/shared_library.hpp"
#include "kernels/cuda/embedded_sources.hpp"
#include "kernels/cuda/hash.hpp"

namespace quiver::cuda {

// NVRTC is opened when it is first needed, so that one binary serves machines with and without it.
// Not in the unnamed namespace: see NcclLibrary.
class NvrtcLibrary {
  public:
    NvrtcLibrary() : library_(open()) {}

  private:
    /// Names of a file, in the order of search.
    static std::vector<std::string> candidates() {
        const std::string file = "libnvrtc.so";
        const std::string versions[] = {".13", ".12"};
        std::vector<std::string> names;
        if (const char* chosen = std::getenv("QUIVER_NVRTC");
            chosen != nullptr && *chosen != '\0') {
            names.emplace_back(chosen);
            for (const std::string& version : versions) {
                names.push_back(std::string(chosen) + "/" + file + version);
            }
            return names;
        }
        for (const char* folder : {"", QUIVER_NVRTC_FOLDER "/"}) {
            for (const std::string& version : versions) {
                names.push_back(folder + file + version);
            }
        }
        return names;
    }

    static SharedLibrary open() {
        std::string failures;
        for (const std::string& name : candidates()) {
            try {
                return SharedLibrary(name);
            } catch (const UnsupportedError& error) {
                failures += std::string("\n  ") + error.what();
            }
        }
        throw UnsupportedError(
            "kernels for this GPU are compiled by NVRTC, which was not found. Install CUDA's NVRTC "
            "(packages cuda-nvrtc, or pip's nvidia-cuda-nvrtc) and set QUIVER_NVRTC to its file or "
            "folder:" +
            failures);
    }

    SharedLibrary library_;

  public:
#define QUIVER_NVRTC_FUNCTION(name) decltype(&::name) name = library_.find<decltype(::name)>(#name)
    QUIVER_NVRTC_FUNCTION(nvrtcAddNameExpression);
    QUIVER_NVRTC_FUNCTION(nvrtcCompileProgram);
    QUIVER_NVRTC_FUNCTION(nvrtcCreateProgram);
    QUIVER_NVRTC_FUNCTION(nvrtcDestroyProgram);
    QUIVER_NVRTC_FUNCTION(nvrtcGetCUBIN);
    QUIVER_NVRTC_FUNCTION(nvrtcGetCUBINSize);
    QUIVER_NVRTC_FUNCTION(nvrtcGetErrorString);
    QUIVER_NVRTC_FUNCTION(nvrtcGetLoweredName);
    QUIVER_NVRTC_FUNCTION(nvrtcGetNumSupportedArchs);
    QUIVER_NVRTC_FUNCTION(nvrtcGetPTX);
    QUIVER_NVRTC_FUNCTION(nvrtcGetPTXSize);
    QUIVER_NVRTC_FUNCTION(nvrtcGetProgramLog);
    QUIVER_NVRTC_FUNCTION(nvrtcGetProgramLogSize);
    QUIVER_NVRTC_FUNCTION(nvrtcGetSupportedArchs);
    QUIVER_NVRTC_FUNCTION(nvrtcVersion);
#undef QUIVER_NVRTC_FUNCTION
};

namespace {

/// The library, opened by the first call; a call that fails is repeated by the next.
const NvrtcLibrary& nvrtc() {
    static const NvrtcLibrary library;
    return library;
}

constexpr const char* common_options[] = {"-std=c++20", "-default-device"};

/// The first lines of the log that contain an error; the whole log if there is no such line.
std::string first_errors(const std::string& log) {
    std::istringstream lines(log);
    std::string result;
    std::string line;
    int found = 0;
    while (found < 5 && std::getline(lines, line)) {
        if (line.find("error") != std::string::npos) {
            result += "\n  " + line;
            ++found;
        }
    }
    return found > 0 ? result : log.empty() ? log : "\n  " + log.substr(0, 1000);
}

void check(nvrtcResult code, const std::string& what, const std::string& log = {}) {
    if (code == NVRTC_SUCCESS) {
        return;
    }
    std::string cure;
    if (code == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) {
        cure = " (is libnvrtc-builtins of CUDA " + nvrtc_version() +
               " installed and found beside libnvrtc? Add its folder to LD_LIBRARY_PATH)";
    }
    throw DeviceError("NVRTC, " + what + ": " + nvrtc().nvrtcGetErrorString(code) + cure +
                      first_errors(log));
}

class Program {
  public:
    explicit Program(const std::string& source) {
        std::vector<const char*> names;
        std::vector<const char*> texts;
        for (const EmbeddedSource& embedded : embedded_sources()) {
            names.push_back(embedded.name);
            texts.push_back(embedded.text);
        }
        const std::string text = "#include \"" + source + "\"\n";
        check(
            nvrtc().nvrtcCreateProgram(&program_, text.c_str(), "quiver.cu",
                                       static_cast<int>(names.size()), texts.data(), names.data()),
            "creating a program of " + source);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { static_cast<void>(nvrtc().nvrtcDestroyProgram(&program_)); }
    nvrtcProgram get() const { return program_; }

    std::string log() const {
        std::size_t size = 0;
        std::string text;
        if (nvrtc().nvrtcGetProgramLogSize(program_, &size) == NVRTC_SUCCESS && size > 1) {
            text.resize(size);
            static_cast<void>(nvrtc().nvrtcGetProgramLog(program_, text.data()));
            // ptxas leaves zeros between its lines.
            std::erase(text, '\0');
        }
        return text;
    }

  private:
    nvrtcProgram program_ = nullptr;
};

bool is_machine_code(const std::string& arch) {
    return arch.rfind("sm_", 0) == 0;
}

}  // namespace

CompiledProgram compile(const CompileRequest& request) {
    const Program program(request.source);
    for (const std::string& expression : request.expressions) {
        check(nvrtc().nvrtcAddNameExpression(program.get(), expression.c_str()), expression);
    }
    const std::string arch = "-arch=" + request.arch;
    std::vector<const char*> options(std::begin(common_options), std::end(common_options));
    options.push_back(arch.c_str());
    for (const std::string& option : request.options) {
        options.push_back(option.c_str());
    }
    const nvrtcResult code = nvrtc().nvrtcCompileProgram(
        program.get(), static_cast<int>(options.size()), options.data());
    CompiledProgram result;
    result.log = program.log();
    const std::string what = "compiling " + describe(request);
    check(code, what, result.log);
    for (const std::string& expression : request.expressions) {
        const char* name = nullptr;
        check(nvrtc().nvrtcGetLoweredName(program.get(), expression.c_str(), &name), expression);
        result.lowered_names.emplace_back(name);
    }
    const bool machine_code = is_machine_code(request.arch);
    std::size_t size = 0;
    check(machine_code ? nvrtc().nvrtcGetCUBINSize(program.get(), &size)
                       : nvrtc().nvrtcGetPTXSize(program.get(), &size),
          what);
    result.image.resize(size);
    check(machine_code ? nvrtc().nvrtcGetCUBIN(program.get(), result.image.data())
                       : nvrtc().nvrtcGetPTX(program.get(), result.image.data()),
          what);
    return result;
}

std::string nvrtc_version() {
    int major = 0;
    int minor = 0;
    if (nvrtc().nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) {
        return "unknown";
    }
    return std::to_string(major) + "." + std::to_string(minor);
}

std::string arch_for(int compute_major, int compute_minor) {
    int count = 0;
    check(nvrtc().nvrtcGetNumSupportedArchs(&count), "querying architectures");
    std::vector<int> known(static_cast<std::size_t>(count));
    check(nvrtc().nvrtcGetSupportedArchs(known.data()), "querying architectures");
    std::sort(known.begin(), known.end());
    const int wanted = compute_major * 10 + compute_minor;
    const auto newer = std::upper_bound(known.begin(), known.end(), wanted);
    if (newer == known.begin()) {
        throw DeviceError("NVRTC " + nvrtc_version() + " does not support compute capability " +
                          std::to_string(compute_major) + "." + std::to_string(compute_minor) +
                          ": install an older CUDA, or use --device host");
    }
    const int best = *std::prev(newer);
    return (best == wanted ? "sm_" : "compute_") + std::to_string(best);
}

std::string describe(const CompileRequest& request) {
    std::string text = request.source;
    for (const std::string& expression : request.expressions) {
        text += " " + expression;
    }
    text += " for " + request.arch;
    for (const char* option : common_options) {
        text += std::string(" ") + option;
    }
    for (const std::string& option : request.options) {
        text += " " + option;
    }
    return text;
}

}  // namespace quiver::cuda
