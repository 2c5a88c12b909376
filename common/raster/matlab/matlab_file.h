// SPDX-License-Identifier: MIT
// Reads the variables of MATLAB's .mat files. Values are returned in the order of the file, in which the
// first subscript varies fastest. This code reads versions 4 and 5, with or without compression; GDAL reads
// version 7.3, which is HDF5. The library libmatio (1.5.23) is not used, because it returns invented values
// for a truncated file, and decompresses a variable from its beginning for each block. Source: MathWorks,
// "MAT-File Format" (R2023b).
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
    std::string name;                ///< "cube", or "scene.cube" for a field of a struct
    std::vector<int64_t> dims;       ///< two or more lengths
    GDALDataType type = GDT_Unknown; ///< type of the values; unknown: not an array of real numbers
    std::string kind;                ///< "uint16", "complex double", "sparse", "cell", "char", "struct" ...

    int64_t count() const;    ///< number of elements
    std::string text() const; ///< "cube (610x340x103 uint16)"
    /// Returns the number of dimensions without trailing ones: 2 for 610x340x1.
    size_t rank() const;

    /// The position of the variable's data.
    struct Place {
        /// Position and length of the data in bytes. For data that are not compressed, `at` is a position in
        /// the file. For compressed data, it is a position in the decompressed content of a part of the file,
        /// which begins at byte `from` and has `from_bytes` bytes.
        uint64_t at = 0, bytes = 0;
        bool compressed = false;
        uint64_t from = 0, from_bytes = 0;
        int stored = 0; ///< type of the stored values, as MATLAB's code
    } place;
};

inline constexpr int deepest_struct = 6; ///< limit for the depth of nested structs
/// Limit for the number of variables in a file, for damaged files. Real files have tens of variables.
inline constexpr size_t most_matlab_variables = 10000;

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

    /// Receives `count` values in the variable's type and in the byte order of the CPU.
    using Take = std::function<void(const char* values, size_t count)>;
    /// Reads all values of a numeric array in the order of the file, in blocks of a few megabytes. Memory
    /// does not grow with the array. Thread-safe. \throws Error that names the file and the variable.
    virtual void read(const MatlabVariable& variable, const Take& take) const = 0;
    /// Returns all values at once. \throws Error as read() does, and if there are more than 2^24 values.
    std::vector<double> numbers(const MatlabVariable& variable) const;
    /// Returns the texts of a cell array in UTF-8, or the rows of a character array without trailing blanks.
    /// The list is empty for other variables. \throws Error as read() does.
    virtual std::vector<std::string> texts(const MatlabVariable& variable) const = 0;

  protected:
    MatlabFile(std::string path, std::string version)
        : m_path(std::move(path)), m_version(std::move(version)) {}
    [[noreturn]] void refuse(const std::string& what) const; ///< throws Error: the file is damaged
    /// Splits the codes of a character array, which are stored column by column, into `rows` texts.
    static std::vector<std::string> rows_of(const std::vector<uint32_t>& characters, int64_t rows);

    std::vector<MatlabVariable> m_variables;

  private:
    const std::string m_path, m_version;
};

/// The readers that open() selects, one per file version.
std::shared_ptr<const MatlabFile> open_matlab_4(const std::string& path);
std::shared_ptr<const MatlabFile> open_matlab_5(const std::string& path);
std::shared_ptr<const MatlabFile> open_matlab_arrays(const std::string& path);

/// A file and the name of one of its variables: "scene.mat:cube".
struct MatlabName {
    std::string path;
    std::string variable; ///< empty: the name does not include a variable
};
/// Splits a name into file and variable; nullopt if the file is not a MATLAB file. If a file with the name
/// "scene.mat:cube" exists, the name means this file.
std::optional<MatlabName> matlab_name(const std::string& name);

} // namespace hsi::raster
