// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints in a folder: any number of ranks can read them, and damage to any byte is found.
#include <algorithm>
#include <complex>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/checkpoint/checkpoint_folder.hpp"
#include "apps/checkpoint/reordered_checkpoint.hpp"
#include "apps/matrices/generators.hpp"
#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "kernels/random.hpp"
#include "kernels/sparse/assemble.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/shared_folder.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

namespace fs = std::filesystem;

TEST(Crc64, IsThePublishedOneInAnyPieces) {
    const std::string text = "123456789";
    EXPECT_EQ(to_hex(crc64(text.data(), text.size())), "995dc9bbdf1939fa");
    EXPECT_EQ(crc64(nullptr, 0), 0U);
    std::mt19937_64 generator = test::make_generator();
    std::vector<unsigned char> bytes(1000);
    for (auto& byte : bytes) {
        byte = static_cast<unsigned char>(generator());
    }
    const std::uint64_t whole = crc64(bytes.data(), bytes.size());
    for (int i = 0; i < 50; ++i) {
        const std::size_t cut = generator() % (bytes.size() + 1);
        EXPECT_EQ(crc64(bytes.data() + cut, bytes.size() - cut, crc64(bytes.data(), cut)), whole)
            << cut;
    }
}

CheckpointManifest some_manifest() {
    CheckpointManifest manifest;
    manifest.generation = 12;
    manifest.identity = {{"MATRIX", "3 rows \"quoted\""}, {"-k", "4"}};
    manifest.scalar = "z";
    manifest.solver = "lanczos";
    manifest.numbers = {{"norm", {0.1 + 0.2}},
                        {"steps", {9007199254740992.0}},
                        {"values", {-1.5, 1e-310, std::numeric_limits<double>::max(), -0.0}},
                        {"none", {}}};
    manifest.blocks = {{"basis", {100, 7}}, {"empty", {100, 0}}};
    manifest.matrices = {{"h", {5, 5}}};
    manifest.offsets = {0, 40, 40, 100};
    manifest.files = {{1000, 0xfedcba9876543210U}, {800, 0}, {1200, 17}};
    return manifest;
}

TEST(Manifest, ReadsWhatItWrites) {
    const CheckpointManifest manifest = some_manifest();
    const std::string text = to_text(manifest);
    EXPECT_TRUE(parse_manifest(text, "m.json") == manifest) << text;
    EXPECT_EQ(to_text(parse_manifest(text, "m.json")), text);
}

TEST(Manifest, FindsEveryFlippedBitAndEveryTruncation) {
    const std::string text = to_text(some_manifest());
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = text;
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
            EXPECT_THROW(parse_manifest(damaged, "m.json"), InputError) << at << ' ' << bit;
        }
        EXPECT_THROW(parse_manifest(text.substr(0, at), "m.json"), InputError) << at;
    }
    EXPECT_THROW(parse_manifest(text + "x", "m.json"), InputError);
}

/// `text` with a changed body and the checksum of that body.
std::string signed_text(const std::string& text, const std::string& from, const std::string& to) {
    std::string body = text.substr(text.find('\n') + 1);
    const std::size_t at = body.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    body.replace(at, from.size(), to);
    return "{\"crc64\": \"" + to_hex(crc64(body.data(), body.size())) + "\",\n" + body;
}

