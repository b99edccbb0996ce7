// SPDX-License-Identifier: BSD-3-Clause
// Reads functions and classes from C++ that is easy to misread.
#include "tests/architecture/code_shape.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace quiver::architecture {
namespace {

/// "name:lines" of every function and "name=members" of every class.
std::string summary(std::string_view text) {
    const CodeShape shape = shape_of(text);
    std::string result;
    for (const FunctionShape& function : shape.functions) {
        result += function.name + ':' + std::to_string(function.lines) + ' ';
    }
    for (const ClassShape& one : shape.classes) {
        result += one.name + '=' + std::to_string(one.data_members) + ' ';
    }
    return result;
}

TEST(CodeShape, OmitsCommentsStringsAndDirectives) {
    std::string text;
    for (const Token& token :
         tokens_of("a /* } */ b // {\n#define X {\\\n {{\n\"}\\\"\" '\"' 1'000 "
                   "R\"x(})\" } )x\" c->d::e")) {
        text += token.text + '@' + std::to_string(token.line) + ' ';
    }
    EXPECT_EQ(text, "a@1 b@1 \"\"@4 \"\"@4 1'000@4 \"\"@4 c@4 ->@4 d@4 ::@4 e@4 ");
}

TEST(CodeShape, ReadsOneBranchOfConditionalCode) {
    EXPECT_EQ(summary("#if A\nvoid f() {\n#elif B\nvoid f(int) {\n#else\nint f() {\n#endif\n}\n"
                      "int g() { return 1; }"),
              "f:7 g:1 ");
}

TEST(CodeShape, CountsLinesFromBraceToBrace) {
    EXPECT_EQ(summary("int\nf(int a,\n  int b)\n{\n  if (a) {\n    b();\n  }\n}\n"), "f:5 ");
    EXPECT_EQ(summary("namespace a { namespace b::c {\nvoid f() {}\n} }\nvoid g() {\n}"),
              "f:1 g:2 ");
    EXPECT_EQ(summary("extern \"C\" { void f() {} }\nextern \"C\" int g() { return 0; }"),
              "f:1 g:1 ");
}

TEST(CodeShape, DistinguishesBodiesFromInitialisers) {
    EXPECT_EQ(summary("const std::vector<int> table{\n1,\n2};\nconst int f = g([] {\n});\n"
                      "const std::array<int, 2> a = {\n1, 2};\nint b[2] = {\n1, 2};"),
              "");
    EXPECT_EQ(summary("template <class T>\nX<T>::X(int a) : Base<T>{a}, b_{a}, c_(d(a), {1}) {\n}"),
              "X:2 ");
    EXPECT_EQ(summary("auto f(int n = h<3>({1, 2})) noexcept(true) -> std::pair<int, T> {\n\n}"),
              "f:3 ");
    EXPECT_EQ(summary("template <class T>\nrequires(!std::is_const_v<T>) void norms(T x) {\n}"),
              "norms:2 ");
}

TEST(CodeShape, NamesFunctions) {
    EXPECT_EQ(summary("TEST(Suite, Name) {\n}\nTYPED_TEST(More, Of) {}"),
              "Suite.Name:2 More.Of:1 ");
    EXPECT_EQ(summary("QUIVER_LIST(float)\nvoid Matrix<T>::apply(int x) const {\n}"), "apply:2 ");
    EXPECT_EQ(summary("bool operator<(X a, X b) { }\nstruct A { int operator()(int i) { } };"),
              "<:1 operator():1 A=0 ");
}

TEST(CodeShape, CountsWhatEveryObjectHolds) {
    EXPECT_EQ(summary("class A final : public B<int, 3>, private C {\n"
                      "  public:\n"
                      "    A() = default;\n"
                      "    explicit A(int x) : first_(x) {}\n"
                      "    int get() const { return first_; }\n"
                      "    virtual void set(int) = 0;\n"
                      "    bool operator==(const A&) const = default;\n"
                      "    using X = int;\n"
                      "    static constexpr int none = 0;\n"
                      "    friend class D;\n"
                      "    enum class Kind : int { one, two };\n"
                      "    struct Inner { int a, b = 2, *c; };\n"
                      "    struct Declared;\n"
                      "  private:\n"
                      "    int first_ = 0;\n"
                      "    std::map<int, std::pair<A, B>> second_;\n"
                      "    std::function<void(int, int)> third_ = {};\n"
                      "    void (*fourth_)(int, int) = nullptr;\n"
                      "    std::vector<int> fifth_{1, 2}, sixth_;\n"
                      "    double seventh_[2] = {0, 1};\n"
                      "    struct { int x; } eighth_;\n"
                      "    struct sockaddr* ninth_ = f<A, B>();\n"
                      "};"),
              "A:1 get:1 Inner=3 struct=1 A=9 ");
}

TEST(CodeShape, KeepsItsPlaceAfterALambda) {
    EXPECT_EQ(
        summary("void f() {\n  const auto g = [&](int i) {\n    return i;\n  };\n}\nvoid h() {}"),
        "f:5 h:1 ");
    EXPECT_EQ(summary("constexpr auto square = [](int x) -> int {\nreturn x * x;\n};\n"
                      "const int one = [] {\nreturn 1; }();\nstruct A { std::function<int()> f = "
                      "[]<class T>(T) {\nreturn 2; }; int g = 1; };"),
              "square:3 one:2 f:2 A=2 ");
}

}  // namespace
}  // namespace quiver::architecture
