// SPDX-License-Identifier: BSD-3-Clause
#include "tests/architecture/code_shape.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <initializer_list>
#include <utility>

namespace quiver::architecture {

namespace {

bool is_word_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Splits text into tokens; see tokens_of().
class Tokenizer {
  public:
    explicit Tokenizer(std::string_view text) : text_(text) {}

    std::vector<Token> run() {
        bool at_line_start = true;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') {
                at_line_start = true;
                advance(1);
            } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
                advance(1);
            } else if (starts_with("/*")) {
                skip_past("*/", 2);
            } else if (c == '#' && at_line_start) {
                read_directive();
            } else if (starts_with("//") || in_other_branch()) {
                skip_line();
            } else {
                at_line_start = false;
                read_token(c);
            }
        }
        return std::move(tokens_);
    }

  private:
    bool starts_with(std::string_view part) const { return text_.substr(at_, part.size()) == part; }

    void advance(std::size_t count) {
        const auto part = text_.substr(at_, count);
        line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
        at_ += part.size();
    }

    void skip_past(std::string_view end, std::size_t from) {
        const auto place = text_.find(end, at_ + from);
        advance(place == std::string_view::npos ? text_.size() - at_ : place + end.size() - at_);
    }

    /// Skips to the end of the line, and on if a backslash continues the line.
    void skip_line() {
        while (at_ < text_.size() && text_[at_] != '\n') {
            advance(starts_with("\\\n") ? 2 : 1);
        }
    }

    void read_directive() {
        const auto word = text_.find_first_not_of(" \t", at_ + 1);
        const auto directive = text_.substr(std::min(word, text_.size()));
        if (directive.starts_with("if")) {
            branches_.push_back(Branch::first);
        } else if (directive.starts_with("el") && !branches_.empty()) {
            branches_.back() = Branch::other;
        } else if (directive.starts_with("endif") && !branches_.empty()) {
            branches_.pop_back();
        }
        skip_line();
    }

    bool in_other_branch() const {
        return std::find(branches_.begin(), branches_.end(), Branch::other) != branches_.end();
    }

    void read_token(char c) {
        if (starts_with("R\"")) {
            const auto open = text_.find('(', at_);
            const auto prefix = text_.substr(at_ + 2, open - at_ - 2);
            add("\"\"", 0);
            skip_past(")" + std::string(prefix) + "\"", 2);
        } else if (c == '"' || c == '\'') {
            add("\"\"", 0);
            skip_literal(c);
        } else if (is_word_char(c)) {
            add_word();
        } else if (starts_with("::") || starts_with("->")) {
            add(text_.substr(at_, 2), 2);
        } else {
            add(text_.substr(at_, 1), 1);
        }
    }

    /// An identifier or a number; 1'000 is one number.
    void add_word() {
        const bool number = std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
        std::size_t end = at_;
        while (end < text_.size() && (is_word_char(text_[end]) || (number && text_[end] == '\''))) {
            ++end;
        }
        add(text_.substr(at_, end - at_), end - at_);
    }

    void skip_literal(char quote) {
        advance(1);
        while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
            advance(text_[at_] == '\\' ? 2 : 1);
        }
        advance(1);
    }

    void add(std::string_view token, std::size_t length) {
        tokens_.push_back({std::string(token), line_});
        advance(length);
    }

    enum class Branch { first, other };

    std::string_view text_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::vector<Branch> branches_;
    std::vector<Token> tokens_;
};

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Walks the declarations of namespaces and classes and skips the bodies of functions.
class Walker {
  public:
    explicit Walker(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    CodeShape run() {
        while (at_ < tokens_.size()) {
            walk_scope(nullptr);
            ++at_;  // a closing brace without an open scope
        }
        return std::move(shape_);
    }

  private:
    /// The part of a declaration that has been read, without the content of its brackets.
    struct Declaration {
        std::vector<std::string> words;
        int first_line = 0;
        /// The name before the parameters; empty if no parameters have been read.
        std::string function;
        bool has_parentheses = false;
        bool has_initializer = false;
        /// The variable that a lambda initialises; empty outside of the lambda.
        std::string lambda;
        /// True in a constructor after the colon of its member initialisers.
        bool in_member_initialisers = false;
        int declarators = 1;

        bool has(std::string_view word) const {
            return std::find(words.begin(), words.end(), word) != words.end();
        }
        std::string_view last() const {
            return words.empty() ? std::string_view() : std::string_view(words.back());
        }
    };

    const std::string& text() const { return tokens_[at_].text; }

    /// Skips an opening bracket, its content and the closing bracket.
    void skip_group() {
        int depth = 0;
        for (; at_ < tokens_.size(); ++at_) {
            if (is_any_of(text(), {"(", "[", "{"})) {
                ++depth;
            } else if (is_any_of(text(), {")", "]", "}"}) && --depth == 0) {
                ++at_;
                return;
            }
        }
    }

    /// Skips `<`, its content and the closing `>`.
    void skip_template_arguments() {
        int depth = 0;
        while (at_ < tokens_.size()) {
            if (is_any_of(text(), {"(", "[", "{"})) {
                skip_group();
                continue;
            }
            depth += text() == "<" ? 1 : 0;
            depth -= text() == ">" ? 1 : 0;
            ++at_;
            if (depth == 0) {
                return;
            }
        }
    }

    /// Walks to the brace that closes the scope, or to the end.
    void walk_scope(ClassShape* inside) {
        Declaration declaration;
        while (at_ < tokens_.size() && text() != "}") {
            if (declaration.words.empty()) {
                declaration.first_line = tokens_[at_].line;
            }
            if (read_part(declaration, inside)) {
                declaration = {};
            }
        }
    }

    /// Reads one token or group of a declaration. Returns true if the declaration ends there.
    bool read_part(Declaration& declaration, ClassShape* inside) {
        const std::string& token = text();
        if (token == ";") {
            count_members(declaration, inside);
            ++at_;
            return true;
        }
        if (token == "{") {
            return read_braces(declaration);
        }
        if (token == "(") {
            read_parentheses(declaration);
            return false;
        }
        if (token == "[") {
            if (declaration.last() == "=" && declaration.words.size() > 1) {
                declaration.lambda = declaration.words[declaration.words.size() - 2];
            }
            skip_group();
            return false;
        }
        const bool in_operator_name = declaration.has("operator") && !declaration.has_parentheses;
        if (token == "<" && !in_operator_name && !declaration.has_initializer) {
            skip_template_arguments();
            if (declaration.last() == "template") {
                declaration.words.pop_back();  // not a part of the declaration that follows
            }
            return false;
        }
        if (token == ":") {
            if (declaration.words.size() == 1 &&
                is_any_of(declaration.words[0], {"public", "private", "protected"})) {
                ++at_;
                return true;
            }
            declaration.in_member_initialisers =
                declaration.has_parentheses && !is_class(declaration);
        } else if (token == "=" && declaration.last() != "operator") {
            declaration.has_initializer = true;
        } else if (token == "," && begins_declarator(at_ + 1)) {
            ++declaration.declarators;
        }
        declaration.words.push_back(token);
        ++at_;
        return false;
    }

    /// True if a declarator (`name`, `name = ...`) begins at this token rather than a template
    /// argument.
    bool begins_declarator(std::size_t token) const {
        while (token < tokens_.size() && is_any_of(tokens_[token].text, {"*", "&"})) {
            ++token;
        }
        return token + 1 < tokens_.size() &&
               is_any_of(tokens_[token + 1].text, {",", ";", "=", "{", "[", ":"});
    }

    void read_parentheses(Declaration& declaration) {
        const std::size_t begin = at_;
        skip_group();
        if (begin + 1 < tokens_.size() && tokens_[begin + 1].text == "*") {
            declaration.words.emplace_back("(*)");  // a pointer to a function
            return;
        }
        const bool parameters = !declaration.has_initializer && !declaration.has("(*)") &&
                                !is_any_of(declaration.last(), {"operator", "requires", "decltype",
                                                                "alignas", "explicit", "noexcept"});
        if (parameters && !declaration.in_member_initialisers) {
            declaration.has_parentheses = true;
            declaration.function = function_name(declaration, begin);
        }
        declaration.words.emplace_back("()");
    }

    /// The word before the parentheses that begin at `begin`; Suite.Name for GoogleTest's macros.
    std::string function_name(const Declaration& declaration, std::size_t begin) const {
        if (!is_any_of(declaration.last(), {"TEST", "TEST_F", "TEST_P", "TYPED_TEST"})) {
            return std::string(declaration.last() == "()" ? "operator()" : declaration.last());
        }
        std::string name;
        for (std::size_t i = begin + 1; i + 1 < at_; ++i) {
            name += tokens_[i].text == "," ? "." : tokens_[i].text;
        }
        return name;
    }

    static bool is_class(const Declaration& declaration) {
        return !declaration.has_parentheses && !declaration.has_initializer &&
               (declaration.has("class") || declaration.has("struct") || declaration.has("union"));
    }

    bool read_braces(Declaration& declaration) {
        if (declaration.has("namespace") ||
            (declaration.has("extern") && !declaration.has_parentheses)) {
            ++at_;
            walk_scope(nullptr);
            ++at_;
            return true;
        }
        if (is_class(declaration) && !declaration.has("enum")) {
            read_class(declaration);
            return false;  // a declarator may follow: struct { ... } name;
        }
        const bool initialises_member = declaration.in_member_initialisers &&
                                        declaration.last() != "()" && declaration.last() != "{}";
        const bool is_function =
            declaration.has_parentheses && !declaration.has_initializer && !initialises_member;
        const int first = tokens_[at_].line;
        skip_group();
        const std::string name =
            is_function ? declaration.function : std::exchange(declaration.lambda, {});
        if (!name.empty()) {
            const int last = tokens_[at_ - 1].line;
            shape_.functions.push_back({name, declaration.first_line, last - first + 1});
        }
        if (is_function) {
            return true;
        }
        declaration.words.emplace_back("{}");
        return false;
    }

    void read_class(Declaration& declaration) {
        ClassShape shape{name_of_class(declaration), declaration.first_line, 0};
        ++at_;
        walk_scope(&shape);
        ++at_;
        shape_.classes.push_back(shape);
        declaration.words = {"{class}"};
        declaration.declarators = 1;
    }

    /// The last word before `final` or the base classes.
    static std::string name_of_class(const Declaration& declaration) {
        std::string name;
        for (const std::string& word : declaration.words) {
            if (word == ":" || word == "final") {
                break;
            }
            name = word;
        }
        return name;
    }

    static void count_members(const Declaration& declaration, ClassShape* inside) {
        if (inside == nullptr || declaration.words.empty() || declaration.has_parentheses ||
            declaration.words == std::vector<std::string>{"{class}"}) {
            return;
        }
        for (const std::string_view word :
             {"using", "typedef", "friend", "static", "static_assert", "operator"}) {
            if (declaration.has(word)) {
                return;
            }
        }
        // Enumerations and forward declarations of classes are not members.
        if ((is_any_of(declaration.words[0], {"enum", "class", "struct", "union"})) &&
            (declaration.words[0] == "enum" || declaration.words.size() == 2)) {
            return;
        }
        inside->data_members += declaration.declarators;
    }

    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    CodeShape shape_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
    return Tokenizer(text).run();
}

CodeShape shape_of(std::string_view text) {
    return Walker(tokens_of(text)).run();
}

}  // namespace quiver::architecture