TEST(Manifest, RefusesInconsistentPartsWithARightChecksum) {
    const std::string text = to_text(some_manifest());
    EXPECT_NO_THROW(parse_manifest(signed_text(text, "lanczos", "lobpcg"), "m.json"));
    const std::pair<const char*, const char*> changes[] = {
        {"\"format\": 1", "\"format\": 2"},
        {"\"format\": 1", "\"former\": 1"},
        {"\"generation\": 12", "\"generation\": -1"},
        {"\"generation\": 12", "\"generation\": 1e3"},
        {"\"scalar\": \"z\"", "\"scalar\": 4"},
        {"\"scalar\": \"z\"", "\"scalar\": \"\\n\""},
        {"lanczos\",", "lanczos\""},
        {"1.7976931348623157e+308", "1e999"},
        {"\"-k\"", "7"},
        {"\"norm\":[", "\"norm\":[null,"},
        {"\"norm\":[", "\"norm\":[\"1\","},
        {"fedcba9876543210", "fedcba987654321"},
        {"fedcba9876543210", "fedcba987654321g"},
    };
    for (const auto& [from, to] : changes) {
        EXPECT_THROW(parse_manifest(signed_text(text, from, to), "m.json"), InputError) << to;
    }
    CheckpointManifest manifest = some_manifest();
    manifest.offsets = {0, 50, 40, 100};
    EXPECT_THROW(parse_manifest(to_text(manifest), "m.json"), InputError);
    manifest.offsets = {1, 40, 50, 100};
    EXPECT_THROW(parse_manifest(to_text(manifest), "m.json"), InputError);
    manifest.offsets = {0, 40, 100};
    EXPECT_THROW(parse_manifest(to_text(manifest), "m.json"), InputError);
    manifest = some_manifest();
    manifest.blocks["basis"].rows = 99;
    EXPECT_THROW(parse_manifest(to_text(manifest), "m.json"), InputError);
}

TEST(DescribeMatrix, DependsOnEveryEntryAndNotOnTheRanks) {
    const Context ctx = test::make_context();
    const std::string spec = "gen:anderson,L=6";
    const CsrRows<double> rows = generate<double>(ctx.comm(), spec, 1);
    const std::string all = describe_matrix(ctx.comm(), rows);
    EXPECT_EQ(describe_matrix(Comm(), generate<double>(Comm(), spec, 1)), all);
    CsrRows<double> alone = generate<double>(Comm(), spec, 1);
    for (std::size_t entry = 0; entry < alone.value.size(); entry += 37) {
        const double before = alone.value[entry];
        alone.value[entry] = std::nextafter(before, 1e9);
        EXPECT_NE(describe_matrix(Comm(), alone), all) << entry;
        alone.value[entry] = before;
    }
    EXPECT_EQ(describe_matrix(Comm(), alone), all);
    EXPECT_NE(describe_matrix(ctx.comm(), generate<double>(ctx.comm(), spec + ",seed=2", 1)), all);
}

const CheckpointIdentity identity = {{"MATRIX", "that one"}, {"-k", "4"}};

std::string bytes_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

template <class T>
class CheckpointFolderTest : public ::testing::Test {
  protected:
    static constexpr std::int64_t rows = 700;

