// SPDX-License-Identifier: BSD-3-Clause
// Name expressions of kernels: they select an instance of a device template.
#pragma once

#include <string>

#include "blockvec/scalar.hpp"

namespace quiver::cuda {

/// The name of a scalar type in device code.
template <class T>
std::string device_name() {
    return ScalarTraits<T>::device_name;
}

inline std::string template_argument(const std::string& name) {
    return name;
}
inline std::string template_argument(const char* name) {
    return name;
}
inline std::string template_argument(int number) {
    return std::to_string(number);
}
inline std::string template_argument(bool flag) {
    return flag ? "true" : "false";
}

/// "quiver::TsmmConfig{.tile=...,.second=0,...}"
template <class Config>
requires requires {
    Config::name;
}
std::string template_argument(const Config& config) {
    std::string text;
    Config::for_each_field(config, [&](const char* field, const auto& value) {
        text += (text.empty() ? "{." : ",.") + std::string(field) + "=" + template_argument(value);
    });
    return std::string("quiver::") + Config::name + text + "}";
}

/// "quiver::kernel<first,rest...>"
template <class First, class... Rest>
std::string instance(const char* kernel, const First& first, const Rest&... rest) {
    std::string text = std::string("quiver::") + kernel + "<" + template_argument(first);
    static_cast<void>(((text += "," + template_argument(rest)), ...));
    return text + ">";
}

/// The same instance of another template.
inline std::string with_template(const std::string& expression, const char* kernel) {
    return std::string("quiver::") + kernel + expression.substr(expression.find('<'));
}

}  // namespace quiver::cuda
