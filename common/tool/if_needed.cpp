// SPDX-License-Identifier: MIT
#include "tool/if_needed.h"

#include "core/digest.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "core/text_file.h"
#include "raster/drivers.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"
#include "raster/text_output.h"
#include "tool/execute.h"
#include "tool/phrases.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

namespace hsi::tool {
namespace {

constexpr const char* record_format = "gdal_hsi_made";
/// In bytes; files up to this size are compared by content.
constexpr uint64_t small_file = uint64_t{16} << 20;

/// Returns true for options that do not change results.
bool is_free(const std::string& name) {
    for (const char* const other : {"overwrite", "if-needed", "report", "report-append", "q", "dry-run",
                                    "threads", "memory", "device-memory", "tile", "ranks"})
        if (name == other) return true;
    return false;
}

/// Returns true for overviews, which may appear or disappear, and which no tool reads.
bool is_overview(const std::string& file) {
    return file.size() > 4 && file.compare(file.size() - 4, 4, ".ovr") == 0;
}

bool is_there(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }
/// Returns true for a pipe or a device, whose content cannot be known in advance.
bool is_stream(const std::string& file) {
    std::error_code error;
    const auto status = std::filesystem::status(file, error);
    return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
           !std::filesystem::is_directory(status);
}

std::string digest_text(const std::string& bytes) { return std::to_string(digest_of(bytes)); }

std::string time_of(const std::string& file) {
    std::error_code error;
    const auto time = std::filesystem::last_write_time(file, error);
    return error ? ""
                 // The count has 128 bits in libc++.
                 : std::to_string(static_cast<int64_t>(time.time_since_epoch().count()));
}

Json state_of_folder(const std::string& folder) {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file())
            all.push_back(entry.path().string() + " " + std::to_string(entry.file_size()) + " " +
                          time_of(entry.path().string()));
    std::sort(all.begin(), all.end());
    return {{"files", all.size()}, {"holds", digest_text(joined(all, "\n"))}};
}

/// Returns the state of a file; null if the file does not exist. Small files are compared by content, others
/// by size and time. With `timed`, all files are also compared by time, as virtual scenes compare their
/// sources.
Json state_of(const std::string& file, bool timed = false) {
    if (!is_local(file)) {
        Json all = Json::array();
        for (const auto& one : raster::files_as_they_are(file))
            all.push_back({one.path, one.bytes, one.modified});
        return all;
    }
    std::error_code error;
    const auto status = std::filesystem::status(file, error);
    if (error || !std::filesystem::exists(status)) return nullptr;
    if (std::filesystem::is_directory(status)) return state_of_folder(file);
    Json state{{"bytes", 0}};
    if (!std::filesystem::is_regular_file(status)) return state;
    const uint64_t bytes = std::filesystem::file_size(file, error);
    state["bytes"] = bytes;
    if (timed || bytes > small_file || error) state["modified"] = time_of(file);
    if (bytes <= small_file && !error)
        state["holds"] = digest_text(read_text_file(file, small_file, FileHolds::bytes));
    return state;
}

/// Returns false for a file without a known time, as on some servers, and for a pipe: they always count as
/// changed.
bool is_known(const Json& state) {
    return !state.is_array() ||
           (!state.empty() && std::none_of(state.begin(), state.end(),
                                           [](const Json& f) { return f.size() != 3 || f[2] == "0"; }));
}

bool is_as(const Json& files) {
    for (const auto& [file, state] : files.items())
        if (state.is_object() && state.contains("tells")
                ? state["tells"] != digest_text(raster::told_by_side_file(file)) ||
                      (state["there"] == Json(true) && !is_there(file))
                : !is_known(state) || state_of(file, state.contains("modified")) != state)
            return false;
    return true;
}

} // namespace

MadeRecord::MadeRecord(const Call& call) {
    const CommonOptions& options = call.options();
    m_path = call.first_output();
    if (m_path.empty()) throw UsageError(option_requires("-if-needed", "an output"), "Leave it out.");
    if (!is_local(m_path) || m_path.compare(0, 5, "/dev/") == 0)
        throw UsageError("-if-needed: " + m_path + " is not a regular file", "Leave it out.");
    m_path += ".made";
    m_report = options.report;
    m_told = {{"tool", call.definition().executable()}, {"version", project_version()}};
    auto& given = m_told["options"] = Json::object();
    for (const Argument& argument : call.arguments())
        if (const Given& one = call.given_to(argument); one.count > 0 && !is_free(argument.name))
            // Digests are stored instead of words, because some words are passwords.
            given[argument.name] = digest_text(joined(one.words, "\n"));
    m_told["settings"] = digest_text(joined(raster::settings_of_results(), "\n"));
    read();
}

bool MadeRecord::holds() const {
    return !m_before.is_null() && m_before["told"] == m_told && is_as(m_before["read"]) &&
           is_as(m_before["made"]);
}

void MadeRecord::look_at_inputs(const raster::RunFiles& files) {
    for (const std::string& file : files.read()) {
        if (is_overview(file)) continue;
        Json& state = m_inputs[file];
        state = is_stream(file) ? Json::array() : state_of(file, true);
        if (!state.is_object()) continue; // a missing file, a pipe, or a file on a server
        for (const std::string& other : raster::files_that_may_come(file))
            if (!m_inputs.contains(other) && !is_there(other)) m_inputs[other] = nullptr;
    }
}

void MadeRecord::write(const raster::RunFiles& files) const {
    Json made = Json::object(), read = m_inputs;
    bool computed = false;
    for (const auto& [role, output] : files.written()) {
        if (output == m_report) continue;
        made[output] = state_of(output);
        computed = computed || raster::is_scene_document(output);
        for (const auto& file : raster::files_as_they_are(output))
            made[file.path] = state_of(file.path);
        if (!is_local(output)) continue;
        const std::string side = output + ".aux.xml", mask = output + ".msk";
        made[side] = {{"there", is_there(side)}, {"tells", digest_text(raster::told_by_side_file(side))}};
        if (!made.contains(mask)) made[mask] = state_of(mask);
    }
    for (const auto& [file, state] : made.items())
        read.erase(file); // an output next to an input: y.prj of the output y.shp next to the input y.tif
    if (!computed)
        for (auto& state : read)
            if (state.is_object() && state.contains("holds")) state.erase("modified");
    const Json record{
        {"format", record_format}, {"told", m_told}, {"read", std::move(read)}, {"made", std::move(made)}};
    raster::write_text_output({"-if-needed", m_path, true, nullptr},
                              record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void MadeRecord::read() {
    if (!is_there(m_path)) return;
    std::string text = "?"; // stands for a file that is not a record: a FIFO, or a file that is too large
    try {
        if (!is_stream(m_path)) text = read_text_file(m_path, largest_file::model, FileHolds::bytes);
    } catch (const Error&) {
    }
    m_before = Json::parse(text, nullptr, false);
    if (m_before.is_object() && m_before.value("format", Json()) == Json(record_format) &&
        m_before.value("read", Json()).is_object() && m_before.value("made", Json()).is_object() &&
        m_before.contains("told"))
        return;
    m_before = nullptr;
    // The beginning of the text that write() writes.
    const std::string mark = std::string("{\n \"format\": \"") + record_format + '"';
    const bool ours = text.find_first_not_of('\0') == std::string::npos ||
                      text.compare(0, mark.size(), mark, 0, text.size()) == 0;
    if (!ours)
        throw Error("'" + m_path + "' exists and is not a record of -if-needed",
                    "Delete it, or use another output name.");
}

} // namespace hsi::tool
