// SPDX-License-Identifier: BSD-3-Clause
// The functions and classes of a C++ file and their sizes, read without a compiler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quiver::architecture {

struct Token {
    std::string text;
    int line = 0;
};

/// The identifiers, numbers and punctuation of C++ text. Comments and preprocessor lines are
/// omitted, and so are the branches of #else and #elif, whose braces would count twice. A string or
/// character literal becomes the one token "".
std::vector<Token> tokens_of(std::string_view text);

struct FunctionShape {
    /// The last word before the parameter list: `apply` of `void Matrix<T>::apply(...)`.
    std::string name;
    int first_line = 0;
    /// Lines from the opening to the closing brace of the body, both included.
    int lines = 0;
};

struct ClassShape {
    std::string name;
    int first_line = 0;
    /// The number of non-static data members.
    int data_members = 0;
};

struct CodeShape {
    /// Functions at namespace and class scope, and lambdas that initialise a variable there; any
    /// other lambda belongs to the function around it.
    std::vector<FunctionShape> functions;
    /// Classes at namespace and class scope.
    std::vector<ClassShape> classes;
};

CodeShape shape_of(std::string_view text);

}  // namespace quiver::architecture