    void SetUp() override {
        if (!config::have_hdf5) {
            GTEST_SKIP() << "built without HDF5";
        }
        ctx.set_event_sink([&](const Event& event) {
            if (const auto* notice = std::get_if<NoticeEvent>(&event)) {
                notices.push_back(notice->text);
            }
        });
    }
    RowMap map() const { return test::uneven_map(ctx, rows); }
    CheckpointOptions there() const { return {folder.path("ck"), 0, folder.path("ck")}; }
    void prepare() {
        if (ctx.comm().rank() == 0) {
            fs::create_directories(folder.path("ck"));
        }
        ctx.comm().barrier();
    }
    /// Saves a state that depends on `seed` alone, with blocks in the numbering of `reordering`.
    void save(Checkpoint<T>& checkpoint, std::uint64_t seed,
              const Reordering* reordering = nullptr) {
        BlockVector<T> x(ctx, map(), 5, 9);
        fill_random(ctx, seed, x);
        if (reordering != nullptr) {
            BlockVector<T> y(ctx, reordering->solver_map(), 5, 9);
            reordering->to_solver(ctx, x.view(), y.view());
            x = std::move(y);
        }
        SolverState<T> state;
        state.solver = "lanczos";
        state.numbers["seed"] = {static_cast<double>(seed)};
        SmallMatrix<T> h(3, 4);
        for (int i = 0; i < 12; ++i) {
            h.data()[i] = T(static_cast<real_t<T>>(0.1 * i + static_cast<double>(seed)));
        }
        state.matrices["h"] = h;
        state.blocks["x"] = x.view();
        state.blocks["none"] = x.columns(5, 0);
        checkpoint.save(ctx, state);
    }
    void expect_state(const SavedState<T>* saved, std::uint64_t seed) {
        ASSERT_NE(saved, nullptr);
        EXPECT_EQ(saved->solver(), "lanczos");
        EXPECT_EQ(saved->number("seed"), static_cast<double>(seed));
        BlockVector<T> x(ctx, map(), 5);
        BlockVector<T> y(ctx, map(), 5);
        fill_random(ctx, seed, x);
        saved->read(ctx, "x", y.view());
        saved->read(ctx, "none", y.columns(0, 0));
        std::vector<T> a(static_cast<std::size_t>(x.rows() * 5));
        std::vector<T> b(a.size());
        copy(ctx, std::as_const(x).view(), BlockView<T>(a.data(), x.rows(), 5, 5));
        copy(ctx, std::as_const(y).view(), BlockView<T>(b.data(), x.rows(), 5, 5));
        EXPECT_TRUE(a == b);
        const SmallMatrix<T> h = saved->matrix(ctx, "h", 3, 4);
        EXPECT_EQ(h(2, 3), T(static_cast<real_t<T>>(0.1 * 11 + static_cast<double>(seed))));
    }
    std::unique_ptr<CheckpointFolder<T>> open(CheckpointIdentity who = identity) {
        notices.clear();
        return std::make_unique<CheckpointFolder<T>>(ctx, there(), map(), std::move(who));
    }
    std::string file(std::int64_t generation, int rank) const {
        return folder.path("ck/" + rank_file_name(generation, rank));
    }
    std::string manifest(std::int64_t generation) const {
        return folder.path("ck/" + manifest_name(generation));
    }
    /// Runs `step` on rank 0, between two barriers.
    template <class F>
    void alone(F&& step) {
        ctx.comm().barrier();
        if (ctx.comm().rank() == 0) {
            step();
        }
        ctx.comm().barrier();
    }

    Context ctx = test::make_context();
    std::mt19937_64 generator = test::make_generator();
    test::SharedFolder folder{ctx.comm()};
    std::vector<std::string> notices;
};
TYPED_TEST_SUITE(CheckpointFolderTest, test::Scalars, test::ScalarName);

TYPED_TEST(CheckpointFolderTest, KeepsTwoGenerationsAndReadsTheNewest) {
    this->prepare();
    {
        const auto first = this->open();
        EXPECT_EQ(first->saved(), nullptr);
        for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
            EXPECT_TRUE(first->due() == (this->ctx.comm().rank() == 0));
            this->save(*first, seed);
        }
    }
    this->alone([&] {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(this->folder.path("ck"))) {
            names.push_back(entry.path().filename().string());
        }
        std::vector<std::string> expected;
        for (const std::int64_t generation : {2, 3}) {
            expected.push_back(manifest_name(generation));
            for (int rank = 0; rank < this->ctx.comm().size(); ++rank) {
                expected.push_back(rank_file_name(generation, rank));
            }
        }
        std::sort(names.begin(), names.end());
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(names, expected);
    });
    const auto second = this->open();
    this->expect_state(second->saved(), 4);
    EXPECT_THROW(second->saved()->matrix(this->ctx, "h", 4, 3), InputError);
    BlockVector<TypeParam> wide(this->ctx, this->map(), 6);
    EXPECT_THROW(second->saved()->read(this->ctx, "x", wide.view()), InputError);
    // Generation numbers continue, so that no file name is used twice.
    this->save(*second, 5);
    this->expect_state(this->open()->saved(), 5);
    this->alone([&] { EXPECT_TRUE(fs::exists(this->manifest(4))); });
}

