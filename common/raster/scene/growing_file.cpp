// SPDX-License-Identifier: MIT
#include "raster/scene/growing_file.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"

#include <cpl_conv.h>
#include <cpl_vsi.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

namespace hsi::raster {
namespace {

/// The interval between two checks of the file, which is the longest delay until a new line is noticed.
constexpr auto between_looks = std::chrono::milliseconds(5);

/// A changed header is read only when it has been unchanged for this time, because it may be incomplete
/// before.
constexpr auto settling = std::chrono::milliseconds(100);

/// Header fields that determine the position of lines in the file, with their defaults.
constexpr std::pair<const char*, const char*> layout_keys[] = {
    {"samples", ""},        {"bands", ""},       {"data type", ""},        {"interleave", "bsq"},
    {"header offset", "0"}, {"byte order", "0"}, {"file compression", "0"}};

/// Header fields that describe the scene. Headers of outputs contain these fields from the first line on.
constexpr const char* scene_keys[] = {"wavelength",
                                      "wavelength units",
                                      "fwhm",
                                      "bbl",
                                      "band names",
                                      "map info",
                                      "projection info",
                                      "coordinate system string",
                                      "geo points",
                                      "rpc info",
                                      "pixel size",
                                      "x start",
                                      "y start",
                                      "data ignore value",
                                      "reflectance scale factor",
                                      "data gain values",
                                      "data offset values",
                                      "data reflectance gain values",
                                      "data reflectance offset values",
                                      "data units"};

int64_t time_of(const struct stat& info) {
    return info.st_mtim.tv_sec * int64_t{1000000000} + info.st_mtim.tv_nsec;
}

std::string word(const EnviHeader& header, const char* key, const char* otherwise = "") {
    const std::string* const text = header.find(key);
    return text && !text->empty() ? *text : otherwise;
}

std::vector<std::string> elements(const std::string& value) {
    return is_envi_list(value) ? envi_list(value) : std::vector<std::string>{value};
}

bool same_element(const std::string& a, const std::string& b) {
    const auto x = envi_number(a), y = envi_number(b);
    return x && y ? *x == *y : equal_names(a, b);
}

/// Describes the change of a header field in words; empty if the values differ only in spelling.
std::string change(const std::string& was, const std::string& is) {
    const auto before = elements(was), now = elements(is);
    if (was.empty() || is.empty()) return was == is ? "" : is.empty() ? "is missing now" : "was missing";
    if (before.size() != now.size())
        return "had " + counted(before.size(), "value") + " and now has " + std::to_string(now.size());
    for (size_t i = 0; i < now.size(); ++i)
        if (!same_element(before[i], now[i]))
            return (now.size() == 1 ? "" : "value " + std::to_string(i + 1) + " ") + "was " + before[i] +
                   " and is now " + now[i];
    return {};
}

/// Throws Error for a FIFO or a device, because the number of lines is derived from the file size.
void check_regular(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
        throw Error("-follow: '" + path + "' is not a regular file",
                    "Write its lines to a file, and follow that file.");
}

EnviFile pair_of(const std::string& path) {
    if (!is_local(path))
        throw UsageError("-follow: '" + path + "' is not a file on a local file system",
                         "Follow the file on the machine that writes it.");
    check_regular(path);
    if (const auto named = envi_file_of_header(path)) return *named;
    const std::string header = envi_header_beside(path);
    if (header.empty())
        throw Error("-follow: '" + path + "' has no ENVI header",
                    "Follow a raw ENVI file, BIL or BIP. Its header must exist when the run begins, but need "
                    "not state 'lines'.");
    return {path, header};
}

void check_layout(const EnviFile& file, const EnviHeader& header) {
    const std::string name = "-follow: the ENVI header of '" + file.data + "'";
    for (const char* key : {"samples", "bands", "data type"})
        if (header.find(key) == nullptr)
            throw Error(name + " does not state '" + key + "'", "Only 'lines' may be missing.");
    const std::string interleave = word(header, "interleave");
    if (!equal_names(interleave, "bil") && !equal_names(interleave, "bip") && word(header, "bands") != "1")
        throw Error(name + " has interleave = " + (interleave.empty() ? "bsq by default" : interleave) +
                        ", but a bsq file does not grow by lines",
                    "Write the scene as BIL or BIP, or leave -follow out when it is complete.");
    if (const std::string packed = word(header, "file compression"); !packed.empty() && packed != "0")
        throw Error(name + " has file compression = " + packed + ", so the beginnings of lines are unknown",
                    "Write the scene uncompressed.");
}

} // namespace

GrowingFile::GrowingFile(const std::string& path, double patience, const CancelFlag* cancel)
    : m_file(pair_of(path)), m_header_state(header_state()), m_header(read_envi_header(m_file.header)),
      m_patience(patience), m_cancel(cancel) {
    check_layout(m_file, m_header);
    if (const auto offset = envi_number(word(m_header, "header offset")); offset && *offset > 0)
        m_offset = static_cast<int64_t>(*offset);
    EnviHeader one = m_header;
    one.set("lines", "1");
    m_line_bytes = static_cast<int64_t>(envi_bytes_told(one)) - m_offset;
    if (m_line_bytes <= 0)
        throw Error("-follow: the ENVI header of '" + m_file.data + "' does not state the length of a line",
                    "Check its samples, bands and data type.");
    const auto bands = envi_number(word(m_header, "bands"));
    m_row_bytes = bands && *bands >= 1 ? m_line_bytes / static_cast<int64_t>(*bands) : m_line_bytes;
    check_regular(m_file.data);
    struct stat info {};
    if (::stat(m_file.data.c_str(), &info) != 0)
        throw Error("cannot open '" + m_file.data + "': " + std::strerror(errno));
    m_device = info.st_dev;
    m_inode = info.st_ino;
    take_promise(m_header);
    static std::atomic<unsigned> count{0};
    m_shown = CPLSPrintf("/vsimem/hsi-follow-%d-%u/", static_cast<int>(::getpid()), count.fetch_add(1)) +
              name_of(m_file.header);
}

GrowingFile::~GrowingFile() { VSIUnlink(m_shown.c_str()); }

void GrowingFile::show(int64_t lines) const {
    EnviHeader header = m_header;
    header.set("lines", std::to_string(lines));
    const std::string text = header.text();
    auto* const bytes = static_cast<GByte*>(CPLMalloc(text.size()));
    std::copy(text.begin(), text.end(), bytes);
    VSIFCloseL(VSIFileFromMemBuffer(m_shown.c_str(), bytes, text.size(), TRUE));
}

void GrowingFile::take_promise(const EnviHeader& header) {
    const auto lines = envi_number(word(header, "lines"));
    if (lines && *lines >= 1) m_promised = static_cast<int64_t>(*lines);
}

GrowingFile::HeaderState GrowingFile::header_state() const {
    struct stat info {};
    if (::stat(m_file.header.c_str(), &info) != 0) return {};
    return {info.st_ino, info.st_size, time_of(info)};
}

/// Reads the header if it has changed. Returns false if the header was not read, because it may be
/// incomplete.
bool GrowingFile::look_at_header() {
    const HeaderState state = header_state();
    const auto now = std::chrono::steady_clock::now();
    if (state != m_header_state) {
        m_header_state = state;
        m_header_since = now;
        m_header_is_read = false;
    }
    if (!m_header_is_read && now - m_header_since >= settling) m_header_is_read = read_header();
    return m_header_is_read;
}

/// Returns false if the header has changed while it was read.
bool GrowingFile::read_header() {
    if (m_header_state == HeaderState()) {
        m_header_fault = "'" + m_file.header + "' was removed or renamed while the run followed its lines";
        return true;
    }
    EnviHeader header;
    try {
        header = read_envi_header(m_file.header);
    } catch (const Error&) {
        // An unreadable file is handled like a file without a header.
    }
    if (header_state() != m_header_state) return false;
    if (header.find("samples") == nullptr || header.find("data type") == nullptr) {
        m_header_fault = "'" + m_file.header + "' is no longer an ENVI header";
        return true;
    }
    m_header_fault.clear();
    m_late_fields.clear();
    const auto check = [&](const char* key, const std::string& text) {
        if (text.empty()) return;
        throw Error("the ENVI header of '" + m_file.data + "' was changed while the run followed it: '" +
                        key + "' " + text,
                    "Run it again.");
    };
    const bool one_band = word(m_header, "bands") == "1"; // with one band, all interleaves are equal
    for (const auto& [key, otherwise] : layout_keys)
        if (!one_band || !equal_names(key, "interleave"))
            check(key, change(word(m_header, key, otherwise), word(header, key, otherwise)));
    for (const char* key : scene_keys) {
        if (word(m_header, key).empty() && !word(header, key).empty())
            m_late_fields.push_back("'" + std::string(key) + "'");
        else
            check(key, change(word(m_header, key), word(header, key)));
    }
    take_promise(header);
    return true;
}

void GrowingFile::look() {
    struct stat info {};
    const std::string begin = "'" + m_file.data + "'";
    if (::stat(m_file.data.c_str(), &info) != 0)
        throw Error(begin + " was removed or renamed while the run followed it", "Run it again.");
    if (info.st_dev != m_device || info.st_ino != m_inode)
        throw Error(begin + " was replaced by another file while the run followed it", "Run it again.");
    const int64_t size = info.st_size;
    if (size < m_size)
        throw Error(begin + " shrank from " + std::to_string(m_size) + " to " + counted(size, "byte") +
                        " while the run followed it",
                    "Run it again.");
    if (size > m_size) m_grown = std::chrono::steady_clock::now();
    m_size = size;
}

std::string GrowingFile::bytes_at(int64_t begin) const {
    std::string bytes(static_cast<size_t>(std::min<int64_t>(m_line_bytes, 512)), '\0');
    std::FILE* const file = std::fopen(m_file.data.c_str(), "rbe");
    const bool there = file != nullptr && ::fseeko(file, begin, SEEK_SET) == 0;
    bytes.resize(there ? std::fread(bytes.data(), 1, bytes.size(), file) : 0);
    if (file != nullptr) std::fclose(file);
    return bytes;
}

/// Remembers bytes of a line, to detect a later change. Up to 512 lines are remembered, which are spread over
/// all lines that have arrived.
void GrowingFile::mark(int64_t line) {
    constexpr size_t most = 512;
    if (m_comings++ % m_marked_each != 0) return;
    if (m_marks.size() == most) {
        for (size_t i = 0; i < most / 2; ++i)
            m_marks[i] = std::move(m_marks[2 * i]);
        m_marks.resize(most / 2);
        m_marked_each *= 2;
    }
    const int64_t begin = m_offset + line * m_line_bytes;
    m_marks.push_back({begin, bytes_at(begin)});
}

void GrowingFile::check_marks() const {
    for (const Mark& mark : m_marks)
        if (bytes_at(mark.begin) != mark.bytes)
            throw Error("'" + m_file.data + "' was overwritten while the run followed it: line " +
                            std::to_string((mark.begin - m_offset) / m_line_bytes) +
                            " (counted from 0) is different",
                        "Run it again with a file that only grows.");
}

int64_t GrowingFile::wait(int64_t lines) {
    for (;;) {
        if (m_cancel != nullptr && m_cancel->requested()) throw Cancelled();
        look();
        const bool header_is_read = look_at_header();
        int64_t there = std::max<int64_t>(0, m_size - m_offset) / m_line_bytes;
        if (m_promised) there = std::min(there, *m_promised);
        if (there > lines) {
            mark(lines);
            mark(there - 1);
            return there;
        }
        const bool complete = m_promised && lines >= *m_promised;
        if (header_is_read && (complete || std::chrono::steady_clock::now() - m_grown >= m_patience)) {
            check_marks();
            return lines;
        }
        std::this_thread::sleep_for(between_looks);
    }
}

bool GrowingFile::ends_with_zeros(int64_t lines) const {
    const int64_t end = m_offset + lines * m_line_bytes, begin = end - m_line_bytes;
    for (int64_t at = begin; lines > 0 && at < end;) {
        const std::string bytes = bytes_at(at).substr(0, static_cast<size_t>(end - at));
        if (bytes.empty() || bytes.find_first_not_of('\0') != std::string::npos) return false;
        at += static_cast<int64_t>(bytes.size());
    }
    return lines > 0;
}

std::string GrowingFile::rest() const {
    const int64_t data = std::max<int64_t>(0, m_size - m_offset);
    const int64_t whole = data / m_line_bytes, part = data % m_line_bytes;
    if (m_promised && whole >= *m_promised) {
        const int64_t beyond = data - *m_promised * m_line_bytes;
        if (beyond < m_row_bytes) return {}; // incomplete rows at the end are also ignored in a complete file
        return "'" + m_file.data + "' has " + counted(beyond, "byte") + " after the " +
               counted(*m_promised, "line") + " that its header states";
    }
    if (part == 0) return {};
    return "'" + m_file.data + "' ended within line " + std::to_string(whole) + " (counted from 0), after " +
           std::to_string(part) + " of its " + counted(m_line_bytes, "byte");
}

} // namespace hsi::raster
