// SPDX-License-Identifier: MIT
// The files of a run: inputs are never overwritten, and either all outputs appear or none.
#include "support/raster_fixtures.h"

#include "core/error.h"
#include "core/file_path.h"
#include "raster/files/file_register.h"
#include "raster/side_files.h"
#include "raster/text_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace hsi::test {
namespace {

using raster::AtomicFile;
using raster::FileRegister;
using raster::TextOutput;

std::vector<std::string> with(const std::string& file) { return {file}; }

void make_raster(const std::string& path, const char* driver, int bands) {
    create_gdal(driver, path, 4, 3, bands, GDT_Float32);
}

std::unique_ptr<AtomicFile> complete(const std::string& path, const std::string& text, bool replace) {
    auto file = std::make_unique<AtomicFile>(path, replace);
    write_text(file->path(), text);
    return file;
}

/// A writer may set the time of a file back, but the system's time of change reveals this.
TEST(FileRegister, AChangeIsSeenBehindATimeThatWasSetBack) {
    const TempFolder folder;
    const std::string path = folder / "a.img";
    write_text(path, "one");
    FileRegister files;
    files.reads("src", path, {path});
    files.check_unchanged();
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // file systems store times in steps
    write_text(path, "two");
    const timespec times[] = {facts.st_atim, facts.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    EXPECT_THROW(files.check_unchanged(), Error);
}

// --- names

TEST(FilePath, OneFileHasManyNames) {
    const TempFolder folder;
    write_text(folder / "a.img", "x");
    fs::create_directory(folder / "real");
    fs::create_directory_symlink(folder / "real", folder / "linked");
    fs::create_symlink("a.img", folder / "link.img");
    fs::create_hard_link(folder / "a.img", folder / "hard.img");
    EXPECT_TRUE(same_file(folder / "a.img", folder / "./a.img"));
    EXPECT_TRUE(same_file(folder / "a.img", folder / "real/../a.img"));
    EXPECT_TRUE(same_file(folder / "a.img", folder / "link.img"));
    EXPECT_TRUE(same_file(folder / "a.img", folder / "hard.img"));
    EXPECT_TRUE(same_file(folder / "real/new.tif", folder / "linked/new.tif")) << "not there yet";
    EXPECT_TRUE(same_file(folder / "new.zarr", folder / "new.zarr/"));
    EXPECT_FALSE(same_file(folder / "a.img", folder / "b.img"));
    EXPECT_FALSE(same_file(folder / "real/new.tif", folder / "new.tif"));
    EXPECT_TRUE(same_file("/vsimem/a//b.tif", "/vsimem/a/b.tif"));
}

TEST(FilePath, LinksAreFollowedToTheirEnd) {
    const TempFolder folder;
    fs::create_symlink("second", folder / "first");
    fs::create_symlink("nowhere", folder / "second");
    EXPECT_EQ(follow_links(folder / "first"), folder / "nowhere");
    fs::create_symlink("round", folder / "about");
    fs::create_symlink("about", folder / "round");
    EXPECT_THROW(follow_links(folder / "round"), Error);
}

// --- one file

TEST(AtomicFile, LeavesOtherFilesAloneUntilItIsPublished) {
    const TempFolder folder;
    write_text(folder / "out.tif", "old");
    {
        const auto file = complete(folder / "out.tif", "new", true);
        EXPECT_EQ(read_text(folder / "out.tif"), "old");
        struct stat info {};
        ASSERT_EQ(::stat(folder_of(folder_of(file->path())).c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0700u) << "nobody else looks into it";
    }
    EXPECT_EQ(read_text(folder / "out.tif"), "old");
    EXPECT_EQ(folder.files(), std::vector<std::string>{"out.tif"});
}

TEST(AtomicFile, MessagesNameTheFinalFile) {
    const TempFolder folder;
    AtomicFile file(folder / "out.hsi-1.tif");
    const std::string end = folder / "out.hsi-1.tif";
    EXPECT_EQ(raster::with_final_names(file.path() + ", band 1; " + file.path() + ".aux.xml"),
              end + ", band 1; " + end + ".aux.xml");
    EXPECT_EQ(raster::with_final_names("'" + file.scratch_path("tif") + "': full"), "'" + end + "': full");
    for (const std::string other :
         {"x.hsi-abc/new/y", "a .hsi- b", ".hsi-", "/.x.hsi-abcdef", "/.x.hsi-abcdef/old/0"})
        EXPECT_EQ(raster::with_final_names(other), other);
}

TEST(AtomicFile, AUmaskTakesNoRightsToItsFolder) {
    const TempFolder folder;
    const mode_t before = umask(0777);
    const AtomicFile file(folder / "out.img");
    umask(before);
    const fs::path made = fs::path(file.path()).parent_path();
    EXPECT_EQ(fs::status(made).permissions(), fs::perms::owner_all);
    EXPECT_EQ(fs::status(made.parent_path()).permissions(), fs::perms::owner_all);
}

TEST(AtomicFile, WithoutReplacingTheFirstOfTwoWins) {
    const TempFolder folder;
    const auto first = complete(folder / "out.tif", "first", false);
    auto second = complete(folder / "out.tif", "second", false);
    first->commit();
    EXPECT_THROW(second->publish(), Error);
    second.reset();
    EXPECT_EQ(read_text(folder / "out.tif"), "first");
    EXPECT_EQ(folder.files(), std::vector<std::string>{"out.tif"});
}

TEST(AtomicFile, ASideFileThatWentFirstIsTakenBack) {
    const TempFolder folder;
    {
        AtomicFile file(folder / "out.img", false);
        write_text(file.path(), "data");
        write_text(folder_of(file.path()) + "/out.hdr", "header");
        write_text(folder / "out.img", "appeared meanwhile");
        EXPECT_THROW(file.publish(), Error);
    }
    EXPECT_EQ(folder.files(), std::vector<std::string>{"out.img"});
    EXPECT_EQ(read_text(folder / "out.img"), "appeared meanwhile");
}

TEST(AtomicFile, WithdrawingGivesBackFilesFoldersAndSideFiles) {
    const TempFolder folder;
    write_text(folder / "out.img", "old data");
    write_text(folder / "out.hdr", "old header");
    write_text(folder / "out.img.ovr", "old overview");
    {
        AtomicFile file(folder / "out.img");
        write_text(file.path(), "new data");
        write_text(folder_of(file.path()) + "/out.hdr", "new header");
        file.set_stale({folder / "out.img.ovr", folder / "./out.hdr"});
        file.publish();
        EXPECT_EQ(read_text(folder / "out.img"), "new data");
        EXPECT_EQ(read_text(folder / "out.hdr"), "new header") << "stale, but it has a successor";
        EXPECT_FALSE(fs::exists(folder / "out.img.ovr"));
        EXPECT_TRUE(file.withdraw());
    }
    EXPECT_EQ(read_text(folder / "out.img"), "old data");
    EXPECT_EQ(read_text(folder / "out.hdr"), "old header");
    EXPECT_EQ(read_text(folder / "out.img.ovr"), "old overview");
    EXPECT_EQ(folder.files(), (std::vector<std::string>{"out.hdr", "out.img", "out.img.ovr"}));
}

TEST(AtomicFile, WithdrawingLeavesAloneWhatOthersHavePutThere) {
    const TempFolder folder;
    const auto names = {"out.img", "out.hdr", "free.img"};
    for (const bool old : {false, true}) {
        for (const char* name : names)
            if (old) write_text(folder / name, "old");
        write_text(folder / "stale", "stale");
        {
            AtomicFile file(folder / "out.img");
            for (const char* name : names)
                write_text(folder_of(file.path()) + "/" + name, "new");
            file.set_stale({folder / "stale"});
            file.watch();
            file.publish();
            for (const char* name : names)
                EXPECT_NO_THROW(file.check_name(folder / name));
            // The newer version is not a different file.
            write_text(file.scratch_path("hdr"), "newer");
            file.renew(file.scratch_path("hdr"), folder / "out.hdr");
            EXPECT_EQ(read_text(folder / "out.hdr"), "newer");
            EXPECT_NO_THROW(file.check_name(folder / "out.hdr"));
            for (const char* name : {"out.img", "stale"}) {
                write_text(folder / "other", "of others");
                fs::rename(folder / "other", folder / name);
            }
            fs::remove(folder / "free.img");
            for (const char* name : {"out.img", "free.img"})
                EXPECT_THROW(file.check_name(folder / name), Error) << name;
            write_text(file.scratch_path("hdr"), "newest");
            EXPECT_THROW(file.renew(file.scratch_path("hdr"), folder / "out.img"), Error);
            EXPECT_TRUE(file.withdraw());
        }
        EXPECT_EQ(read_text(folder / "out.img"), "of others");
        EXPECT_EQ(read_text(folder / "stale"), "of others");
        for (const char* name : {"out.hdr", "free.img"}) {
            ASSERT_EQ(fs::exists(folder / name), old) << name;
            if (old) {
                EXPECT_EQ(read_text(folder / name), "old") << name;
            }
        }
        EXPECT_EQ(folder.files(), old ? (std::vector<std::string>{"free.img", "out.hdr", "out.img", "stale"})
                                      : (std::vector<std::string>{"out.img", "stale"}));
        fs::remove(folder / "out.img");
    }
}

TEST(AtomicFile, WhatAKilledProcessLeftGoesAndWhatALivingOneHasStays) {
    const TempFolder folder;
    const auto living = complete(folder / "out.tif", "of another run", true);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const auto file = complete(folder / "out.tif", "never finished", true);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        pause();
        _exit(0);
    }
    char c = 0;
    ASSERT_EQ(read(ready[0], &c, 1), 1);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    close(ready[0]);
    close(ready[1]);
    ASSERT_EQ(folder.files().size(), 2u) << "one of the killed process, one of the living one";
    const auto mine = complete(folder / "out.tif", "new", true);
    EXPECT_EQ(folder.files().size(), 2u);
    EXPECT_EQ(read_text(living->path()), "of another run");
    mine->commit();
    EXPECT_EQ(read_text(folder / "out.tif"), "new");
}

TEST(AtomicFile, ALinkStaysALink) {
    const TempFolder folder;
    fs::create_directory(folder / "far");
    write_text(folder / "far/real.tif", "old");
    fs::create_symlink("far/real.tif", folder / "out.tif");
    fs::create_symlink("far/none.tif", folder / "dangling.tif");
    complete(folder / "out.tif", "new", true)->commit();
    complete(folder / "dangling.tif", "new, too", true)->commit();
    EXPECT_TRUE(fs::is_symlink(folder / "out.tif"));
    EXPECT_EQ(read_text(folder / "far/real.tif"), "new");
    EXPECT_TRUE(fs::is_symlink(folder / "dangling.tif"));
    EXPECT_EQ(read_text(folder / "far/none.tif"), "new, too");
}

TEST(AtomicFile, SideFilesAreFoundBesideALinkToo) {
    const TempFolder folder;
    fs::create_directory(folder / "far");
    write_text(folder / "far/real.dat", "old");
    write_text(folder / "far/real.hdr", "old header");
    fs::create_symlink("far/real.dat", folder / "middle.dat");
    fs::create_symlink(folder / "middle.dat", folder / "out.img");
    write_text(folder / "out.hdr", "beside the link");
    write_text(folder / "middle.dat.ovr", "of the old one");
    for (const bool taken_back : {true, false}) {
        AtomicFile file(folder / "out.img", true);
        EXPECT_EQ(file.links(), (std::vector<std::string>{folder / "out.img", folder / "middle.dat"}));
        write_text(file.path(), "new");
        write_text(join_path(folder_of(file.path()), "real.hdr"), "new header");
        write_text(join_path(folder_of(file.path()), "real.dat.aux.xml"), "new names");
        file.set_stale({folder / "middle.dat.ovr", folder / "out.hdr", folder / "far/real.hdr"});
        file.publish();
        EXPECT_EQ(file.targets(),
                  (std::vector<std::string>{folder / "far/real.dat.aux.xml", folder / "far/real.hdr",
                                            folder / "far/real.dat"}));
        if (taken_back) {
            EXPECT_TRUE(file.withdraw());
            EXPECT_EQ(read_text(folder / "far/real.dat"), "old");
            EXPECT_EQ(read_text(folder / "out.hdr"), "beside the link");
            EXPECT_EQ(read_text(folder / "middle.dat.ovr"), "of the old one");
            EXPECT_FALSE(fs::exists(folder / "out.img.aux.xml") || fs::exists(folder / "middle.hdr"));
        } else {
            file.conclude();
        }
    }
    for (const char* name : {"out.img", "middle.dat", "far/real.dat"})
        EXPECT_EQ(read_text(folder / name), "new");
    for (const char* name : {"out.hdr", "middle.hdr", "far/real.hdr"})
        EXPECT_EQ(read_text(folder / name), "new header");
    for (const char* name : {"out.img.aux.xml", "middle.dat.aux.xml", "far/real.dat.aux.xml"})
        EXPECT_EQ(read_text(folder / name), "new names");
    EXPECT_EQ(fs::read_symlink(folder / "middle.hdr"), "far/real.hdr");
    EXPECT_EQ(fs::read_symlink(folder / "out.hdr"), folder / "middle.hdr");
    EXPECT_FALSE(fs::exists(folder / "middle.dat.ovr"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "."), fs::directory_iterator()), 7);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "far"), fs::directory_iterator()), 3);
}

