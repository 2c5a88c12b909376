// SPDX-License-Identifier: MIT
// The arguments of a pixel function or a processing step, as GDAL passes them: unchecked texts.
#pragma once

#include <cpl_string.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::plugin {

class Arguments {
  public:
    /// `folder` is the base folder of relative file names. If it is empty, the configuration option
    /// GDAL_HSI_PATH is used, and otherwise the working directory.
    Arguments(std::string function, CSLConstList list, std::string folder);

    const std::string& function() const { return m_function; }
    bool has(const char* name) const { return find(name) != nullptr; }

    // These functions return the value of an argument, or `otherwise` if the argument is missing. They throw
    // an Error, which names the argument, if it is invalid, or if it is missing and there is no `otherwise`.
    std::string text(const char* name) const;
    double number(const char* name, std::optional<double> otherwise = std::nullopt) const;
    int whole(const char* name, int least, int most, std::optional<int> otherwise = std::nullopt) const;
    bool yes(const char* name, bool otherwise) const;
    /// Returns the argument's word, which must be one of `allowed`; the first of these words if the argument
    /// is missing.
    std::string choice(const char* name, const std::vector<const char*>& allowed) const;
    /// Returns the numbers of a list separated by commas or white space.
    std::vector<double> numbers(const char* name) const;
    /// Returns the lists of numbers in the argument's text. Semicolons separate the lists.
    std::vector<std::vector<double>> lists(const char* name) const;
    /// Returns the non-empty parts of the argument's text between semicolons, trimmed.
    std::vector<std::string> pieces(const char* name) const;
    /// Returns the file name, relative to the base folder if it is not absolute, and adds it to files().
    /// Refuses pipes and devices.
    std::string path(const char* name) const;
    /// Adds a file on which the result depends to files().
    void reads(std::string file) const { m_files.push_back(std::move(file)); }
    const std::vector<std::string>& files() const { return m_files; }

    /// Throws Error if an argument has not been used.
    void refuse_others() const;
    [[noreturn]] void refuse(const std::string& what, const std::string& advice = {}) const;

  private:
    const char* find(const char* name) const;
    const std::string m_function;
    const CSLConstList m_list;
    const std::string m_folder;
    mutable std::vector<std::string> m_asked, m_files;
};

/// Returns the text of a model file, read through GDAL's virtual file systems. Throws Error if it cannot be
/// read.
std::string read_model(const std::string& path);

} // namespace hsi::plugin
