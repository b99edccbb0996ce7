// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/nvrtc_compile.hpp"

#include <algorithm>
#include <sstream>

#include <nvrtc.h>

#include "blockvec/error.hpp"
#include "kernels/cuda/embedded_sources.hpp"
#include "kernels/cuda/hash.hpp"

namespace quiver::cuda {
namespace {

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
    throw DeviceError("NVRTC, " + what + ": " + nvrtcGetErrorString(code) + cure +
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
        check(nvrtcCreateProgram(&program_, text.c_str(), "quiver.cu",
                                 static_cast<int>(names.size()), texts.data(), names.data()),
              "creating a program of " + source);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { static_cast<void>(nvrtcDestroyProgram(&program_)); }
    nvrtcProgram get() const { return program_; }

    std::string log() const {
        std::size_t size = 0;
        std::string text;
        if (nvrtcGetProgramLogSize(program_, &size) == NVRTC_SUCCESS && size > 1) {
            text.resize(size);
            static_cast<void>(nvrtcGetProgramLog(program_, text.data()));
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
        check(nvrtcAddNameExpression(program.get(), expression.c_str()), expression);
    }
    const std::string arch = "-arch=" + request.arch;
    std::vector<const char*> options(std::begin(common_options), std::end(common_options));
    options.push_back(arch.c_str());
    for (const std::string& option : request.options) {
        options.push_back(option.c_str());
    }
    const nvrtcResult code =
        nvrtcCompileProgram(program.get(), static_cast<int>(options.size()), options.data());
    CompiledProgram result;
    result.log = program.log();
    const std::string what = "compiling " + describe(request);
    check(code, what, result.log);
    for (const std::string& expression : request.expressions) {
        const char* name = nullptr;
        check(nvrtcGetLoweredName(program.get(), expression.c_str(), &name), expression);
        result.lowered_names.emplace_back(name);
    }
    const bool machine_code = is_machine_code(request.arch);
    std::size_t size = 0;
    check(machine_code ? nvrtcGetCUBINSize(program.get(), &size)
                       : nvrtcGetPTXSize(program.get(), &size),
          what);
    result.image.resize(size);
    check(machine_code ? nvrtcGetCUBIN(program.get(), result.image.data())
                       : nvrtcGetPTX(program.get(), result.image.data()),
          what);
    return result;
}

std::string nvrtc_version() {
    int major = 0;
    int minor = 0;
    if (nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) {
        return "unknown";
    }
    return std::to_string(major) + "." + std::to_string(minor);
}

std::string arch_for(int compute_major, int compute_minor) {
    int count = 0;
    check(nvrtcGetNumSupportedArchs(&count), "querying architectures");
    std::vector<int> known(static_cast<std::size_t>(count));
    check(nvrtcGetSupportedArchs(known.data()), "querying architectures");
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
