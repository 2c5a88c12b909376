// SPDX-License-Identifier: MIT
// MATLAB's .mat files: their variables, with the numbers in the order of the file, in which the first
// subscript varies fastest. This code reads versions 4 and 5 (with or without compression), because libmatio
// (1.5.23) returns made-up numbers for a truncated file, and inflates a variable from its beginning for every
// piece. GDAL reads version 7.3, which is HDF5. Source: MathWorks, "MAT-File Format" (R2023b).
#pragma once

#include <gdal.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

struct MatlabVariable {
    std::string name;                ///< "cube"; "scene.cube" for the field of a struct
    std::vector<int64_t> dims;       ///< two or more
    GDALDataType type = GDT_Unknown; ///< of its class; unknown: not an array of real numbers
    std::string kind;                ///< "uint16", "complex double", "sparse", "cell", "char", "struct" ...

    int64_t count() const;    ///< of elements
    std::string text() const; ///< "cube (610x340x103 uint16)"
    /// Returns the number of dimensions without ones at the end: 2 for 610x340x1.
    size_t rank() const;

    /// The position of its data.
    struct Place {
        uint64_t at = 0, bytes = 0; ///< in the file, or in the inflated bytes of its compressed part `from`
        bool compressed = false;
        uint64_t from = 0, from_bytes = 0;
        int stored = 0; ///< type of the numbers in the file, by MATLAB's number
    } place;
};

inline constexpr int deepest_struct = 6;               ///< nested in each other
inline constexpr size_t most_matlab_variables = 10000; ///< a file made by people has tens

class MatlabFile {
  public:
    /// Opens any path that GDAL's virtual file systems support. Returns null if it is not a MATLAB file.
    /// \throws Error that names the file if it is truncated or damaged.
    static std::shared_ptr<const MatlabFile> open(const std::string& path);
    virtual ~MatlabFile() = default;

    const std::string& path() const { return m_path; }
    const std::string& version() const { return m_version; } ///< "4", "5", "7.3"
    const std::vector<MatlabVariable>& variables() const { return m_variables; }
    const MatlabVariable* find(const std::string& name) const; ///< null if absent

    /// Takes some values of the variable's type, in this machine's byte order.
    using Take = std::function<void(const char* values, size_t count)>;
    /// Reads all values of an array of numbers, in the order of the file, a few megabytes at a time and
    /// without more memory. Thread-safe. \throws Error that names the file and the variable.
    virtual void read(const MatlabVariable& variable, const Take& take) const = 0;
    /// Returns all values at once. \throws Error as read(), and if there are more than 2^24.
    std::vector<double> numbers(const MatlabVariable& variable) const;
    /// Returns the texts of a cell array of texts, or the rows of an array of characters without trailing
    /// blanks; empty for other variables. UTF-8. \throws Error as read().
    virtual std::vector<std::string> texts(const MatlabVariable& variable) const = 0;

  protected:
    MatlabFile(std::string path, std::string version)
        : m_path(std::move(path)), m_version(std::move(version)) {}
    [[noreturn]] void refuse(const std::string& what) const; ///< throws Error: the file is damaged
    /// Returns the rows of an array of characters with `rows` rows.
    static std::vector<std::string> rows_of(const std::vector<uint32_t>& characters, int64_t rows);

    std::vector<MatlabVariable> m_variables;

  private:
    const std::string m_path, m_version;
};

/// The readers behind open(), one per type of file.
std::shared_ptr<const MatlabFile> open_matlab_4(const std::string& path);
std::shared_ptr<const MatlabFile> open_matlab_5(const std::string& path);
std::shared_ptr<const MatlabFile> open_matlab_arrays(const std::string& path);

/// A file and one of its variables: "scene.mat:cube".
struct MatlabName {
    std::string path;
    std::string variable; ///< empty: not named
};
/// Splits a name; nullopt if it does not lead to a MATLAB file. A file that is called "scene.mat:cube" is
/// that file.
std::optional<MatlabName> matlab_name(const std::string& name);

} // namespace hsi::raster
