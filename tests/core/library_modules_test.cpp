// SPDX-License-Identifier: MIT
// Modules that lie beside a library, wherever the program is that has loaded it.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

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
        // A copy of its own for each test: a library is loaded once for each file.
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
    std::string places() const {
        char text[8192];
        reinterpret_cast<void (*)(char*, size_t)>(dlsym(m_handle, "hsi_probe_places"))(text, sizeof text);
        return text;
    }
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