/// One rank reads a checkpoint of all ranks, and all ranks read a checkpoint of one rank.
TYPED_TEST(CheckpointFolderTest, AReorderedRunSavesTheNumberingOfTheUser) {
    using T = TypeParam;
    this->prepare();
    Context& ctx = this->ctx;
    const RowMap user = this->map();
    std::vector<std::int64_t> to(static_cast<std::size_t>(this->rows));
    std::iota(to.begin(), to.end(), std::int64_t{0});
    std::shuffle(to.begin(), to.end(), this->generator);
    const Reordering reordering(
        ctx.comm(), user, RowMap::by_rows(ctx.comm(), this->rows),
        {to.begin() + user.first_row(), to.begin() + user.first_row() + user.local_rows()});
    {
        const auto folder = this->open();
        ReorderedCheckpoint<T> checkpoint(*folder, reordering);
        EXPECT_EQ(checkpoint.saved(), nullptr);
        EXPECT_TRUE(checkpoint.due() == (ctx.comm().rank() == 0));
        this->save(checkpoint, 7, &reordering);
    }
    const auto folder = this->open();
    this->expect_state(folder->saved(), 7);
    const ReorderedCheckpoint<T> checkpoint(*folder, reordering);
    const SavedState<T>* const saved = checkpoint.saved();
    ASSERT_NE(saved, nullptr);
    EXPECT_EQ(saved->solver(), "lanczos");
    EXPECT_EQ(saved->number("seed"), 7);
    EXPECT_EQ(saved->matrix(ctx, "h", 3, 4).rows(), 3);
    BlockVector<T> x(ctx, user, 5);
    BlockVector<T> y(ctx, reordering.solver_map(), 5);
    fill_random(ctx, 7, x);
    saved->read(ctx, "x", y.view());
    const BlockVector<T> back = reordering.to_user<T>(ctx, y.view());
    BlockVector<T> expected(ctx, user, 5, 0, Place::host);
    copy(ctx, x.view(), expected.view());
    for (std::int64_t i = 0; i < user.local_rows(); ++i) {
        for (int j = 0; j < 5; ++j) {
            ASSERT_EQ(back.view()(i, j), std::as_const(expected).view()(i, j));
        }
    }
}

TYPED_TEST(CheckpointFolderTest, AnyNumberOfRanksReadsIt) {
    using T = TypeParam;
    this->prepare();
    this->save(*this->open(), 7);
    const auto read_alone = [&](const std::string& name) {
        Context one;  // of this process alone
        const RowMap whole(0, {0, this->rows});
        const CheckpointFolder<T> checkpoint(one, {std::nullopt, 0, name}, whole, identity);
        ASSERT_NE(checkpoint.saved(), nullptr);
        BlockVector<T> x(one, whole, 5);
        BlockVector<T> y(one, whole, 5);
        fill_random(one, checkpoint.saved()->number("seed") == 7 ? 7 : 8, x);
        checkpoint.saved()->read(one, "x", y.view());
        for (std::int64_t i = 0; i < this->rows; ++i) {
            for (int j = 0; j < 5; ++j) {
                ASSERT_EQ(y.view()(i, j), x.view()(i, j)) << i << ' ' << j;
            }
        }
    };
    read_alone(this->folder.path("ck"));
    this->alone([&] {
        Context one;
        const RowMap whole(0, {0, this->rows});
        CheckpointFolder<T> checkpoint(one, {this->folder.path("one"), 0, std::nullopt}, whole,
                                       identity);
        fs::create_directories(this->folder.path("one"));
        BlockVector<T> x(one, whole, 5);
        fill_random(one, 9, x);
        SolverState<T> state;
        state.solver = "lanczos";
        state.numbers["seed"] = {9};
        state.blocks["x"] = x.view();
        state.blocks["none"] = x.columns(0, 0);
        state.matrices["h"] = SmallMatrix<T>(3, 4);
        state.matrices["h"](2, 3) = T(static_cast<real_t<T>>(0.1 * 11 + 9));
        checkpoint.save(one, state);
    });
    const CheckpointFolder<T> all(this->ctx, {std::nullopt, 0, this->folder.path("one")},
                                  this->map(), identity);
    this->expect_state(all.saved(), 9);
}

