// SPDX-License-Identifier: MIT
#include "support/raster_fixtures.h"

#include "raster/io/ordered_blocks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace hsi::test {
namespace {

using raster::FileHandle;
using raster::OrderedBlocks;

FileHandle new_file(const std::string& path) {
    return FileHandle(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void place(OrderedBlocks& blocks, int64_t number, const std::string& bytes) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    blocks.place(number, {bytes.data(), bytes.size()}, lock);
    EXPECT_TRUE(lock.owns_lock());
}

TEST(OrderedBlocks, StandInTheOrderOfTheirNumbers) {
    const TempFolder folder;
    OrderedBlocks blocks(new_file(folder / "f"), 2, 4, {});
    place(blocks, 2, "third");
    place(blocks, 1, "2nd");
    EXPECT_EQ(blocks.waiting_bytes(), 8);
    EXPECT_EQ(blocks.sizes()[1], 0);
    place(blocks, 0, "first");
    EXPECT_EQ(blocks.waiting_bytes(), 0);
    place(blocks, 3, "last");
    blocks.close();
    EXPECT_EQ(text_of(folder / "f"), std::string(2, '\0') + "first2ndthirdlast");
    EXPECT_EQ(blocks.offsets(), (std::vector<uint64_t>{2, 7, 10, 15}));
    EXPECT_EQ(blocks.sizes(), (std::vector<uint64_t>{5, 3, 5, 4}));
}

TEST(OrderedBlocks, StandInFramesOfTheirSizeAndTheirEnd) {
    const TempFolder folder;
    OrderedBlocks blocks(new_file(folder / "f"), 0, 2, {true, true});
    place(blocks, 1, "abcdef");
    place(blocks, 0, "uvwxyz");
    blocks.close();
    EXPECT_EQ(text_of(folder / "f"), std::string("\6\0\0\0uvwxyzwxyz\6\0\0\0abcdefcdef", 28));
    EXPECT_EQ(blocks.offsets(), (std::vector<uint64_t>{4, 18}));
}

// The first position is just below 4 GiB; the file begins with a hole.
TEST(OrderedBlocks, EndAtFourGibibytesUnlessTheTiffIsABigOne) {
    const TempFolder folder;
    constexpr int64_t limit = int64_t{UINT32_MAX};
    OrderedBlocks fits(new_file(folder / "fits"), limit - 10, 2, {false, false});
    place(fits, 0, "12345");
    place(fits, 1, "67890");
    fits.close();
    struct stat info {};
    ASSERT_EQ(::stat((folder / "fits").c_str(), &info), 0);
    EXPECT_EQ(info.st_size, limit);

    OrderedBlocks over(new_file(folder / "over"), limit - 10, 2, {false, false});
    place(over, 1, "67890!");
    try {
        place(over, 0, "12345");
        FAIL() << "a TIFF beyond 4 GiB";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "a TIFF of 4 GiB or more must be a BigTIFF");
        EXPECT_EQ(e.advice(), "Use -co BIGTIFF=YES.");
    }

    OrderedBlocks big(new_file(folder / "big"), limit - 10, 1, {true, false});
    place(big, 0, "1234567890!");
    EXPECT_EQ(big.sizes()[0], 11);
}

TEST(OrderedBlocks, SayWhatTheSystemSays) {
    OrderedBlocks full(FileHandle(::open("/dev/full", O_WRONLY | O_CLOEXEC)), 0, 1, {});
    try {
        place(full, 0, "bytes");
        FAIL() << "written to a full disk";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "No space left on device");
    }
}

} // namespace
} // namespace hsi::test
