// SPDX-License-Identifier: MIT
#include "raster/io/server_answers.h"

#include "core/connections.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/io/remote_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <cpl_vsi_error.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <set>
#include <sstream>
#include <utility>

namespace hsi::raster {

namespace {

constexpr const char* debug_option = "CPL_DEBUG";
constexpr const char* verbose_option = "CPL_CURL_VERBOSE";
constexpr const char* header_out = "CURL_INFO_HEADER_OUT";
constexpr const char* header_in = "CURL_INFO_HEADER_IN";
constexpr const char* data_in = "CURL_INFO_DATA_IN";
constexpr const char* about_connection = "CURL_INFO_TEXT";
constexpr const char* data_in_option = "CPL_CURL_VERBOSE_DATA_IN";

/// Limit of bytes of an answer to a request for a whole file.
constexpr uint64_t most_whole = uint64_t{64} << 20;
constexpr uint64_t most_of_headers = uint64_t{1} << 20; ///< limit of bytes of an answer's headers
/// GDAL accepts a whole file instead of a part if the file is at most this many times as large as the part.
constexpr uint64_t most_times = 10;
/// If a server states no length, the pieces of the answer are counted, because GDAL's debug messages show
/// each piece only up to its first zero byte. A piece has up to 16 KB.
constexpr uint64_t largest_piece = uint64_t{16} << 10;
constexpr uint64_t most_times_counted = 16, most_beyond = uint64_t{16} << 20;

/// Returns the identity of a server: scheme, host and port, or a bucket.
std::string server_of(const std::string& path) {
    const size_t scheme = path.find("://");
    size_t end = scheme == std::string::npos ? path.find('/', 1) : scheme + 2;
    if (end != std::string::npos) end = path.find('/', end + 1);
    return path.substr(0, end);
}

/// The addresses and ports at which a server was reached.
using Peers = std::set<std::pair<std::string, int>>;
std::mutex g_peers_mutex;
std::map<std::string, Peers> g_peers; ///< addresses by server, as returned by server_of()

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

/// Returns an ETag without the mark of weak ETags ("W/"), because the same file may have either form.
std::string strong(const std::string& tag) { return tag.starts_with("W/") ? tag.substr(2) : tag; }

bool equal(const std::string& name, const std::string& a, const std::string& b) {
    return name == "ETag" ? strong(a) == strong(b) : a == b;
}

std::optional<std::string> thread_option(const char* name) {
    const char* const value = CPLGetThreadLocalConfigOption(name, nullptr);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

void set_thread_option(const char* name, const std::optional<std::string>& value) {
    CPLSetThreadLocalConfigOption(name, value ? value->c_str() : nullptr);
}

/// Returns false if a request may make GDAL request credentials from another server.
bool asks_for_no_credentials(const std::string& path) {
    if (path.starts_with("/vsicurl")) return true;
    const std::initializer_list<const char*> given = {
        "AWS_NO_SIGN_REQUEST",     "AWS_SECRET_ACCESS_KEY",           "GS_NO_SIGN_REQUEST",
        "GS_SECRET_ACCESS_KEY",    "AZURE_NO_SIGN_REQUEST",           "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "OSS_SECRET_ACCESS_KEY"};
    return std::any_of(given.begin(), given.end(), [&](const char* name) {
        return VSIGetPathSpecificOption(path.c_str(), name, CPLGetConfigOption(name, nullptr)) != nullptr;
    });
}

/// The value of a Content-Range header: "bytes 0-99/1000". `all` is empty if the header has '*' instead of
/// the size of the file.
struct ContentRange {
    uint64_t first = 0, last = 0;
    std::optional<uint64_t> all;

    static std::optional<ContentRange> parse(const std::string& text) {
        ContentRange range;
        std::istringstream in(lower(text));
        std::string unit, all;
        char dash = 0, slash = 0;
        if (!(in >> unit >> range.first >> dash >> range.last >> slash >> all) || unit != "bytes" ||
            dash != '-' || slash != '/' || range.last < range.first)
            return std::nullopt;
        if (all == "*") return range;
        if (all.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
        range.all = std::strtoull(all.c_str(), nullptr, 10);
        return range;
    }
};

} // namespace

ServerHeaders headers_of(const std::string& path) {
    ServerHeaders found;
    const GdalErrors quiet;
    const AnswerWatch watch(path);
    const CPLStringList all(VSIGetFileMetadata(path.c_str(), "HEADERS", nullptr));
    if (watch.cut()) return found;
    for (int k = 0; k < all.size(); ++k)
        for (const char* name :
             {"ETag", "Last-Modified", "Content-Length", "Content-Range", "Content-Encoding"}) {
            const size_t length = std::strlen(name);
            if (EQUALN(all[k], name, length) && all[k][length] == '=') found[name] = all[k] + length + 1;
        }
    // The answer to a partial request states the file's size in Content-Range: "bytes 0-99/1000".
    if (const auto range = found.find("Content-Range"); range != found.end()) {
        const size_t slash = range->second.rfind('/');
        found.erase("Content-Length");
        if (slash != std::string::npos) found["Content-Length"] = range->second.substr(slash + 1);
        found.erase("Content-Range");
    }
    return found;
}

void check_same(const std::string& path, const ServerHeaders& before, const ServerHeaders& now) {
    if (const std::string cut = ServedVersion::of(path)->cut_off(); now.empty() && !cut.empty())
        throw Error("cannot fetch '" + path + "': " + cut, "Fetch the file first: curl -O URL.");
    if (now.empty())
        throw Error("the server no longer describes '" + path + "', which may have changed while it was read",
                    "Try again later.");
    for (const auto& [name, value] : before)
        if (const auto at = now.find(name); at != now.end() && !equal(name, value, at->second))
            throw Error("'" + path + "' has changed while it was read (" + name + " was " + value +
                            ", is now " + at->second + ")",
                        "Run it again when no program writes the file.");
}

void ServedFile::check_unchanged(const CancelFlag* cancel) const {
    if (headers.empty()) return;
    Tries tries(path);
    ServerHeaders now = headers_of(path);
    while (now.empty() && tries.again(cancel))
        now = headers_of(path);
    check_same(path, headers, now);
}

// --- Versions

std::shared_ptr<ServedVersion> ServedVersion::of(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<ServedVersion>> all;
    const std::lock_guard lock(mutex);
    auto& one = all[path];
    if (!one) one = std::make_shared<ServedVersion>();
    return one;
}

void ServedVersion::begin(const std::string& path, const ServerHeaders& headers) {
    note_cut_off({});
    take(path, headers);
}

void ServedVersion::take(const std::string& path, const ServerHeaders& headers) {
    const std::lock_guard lock(m_mutex);
    const bool other = std::any_of(headers.begin(), headers.end(), [&](const auto& header) {
        const auto at = m_headers.find(header.first);
        return at != m_headers.end() && !equal(header.first, at->second, header.second);
    });
    if (other) (void)forget_cached(path);
    m_headers = headers;
    if (!headers.empty()) m_headers.emplace("Content-Encoding", "identity");
}

void ServedVersion::forget() {
    const std::lock_guard lock(m_mutex);
    m_headers.clear();
}

std::string ServedVersion::ask_again(const std::string& path) {
    ServerHeaders before;
    {
        const std::lock_guard lock(m_mutex);
        before = m_headers;
    }
    const ServerHeaders now = headers_of(path);
    take(path, now);
    try {
        if (!before.empty()) check_same(path, before, now);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string ServedVersion::difference(const ServerHeaders& answer) {
    const std::lock_guard lock(m_mutex);
    for (const auto& [name, value] : answer) {
        const auto [at, added] = m_headers.emplace(name, value);
        if (!added && !equal(name, at->second, value))
            return "server error: its answer belongs to another version of the file (" + name + " was " +
                   at->second + ", is now " + value + ")";
    }
    return {};
}

std::string ServedVersion::cut_off() {
    const std::lock_guard lock(m_mutex);
    return m_cut_off;
}

void ServedVersion::note_cut_off(const std::string& why) {
    const std::lock_guard lock(m_mutex);
    m_cut_off = why;
}

// --- Answers

AnswerWatch::AnswerWatch(const std::string& path)
    : m_path(path), m_version(asks_for_no_credentials(path) ? ServedVersion::of(path) : nullptr),
      m_debug(thread_option(debug_option)), m_verbose(thread_option(verbose_option)),
      m_data_in(thread_option(data_in_option)), m_prints([] {
          const char* const value = CPLGetConfigOption(debug_option, nullptr);
          return value != nullptr && !EQUAL(value, "OFF") && !EQUAL(value, "NO") && !EQUAL(value, "FALSE") &&
                 !EQUAL(value, "0");
      }()),
      m_prints_headers(m_prints && CPLTestBool(CPLGetConfigOption(verbose_option, "NO"))),
      m_prints_data(m_prints_headers && CPLTestBool(CPLGetConfigOption(data_in_option, "NO"))) {
    if (!m_version) return;
    std::string shown = joined({header_out, header_in, data_in, about_connection}, ",");
    if (m_prints) {
        const std::string before = CPLGetConfigOption(debug_option, "");
        const bool all = before.empty() || EQUAL(before.c_str(), "ON") || EQUAL(before.c_str(), "YES") ||
                         EQUAL(before.c_str(), "TRUE") || before == "1";
        shown = all ? before : before + "," + shown;
    }
    CPLPushErrorHandlerEx(&AnswerWatch::collect, this);
    set_thread_option(debug_option, shown);
    set_thread_option(verbose_option, "YES");
}

AnswerWatch::~AnswerWatch() {
    if (!m_version) return;
    set_thread_option(debug_option, m_debug);
    set_thread_option(verbose_option, m_verbose);
    set_thread_option(data_in_option, m_data_in);
    CPLPopErrorHandler();
    for (const Message& m : m_messages)
        CPLError(m.level, m.number, "%s", m.text.c_str());
}

void CPL_STDCALL AnswerWatch::collect(CPLErr level, CPLErrorNum number, const char* message) {
    auto* const self = static_cast<AnswerWatch*>(CPLGetErrorHandlerUserData());
    if (level != CE_Debug) {
        if (std::strstr(message, ranges_unknown_to_server) != nullptr && self->m_fault.empty())
            self->m_fault = sends_whole_file;
        if (level == CE_Fatal)
            CPLDefaultErrorHandler(level, number, message);
        else
            self->m_messages.push_back({level, number, message});
        return;
    }
    // The message may begin with a time. The key and then the server's text follow.
    const char* const of_curl = std::strstr(message, "CURL_INFO_");
    const auto text_behind = [&](const char* key) -> const char* {
        const size_t length = std::strlen(key);
        const bool begins = of_curl != nullptr && std::strncmp(of_curl, key, length) == 0;
        return begins && std::strncmp(of_curl + length, ": ", 2) == 0 ? of_curl + length + 2 : nullptr;
    };
    const bool body = text_behind(data_in) != nullptr;
    if (body)
        self->note_body();
    else if (const char* const request = text_behind(header_out))
        self->note_request(request);
    else if (const char* const line = text_behind(header_in))
        self->note_line(line);
    else if (const char* const text = text_behind(about_connection))
        self->note_connection(text);
    if (body ? self->m_prints_data : of_curl != nullptr ? self->m_prints_headers : self->m_prints)
        CPLDefaultErrorHandler(level, number, message);
}

void AnswerWatch::note_request(const std::string& text) {
    m_asked.reset();
    m_status = 0;
    m_answer.clear();
    m_pieces = m_header_bytes = 0;
    m_has_body = !text.starts_with("HEAD ");
    if (std::exchange(m_counts, false)) set_thread_option(data_in_option, m_data_in);
    if (!text.starts_with("GET ")) return;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::string header = lower(line);
        uint64_t first = 0, last = 0;
        char dash = 0;
        constexpr const char* name = "range: bytes=";
        if (!header.starts_with(name)) continue;
        std::istringstream range(header.substr(std::strlen(name)));
        if (range >> first >> dash >> last && dash == '-') m_asked = {first, last};
    }
}

/// Records the server's address from curl's message "Connected to localhost (127.0.0.1) port 80 (#0)". curl 8
/// writes "Established connection to localhost (127.0.0.1 port 80) from ...".
void AnswerWatch::note_connection(const std::string& text) const {
    if (!begins_with_any(text, {"Connected to ", "Established connection to "})) return;
    const size_t bracket = text.find(" ("), port = text.find("port ");
    if (bracket == std::string::npos || port == std::string::npos) return;
    const std::string address = text.substr(bracket + 2, text.find_first_of(") ", bracket + 2) - bracket - 2);
    const std::lock_guard lock(g_peers_mutex);
    g_peers[server_of(m_path)].emplace(address, std::atoi(text.c_str() + port + std::strlen("port ")));
}

void AnswerWatch::note_line(std::string line) {
    if ((m_header_bytes += line.size()) > most_of_headers) return cut_off("more than 1 MB of headers");
    line = std::string(trimmed(line));
    if (line.starts_with("HTTP/")) { // A further answer follows an answer that redirects, or 100 (continue).
        const size_t blank = line.find(' ');
        m_status = blank == std::string::npos ? 0 : std::atoi(line.c_str() + blank);
        m_answer.clear();
    } else if (line.empty()) {
        judge_answer();
        check_length();
    } else if (const size_t colon = line.find(':'); colon != std::string::npos) {
        const std::string value(trimmed(std::string_view(line).substr(colon + 1)));
        const auto [at, added] = m_answer.emplace(lower(line.substr(0, colon)), value);
        if (!added && at->second != value) at->second += ", " + value;
    }
}

void AnswerWatch::cut_off(const std::string& has) {
    m_cut = true;
    if (m_fault.empty())
        m_fault =
            server_is_to_blame + ("its answer has " + has) +
            (m_asked ? ", and " + counted(m_asked->second - m_asked->first + 1, "byte") + " were requested"
                     : std::string());
    // Noted before the connections of other readers end, so that they find the reason.
    m_version->note_cut_off(m_fault);
    Peers peers;
    {
        const std::lock_guard lock(g_peers_mutex);
        peers = g_peers[server_of(m_path)];
    }
    for (const auto& [address, port] : peers)
        end_connections_to(address, port);
    // If the address is unknown, the connection was made before the first watch. All connections then end,
    // and readers of other servers connect again.
    if (peers.empty()) end_connections_to("", 0);
}

/// Sets the limit of bytes of an answer when its headers have arrived, and cuts off an answer whose stated
/// length exceeds the limit.
void AnswerWatch::check_length() {
    constexpr int whole = 200, part = 206;
    if (!m_has_body || m_status < whole) return; // after a status 1xx, more headers follow
    m_most = most_whole;                         // this limit also applies to an error page
    if (m_asked && (m_status == whole || m_status == part))
        m_most = (m_asked->second - m_asked->first + 1) * (m_status == whole ? most_times : 1);
    const auto length = m_answer.find("content-length");
    if (length != m_answer.end() && m_answer.count("transfer-encoding") == 0) {
        const bool gdal_cuts_off = m_asked && m_status == whole;
        if (std::strtoull(length->second.c_str(), nullptr, 10) > m_most && !gdal_cuts_off)
            cut_off(length->second + " bytes (Content-Length)");
        return;
    }
    m_counts = true;
    set_thread_option(data_in_option, "YES");
}

void AnswerWatch::note_body() {
    const uint64_t most = std::max(m_most, std::min(most_times_counted * m_most, most_whole)) + most_beyond;
    if (m_counts && ++m_pieces * largest_piece > most) cut_off("no end");
}

void AnswerWatch::judge_answer() {
    constexpr int ok = 200, part = 206;
    if (!m_fault.empty() || !m_asked || (m_status != ok && m_status != part)) return;
    const auto header = [&](const char* name) {
        const auto at = m_answer.find(name);
        return at != m_answer.end() ? at->second : std::string();
    };
    ServerHeaders told;
    for (const char* const name : {"ETag", "Last-Modified", "Content-Encoding"})
        if (const std::string value = header(lower(name).c_str()); !value.empty()) told[name] = value;
    told.emplace("Content-Encoding", "identity");
    const std::string type = header("content-type"), text = header("content-range"),
                      length = header("content-length");
    if (lower(type).starts_with("multipart/")) {
        m_fault = "server error: its answer consists of several parts (Content-Type " + type + ")";
        return;
    }
    if (m_status == part || !text.empty()) {
        const auto range = ContentRange::parse(text);
        const auto& [first, last] = *m_asked;
        if (!range) {
            m_fault =
                text.empty()
                    ? "server error: its answer does not state its position in the file (no Content-Range)"
                    : "server error: its answer does not state its position in the file (Content-Range " +
                          text + ")";
            return;
        }
        if (range->first != first || range->last > last) {
            m_fault = "server error: its answer is another part of the file (Content-Range " + text +
                      ", requested " + std::to_string(first) + "-" + std::to_string(last) + ")";
            return;
        }
        if (range->all && range->last >= *range->all) {
            m_fault = "server error: its answer ends after the end of the file (Content-Range " + text + ")";
            return;
        }
        if (!length.empty() && length != std::to_string(range->last - range->first + 1)) {
            m_fault = "server error: its answer has " + length +
                      " bytes (Content-Length) for Content-Range " + text;
            return;
        }
        if (range->all) told["Content-Length"] = std::to_string(*range->all);
    } else if (m_asked->first > 0) {
        m_fault = sends_whole_file;
        return;
    } else if (!length.empty()) {
        told["Content-Length"] = length;
    }
    m_fault = m_version->difference(told);
}

VSILFILE* open_watched(const std::string& path) {
    if (VSIIsLocal(path.c_str())) return VSIFOpenL(path.c_str(), "rb");
    const AnswerWatch watch(path);
    VSILFILE* const file = VSIFOpenExL(path.c_str(), "rb", TRUE);
    if (!watch.cut()) return file;
    if (file != nullptr) VSIFCloseL(file);
    VSIError(VSIE_HttpError, "%s", watch.fault().c_str());
    return nullptr;
}

} // namespace hsi::raster