/// If any byte of the newest generation is damaged, the older generation is used, and a notice says
/// so. If both generations are damaged, all ranks throw.
TYPED_TEST(CheckpointFolderTest, DamageFallsBackToTheOlderGeneration) {
    this->prepare();
    {
        const auto checkpoint = this->open();
        this->save(*checkpoint, 1);
        this->save(*checkpoint, 2);
    }
    const int ranks = this->ctx.comm().size();
    std::vector<std::string> paths = {this->manifest(1)};
    for (int rank = 0; rank < ranks; ++rank) {
        paths.push_back(this->file(1, rank));
    }
    for (int trial = 0; trial < 24; ++trial) {
        // All ranks draw the same random numbers.
        const std::string path = paths[this->generator() % paths.size()];
        const std::uint64_t place = this->generator();
        const int kind = trial % 3;
        std::string whole;
        this->alone([&] {
            whole = bytes_of(path);
            ASSERT_FALSE(whole.empty());
            std::string damaged = whole;
            const std::size_t at = place % whole.size();
            if (kind == 0) {
                damaged[at] = static_cast<char>(damaged[at] ^ (1 << (place >> 40) % 8));
            } else {
                damaged.resize(kind == 1 ? at : 0);
            }
            std::ofstream(path, std::ios::binary) << damaged;
            if (kind == 2) {
                fs::remove(path);
            }
        });
        SCOPED_TRACE(path + ", byte " + std::to_string(place) + ", kind " + std::to_string(kind));
        const auto checkpoint = this->open();
        if (kind == 2 && path == this->manifest(1)) {
            this->expect_state(checkpoint->saved(), 1);  // ignored without its manifest
        } else {
            this->expect_state(checkpoint->saved(), 1);
            ASSERT_EQ(this->notices.size(), 2U);
            EXPECT_NE(this->notices[0].find("; using generation 0"), std::string::npos)
                << this->notices[0];
        }
        this->alone([&] { std::ofstream(path, std::ios::binary) << whole; });
    }
    this->expect_state(this->open()->saved(), 2);
    this->alone([&] {
        fs::resize_file(this->file(1, ranks - 1), 100);
        fs::resize_file(this->file(0, 0), 100);
    });
    try {
        this->open();
        ADD_FAILURE() << "two damaged generations were accepted";
    } catch (const InputError& error) {
        EXPECT_TRUE(error.collective());
        EXPECT_NE(std::string(error.what()).find("no checkpoint is complete"), std::string::npos)
            << error.what();
    }
}

/// The generation from which the run resumed stays until a new one is complete, even if there are
/// newer damaged ones.
TYPED_TEST(CheckpointFolderTest, ADamagedNewestIsReplacedFirst) {
    this->prepare();
    {
        const auto checkpoint = this->open();
        this->save(*checkpoint, 1);
        this->save(*checkpoint, 2);
    }
    this->alone([&] { fs::resize_file(this->file(1, 0), 10); });
    this->save(*this->open(), 3);
    this->alone([&] {
        EXPECT_EQ(generations_in(this->folder.path("ck")), (std::vector<std::int64_t>{2, 0}));
        fs::resize_file(this->file(2, 0), 10);
    });
    this->expect_state(this->open()->saved(), 1);
}

TYPED_TEST(CheckpointFolderTest, RefusesAnotherProblem) {
    this->prepare();
    this->save(*this->open(), 1);
    const auto refused = [&](const CheckpointIdentity& who, const std::string& word) {
        try {
            this->open(who);
            ADD_FAILURE() << word;
        } catch (const InputError& error) {
            EXPECT_TRUE(error.collective());
            EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
        }
    };
    refused({{"MATRIX", "that one"}, {"-k", "5"}}, "is of -k 4, this run is of 5");
    refused({{"MATRIX", "another"}, {"-k", "4"}}, "is of MATRIX that one, this run is of another");
    refused({{"MATRIX", "that one"}, {"-k", "4"}, {"--new", "1"}}, "--new");
    using Other = std::conditional_t<std::is_same_v<TypeParam, double>, float, double>;
    EXPECT_THROW(CheckpointFolder<Other>(this->ctx, this->there(), this->map(), identity),
                 ShapeError);
    EXPECT_THROW(CheckpointFolder<TypeParam>(this->ctx, this->there(),
                                             test::uneven_map(this->ctx, this->rows + 1), identity),
                 ShapeError);
}