TEST(AtomicFile, ItsFolderGoesWhereverItIsByThen) {
    const TempFolder folder;
    fs::create_directories(folder / "a/b");
    {
        auto file = complete(folder / "a/b/out.tif", "new", true);
        fs::rename(folder / "a", folder / "c");
        fs::create_directories(folder / "a/b");
        EXPECT_THROW(file->publish(), Error);
    }
    for (const char* name : {"a/b", "c/b"})
        EXPECT_TRUE(fs::is_empty(folder / name)) << name;
}

// --- the register

TEST(RunFiles, AnOutputNeverFallsOnWhatIsRead) {
    const TempFolder folder;
    for (const char* name : {"s.img", "s.hdr", "labels.tif"})
        write_text(folder / name, name);
    const auto refused = [&](const std::string& role, const std::string& path, const std::string& side = {}) {
        FileRegister files;
        files.reads("src", folder / "s.img", with(folder / "s.hdr"));
        files.reads("labels", folder / "labels.tif", {});
        try {
            files.writes(role, path, side.empty() ? std::vector<std::string>() : with(side));
        } catch (const UsageError& error) {
            EXPECT_TRUE(files.clashes(role, side.empty() ? path : side));
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(refused("dst", folder / "./s.img").find("would overwrite src"), std::string::npos);
    EXPECT_NE(refused("-report", folder / "s.hdr").find("which belongs to src"), std::string::npos);
    EXPECT_NE(refused("dst", folder / "s.dat", folder / "s.hdr").find("which belongs to src"),
              std::string::npos);
    EXPECT_NE(refused("-csv", folder / "labels.tif").find("would overwrite labels"), std::string::npos);
    EXPECT_EQ(refused("dst", folder / "t.dat", folder / "t.hdr"), "");
}

TEST(RunFiles, TwoOutputsNeverShareAFile) {
    const TempFolder folder;
    FileRegister files;
    files.writes("dst", folder / "a.img", with(folder / "a.hdr"));
    files.writes("dst", folder / "a.img", with(folder / "a.hdr"));
    EXPECT_THROW(files.writes("-alpha", folder / "./a.img", {}), UsageError);
    EXPECT_THROW(files.writes("-rho", folder / "a.dat", with(folder / "a.hdr")), UsageError);
}

TEST(RunFiles, OutputsComeTogether) {
    const TempFolder folder;
    write_text(folder / "a.tif", "old a");
    write_text(folder / "b.tif", "old b");
    FileRegister files;
    files.add(complete(folder / "a.tif", "new a", true));
    files.add(complete(folder / "b.tif", "new b", true));
    EXPECT_EQ(read_text(files.pending_path(folder / "./a.tif")), "new a");
    EXPECT_EQ(files.pending_path(folder / "c.tif"), folder / "c.tif");
    files.commit(nullptr);
    EXPECT_EQ(read_text(folder / "a.tif"), "new a");
    EXPECT_EQ(read_text(folder / "b.tif"), "new b");
    EXPECT_EQ(folder.files(), (std::vector<std::string>{"a.tif", "b.tif"}));
}

TEST(RunFiles, OrNotAtAll) {
    const TempFolder folder;
    write_text(folder / "a.tif", "old a");
    FileRegister files;
    files.add(complete(folder / "a.tif", "new a", true));
    files.add(complete(folder / "b.tif", "new b", false));
    write_text(folder / "b.tif", "appeared meanwhile");
    EXPECT_THROW(files.commit(nullptr), Error);
    EXPECT_EQ(read_text(folder / "a.tif"), "old a");
    EXPECT_EQ(read_text(folder / "b.tif"), "appeared meanwhile");
    EXPECT_EQ(folder.files(), (std::vector<std::string>{"a.tif", "b.tif"}));
    EXPECT_NO_THROW(files.commit(nullptr)) << "what failed is not tried again";
    EXPECT_EQ(read_text(folder / "a.tif"), "old a");
}

TEST(RunFiles, WhatIsReadMustStayWhatItWas) {
    const TempFolder folder;
    const auto ends_well = [&](const std::function<void()>& meanwhile) {
        write_text(folder / "src", "first");
        FileRegister files;
        files.reads("src", folder / "src", {});
        files.add(complete(folder / "dst", "new", true));
        meanwhile();
        try {
            files.commit(nullptr);
        } catch (const Error&) {
            EXPECT_FALSE(fs::exists(folder / "dst"));
            return false;
        }
        fs::remove(folder / "dst");
        return true;
    };
    EXPECT_TRUE(ends_well([] {}));
    EXPECT_TRUE(ends_well([&] { read_text(folder / "src"); }));
    EXPECT_TRUE(ends_well([&] { fs::remove(folder / "src"); })) << "it was read as it was";
    EXPECT_FALSE(ends_well([&] { write_text(folder / "src", "another"); }));
    EXPECT_FALSE(ends_well([&] {
        write_text(folder / "new", "first");
        fs::rename(folder / "new", folder / "src");
    }));
    EXPECT_FALSE(ends_well([&] {
        fs::last_write_time(folder / "src", fs::file_time_type::clock::now() + std::chrono::seconds(1));
    }));
}

TEST(RunFiles, ASignalBeforeTheEndLeavesEverything) {
    const TempFolder folder;
    CancelFlag cancel;
    FileRegister files;
    files.add(complete(folder / "a.tif", "a", false));
    cancel.request();
    EXPECT_THROW(files.commit(&cancel), Cancelled);
    EXPECT_TRUE(folder.files().empty());
}

TEST(RunFiles, NamesThatADriverMadeUpAreJudgedToo) {
    const TempFolder folder;
    write_text(folder / "s.xyz", "a side file of the source");
    FileRegister files;
    files.reads("src", folder / "other.img", with(folder / "s.xyz"));
    auto file = complete(folder / "s.img", "new", true);
    write_text(folder_of(file->path()) + "/s.xyz", "made by the driver");
    files.add(std::move(file));
    EXPECT_THROW(files.commit(nullptr), Error);
    EXPECT_EQ(read_text(folder / "s.xyz"), "a side file of the source");
    EXPECT_EQ(folder.files(), std::vector<std::string>{"s.xyz"});
}

// --- files that belong together

TEST(SideFiles, AVrtsSourcesAreReadButNeverItsSideFiles) {
    const TempFolder folder;
    make_raster(folder / "s.img", "ENVI", 2);
    const auto vrt = [&](const std::string& name, const std::string& source) {
        write_text(folder / name, "<VRTDataset rasterXSize=\"4\" rasterYSize=\"3\"><VRTRasterBand "
                                  "dataType=\"Float32\" band=\"1\" subClass=\"VRTDerivedRasterBand\">"
                                  "<PixelFunctionType>sum</PixelFunctionType><PixelFunctionArguments "
                                  "model=\"model.json\"/><SimpleSource><SourceFilename relativeToVRT=\"1\">" +
                                      source +
                                      "</SourceFilename><SourceBand>1</SourceBand></SimpleSource>"
                                      "</VRTRasterBand></VRTDataset>");
    };
    write_text(folder / "model.json", "{}");
    vrt("s.vrt", "s.img");
    vrt("top.vrt", "s.vrt");
    const auto read = raster::files_read_with(folder / "top.vrt");
    for (const char* name : {"top.vrt", "s.vrt", "s.img", "s.hdr", "model.json"})
        EXPECT_TRUE(std::any_of(read.begin(), read.end(), [&](const std::string& file) {
            return same_file(file, folder / name);
        })) << name;
    EXPECT_TRUE(raster::old_side_files(folder / "s.vrt").empty()) << "s.img and s.hdr are not the VRT's";
    EXPECT_EQ(raster::old_side_files(folder / "s.img"), std::vector<std::string>{folder / "s.hdr"});
}

TEST(SideFiles, ASpectralLibraryIsReadWithItsHeader) {
    const TempFolder folder;
    write_text(folder / "minerals.sli", "0123");
    write_text(folder / "minerals.hdr", "ENVI\nfile type = ENVI Spectral Library\n");
    EXPECT_EQ(raster::files_read_with(folder / "minerals.sli"),
              (std::vector<std::string>{folder / "minerals.sli", folder / "minerals.hdr"}));
}

TEST(SideFiles, FilesBehindVirtualNamesAreFound) {
    const TempFolder folder;
    write_text(folder / "a.bin", "0123");
    write_text(folder / "b,1.bin", "0123");
    write_text(folder / "s.xml",
               "<VSISparseFile><Length>4</Length><SubfileRegion><Filename relative=\"1\">a.bin"
               "</Filename><DestinationOffset>0</DestinationOffset><SourceOffset>0"
               "</SourceOffset><RegionLength>4</RegionLength></SubfileRegion></VSISparseFile>");
    const std::string a = folder / "a.bin", b = folder / "b,1.bin", s = folder / "s.xml";
    const auto finds = [](const std::string& name, const std::string& file) {
        const auto read = raster::files_read_with(name);
        return std::any_of(read.begin(), read.end(), [&](const auto& one) { return same_file(one, file); });
    };
    for (const std::string& name :
         {"/vsisubfile/0," + a, "/vsisubfile/1_2," + a, "/vsisparse/" + s, "/vsizip/" + a + "/x.tif",
          "/vsizip/{" + a + "}/x.tif", "/vsigzip/" + a, "/vsitar/" + a + "/x",
          "/vsicached?file=" + a + "&chunk_size=4", "/vsicached?chunk_size=4&file=" + a,
          "/vsicrypt/key=abc,file=" + a, "/vsizip//vsisubfile/1_2," + a, "/vsizip/vsigzip/" + a,
          "/vsicurl/file://" + a, "/vsizip/{/vsisubfile/0," + a + "}/x"})
        EXPECT_TRUE(finds(name, a)) << name;
    EXPECT_TRUE(finds("/vsisparse/" + s, s));
    EXPECT_TRUE(finds("/vsisubfile/0," + b, b));
    EXPECT_FALSE(finds("/vsisubfile/0," + b, a));
    EXPECT_FALSE(finds("/vsimem/" + a, a));
    // A name that would be examined in more and more parts must be limited.
    std::string many = "/vsizip/";
    for (int i = 0; i < 400; ++i)
        many += "{/vsizip/,";
    EXPECT_FALSE(finds(many, a));
}

TEST(RunFiles, OutputsAreNoPartsOfFiles) {
    raster::FileRegister files;
    for (const char* place :
         {"/vsizip/a.zip/o.tif", "/vsigzip/o.tif.gz", "/vsitar/a.tar/o.tif", "/vsisubfile/0,a",
          "/vsisparse/a.xml", "/vsicached?file=a", "/vsicrypt/key=a,file=b"})
        EXPECT_THROW(files.writes("dst", place, {}), UsageError) << place;
    for (const char* place : {"/vsimem/o.tif", "/vsis3/bucket/o.tif", "vsizip/o.tif"})
        EXPECT_NO_THROW(files.writes("dst", place, {})) << place;
}

TEST(SideFiles, AHeaderOfTwoStaysForTheOther) {
    const TempFolder folder;
    make_raster(folder / "a.bsq", "ENVI", 2);
    fs::copy(folder / "a.bsq", folder / "a.img");
    EXPECT_TRUE(same_file(raster::other_owner(folder / "a.hdr", folder / "a.img"), folder / "a.bsq"));
    EXPECT_TRUE(raster::old_side_files(folder / "a.img").empty());
    fs::remove(folder / "a.img");
    EXPECT_EQ(raster::other_owner(folder / "a.hdr", folder / "a.bsq"), "");
}

// --- text

TEST(TextOutput, ReplacesOnlyWhenTold) {
    const TempFolder folder;
    write_text(folder / "t.csv", "old");
    EXPECT_THROW(raster::check_text_output({"-csv", folder / "t.csv", false, nullptr}), Error);
    raster::check_text_output({"-csv", folder / "t.csv", true, nullptr});
    EXPECT_THROW(raster::check_text_output({"-csv", folder / "no/t.csv", true, nullptr}), Error);
    raster::write_text_output({"-csv", folder / "t.csv", true, nullptr}, "new");
    EXPECT_EQ(read_text(folder / "t.csv"), "new");
    EXPECT_EQ(folder.files(), std::vector<std::string>{"t.csv"});
}

TEST(TextOutput, DevicesAndFifosAreWrittenNotReplaced) {
    const TempFolder folder;
    ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
    const TextOutput fifo{"-csv", folder / "fifo", false, nullptr};
    raster::check_text_output(fifo);
    std::string got;
    std::thread reader([&] { got = read_text(folder / "fifo"); });
    raster::write_text_output(fifo, std::string(300000, 'x'));
    reader.join();
    EXPECT_EQ(got.size(), 300000u);
    EXPECT_TRUE(fs::is_fifo(folder / "fifo"));

    raster::check_text_output({"-csv", "/dev/null", false, nullptr});
    raster::write_text_output({"-csv", "/dev/null", false, nullptr}, "gone");
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    EXPECT_THROW(raster::write_text_output({"-csv", "/dev/full", false, nullptr}, "no room"), Error);
}

TEST(TextOutput, SharedMemoryIsAFolderLikeOthers) {
    if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
    const std::string path = "/dev/shm/hsi-text-" + std::to_string(getpid());
    {
        const TextOutput output{"-csv", path, false, nullptr};
        check_text_output(output);
        write_text_output(output, "text\n");
    }
    EXPECT_EQ(read_text(path), "text\n");
    EXPECT_EQ(fs::remove(path), true);
}

TEST(TextOutput, AFifoThatNobodyReadsDoesNotHoldUpASignal) {
    const TempFolder folder;
    ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
    CancelFlag cancel;
    FileRegister files;
    files.add_stream(folder / "fifo", "text");
    std::thread later([&] { cancel.request(); });
    EXPECT_THROW(files.commit(&cancel), Cancelled);
    later.join();
}

} // namespace
} // namespace hsi::test
