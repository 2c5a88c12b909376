// SPDX-License-Identifier: MIT
// Modules next to a library are found, wherever the program that loaded the library is.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

namespace {

namespace fs = std::filesystem;

class LibraryModules : public testing::Test {
  protected:
    void SetUp() override {
        unsetenv("HSI_MODULE_PATH");
        std::string pattern = (fs::temp_directory_path() / "hsi-test-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        m_folder = fs::canonical(pattern);
        fs::create_directories(m_folder / "lib" / "gdalplugins");
        fs::create_directories(m_folder / "lib" / "hsi");
        // Each test uses a new copy, since a library is loaded once per file.
        fs::copy_file(HSI_MODULE_PROBE, library());
    }
    void TearDown() override {
        if (m_handle) dlclose(m_handle);
        fs::remove_all(m_folder);
    }
    fs::path library() const { return m_folder / "lib" / "gdalplugins" / "probe.so"; }
    void load(const fs::path& file) {
        m_handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(m_handle, nullptr) << dlerror();
    }
    bool present(const char* algorithm) const {
        return reinterpret_cast<int (*)(const char*)>(dlsym(m_handle, "hsi_probe_present"))(algorithm) != 0;
    }
    std::string error(const char* algorithm) const {
        char text[8192];
        using Function = void (*)(const char*, char*, size_t);
        reinterpret_cast<Function>(dlsym(m_handle, "hsi_probe_error"))(algorithm, text, sizeof text);
        return text;
    }
    std::string places() const { return error("absent"); }
    static void touch(const fs::path& file) { std::ofstream(file) << "module"; }

    fs::path m_folder;
    void* m_handle = nullptr;
};

TEST_F(LibraryModules, AreFoundBesideTheLibraryAndInItsNeighbour) {
    load(library());
    EXPECT_FALSE(present("near"));
    EXPECT_FALSE(present("next"));
    touch(m_folder / "lib" / "gdalplugins" / "hsi_cuda_near.so");
    touch(m_folder / "lib" / "hsi" / "hsi_cuda_next.so");
    EXPECT_TRUE(present("near"));
    EXPECT_TRUE(present("next"));
    EXPECT_NE(places().find((m_folder / "lib" / "hsi").string()), std::string::npos) << places();
}

/// An installation without the package of CUDA modules, on a machine with a GPU, names the package.
TEST_F(LibraryModules, OneThatIsNotThereLeadsToItsPackage) {
    load(library());
    const auto text = error("absent");
    EXPECT_EQ(text.find("the CUDA module hsi_cuda_absent.so was not found (looked in "), 0u) << text;
    EXPECT_NE(text.find("\nInstall the package gdal-hsi-cuda"), std::string::npos) << text;
    touch(m_folder / "lib" / "hsi" / "hsi_cuda_damaged.so");
    EXPECT_EQ(error("damaged").find("cannot load the CUDA module: "), 0u) << error("damaged");
}

/// The loader of glibc reports "No such file" for it.
TEST_F(LibraryModules, OneOfAnotherProcessorIsNamed) {
    load(library());
    for (const auto& [name, machine, called] :
         {std::tuple("x86", 62, "x86-64"), std::tuple("arm", 183, "64-bit ARM"),
          std::tuple("power", 21, "another processor (ELF's number 21)")}) {
        const fs::path file = m_folder / "lib" / "hsi" / ("hsi_cuda_" + std::string(name) + ".so");
        std::string head = "\x7f"
                           "ELF\x02\x01\x01";
        head.resize(18, 0);
        head += {static_cast<char>(machine), 0};
        head.resize(64, 0);
        std::ofstream(file, std::ios::binary) << head;
        const auto text = error(name);
        EXPECT_EQ(text.find("cannot load the CUDA module: "), 0u) << text;
#if defined(__x86_64__)
        const bool own = machine == 62;
#elif defined(__aarch64__)
        const bool own = machine == 183;
#else
        const bool own = true;
#endif
        EXPECT_EQ(text.find(file.string() + " is for " + called + ", but this program is for ") ==
                      std::string::npos,
                  own)
            << text;
    }
}

/// Such a file is left by a full disk or a broken download; the loader of glibc would crash on it.
TEST_F(LibraryModules, OneThatIsNotWholeIsRefused) {
    load(library());
    const fs::path file = m_folder / "lib" / "hsi" / "hsi_cuda_part.so";
    fs::copy_file(HSI_SAME_MODULE, file);
    const auto whole = fs::file_size(file);
    for (const auto size : {whole - 1, whole / 2, uintmax_t{4097}, uintmax_t{100}, uintmax_t{64}}) {
        fs::resize_file(file, size);
        EXPECT_EQ(error("part"), "cannot load the CUDA module: " + file.string() + " is incomplete: it has " +
                                     std::to_string(size) + " of " + std::to_string(whole) +
                                     " bytes. Copy or install it again\nPut the CUDA libraries on "
                                     "LD_LIBRARY_PATH, or use -device cpu.");
    }
    fs::resize_file(file, 20);
    EXPECT_EQ(error("part").find("cannot load the CUDA module: "), 0u) << error("part");
}

TEST_F(LibraryModules, OneOfAnotherBuildIsRefused) {
    load(library());
    const auto place = m_folder / "lib" / "hsi";
    fs::copy_file(HSI_SAME_MODULE, place / "hsi_cuda_same.so");
    fs::copy_file(HSI_OTHER_MODULE, place / "hsi_cuda_other.so");
    fs::copy_file(HSI_OLD_MODULE, place / "hsi_cuda_old.so");
    EXPECT_EQ(error("same"), "found");
    for (const std::string name : {"other", "old"})
        EXPECT_EQ(error(name.c_str()), (place / ("hsi_cuda_" + name + ".so")).string() +
                                           " is from another build than this program\nInstall tools and "
                                           "modules from the same build.");
    setenv("HSI_MODULE_PATH", place.c_str(), 1);
    EXPECT_NE(error("other").find("or unset HSI_MODULE_PATH"), std::string::npos) << error("other");
}

TEST_F(LibraryModules, AreFoundThroughALinkToTheLibrary) {
    const fs::path link = m_folder / "link.so";
    fs::create_symlink(library(), link);
    touch(m_folder / "lib" / "hsi" / "hsi_cuda_next.so");
    load(link);
    EXPECT_TRUE(present("next"));
}

TEST_F(LibraryModules, ThePathOfTheEnvironmentComesFirst) {
    setenv("HSI_MODULE_PATH", "/first/place", 1);
    load(library());
    const auto text = places();
    ASSERT_NE(text.find("/first/place"), std::string::npos) << text;
    EXPECT_LT(text.find("/first/place"), text.find(m_folder.string())) << text;
}

} // namespace