/// If the disk has room for nothing, for little, or only for a manifest, the run continues, no
/// partial file remains, and the last complete generation remains.
TYPED_TEST(CheckpointFolderTest, AFullDiskLosesOnlyTheCheckpoint) {
    this->prepare();
    const auto checkpoint = this->open();
    this->save(*checkpoint, 1);
    std::int64_t before = 0;
    this->alone(
        [&] { before = std::distance(fs::directory_iterator(this->folder.path("ck")), {}); });
    const int last = this->ctx.comm().size() - 1;
    int generation = 0;
    // The last of several ranks writes no manifest, only its rows, which may be few.
    for (const int bytes : {0, 1000, last == 0 ? 5000 : 2000}) {
        this->ctx.comm().barrier();
        this->notices.clear();
        std::optional<test::FileSizeLimit> limit;
        if (this->ctx.comm().rank() == last) {
            limit.emplace(bytes);
        }
        this->save(*checkpoint, 2);
        this->save(*checkpoint, 2);
        limit.reset();
        ASSERT_EQ(this->notices.size(), 1U) << bytes;
        EXPECT_NE(this->notices[0].find("no checkpoint: cannot write "), std::string::npos);
        EXPECT_NE(this->notices[0].find("; generation " + std::to_string(generation) +
                                        " stays, the run continues"),
                  std::string::npos)
            << this->notices[0];
        this->alone([&] {
            EXPECT_EQ(std::distance(fs::directory_iterator(this->folder.path("ck")), {}), before);
        });
        this->expect_state(this->open()->saved(), 1);
        this->save(*checkpoint, 1);  // its notices are discarded
        this->alone(
            [&] { before = std::distance(fs::directory_iterator(this->folder.path("ck")), {}); });
        ++generation;
    }
    this->save(*checkpoint, 3);
    this->expect_state(this->open()->saved(), 3);
}

TEST(CheckCheckpoint, ReportsErrorsBeforeTheWork) {
    if (!config::have_hdf5) {
        GTEST_SKIP() << "built without HDF5";
    }
    const Context ctx = test::make_context();
    const test::SharedFolder folder(ctx.comm());
    if (ctx.comm().rank() != 0) {
        return;
    }
    const auto refused = [](const CheckpointOptions& options) {
        try {
            check_checkpoint(options, 0);
        } catch (const InputError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    const std::string ck = folder.path("a/b");
    EXPECT_EQ(refused({}), "accepted");
    EXPECT_EQ(refused({ck, -1, {}}), "--every -1: seconds, 0 or more");
    EXPECT_EQ(refused({ck, 1, {}}), "accepted");
    EXPECT_TRUE(fs::is_directory(ck));
    EXPECT_TRUE(fs::is_empty(ck));
    EXPECT_EQ(refused({"", 1, {}}), "--checkpoint '': the name of a folder is wanted");
    EXPECT_EQ(refused({{}, 1, folder.path("c")}),
              "--resume " + folder.path("c") + ": no such folder");
    std::ofstream(folder.path("file")) << "x";
    EXPECT_NE(refused({folder.path("file"), 1, {}}), "accepted");
    EXPECT_NE(refused({folder.path("file/in"), 1, {}}), "accepted");
    std::ofstream(ck + "/" + manifest_name(3)) << "x";
    EXPECT_NE(refused({ck, 1, {}}).find("--resume"), std::string::npos);
    EXPECT_EQ(refused({ck, 1, ck}), "accepted");
}

}  // namespace
}  // namespace quiver::apps
