// SPDX-License-Identifier: MIT
// Checks the headers of a server's answers. GDAL returns the bytes of an answer but hides its headers. This
// code reads the headers, so that bytes of another part or another version of a file are not used as pixels.
#pragma once

#include "core/cancel.h"

#include <cpl_error.h>
#include <cpl_vsi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// The headers that distinguish the versions of a remote file: ETag, Last-Modified, Content-Length (of the
/// whole file).
using ServerHeaders = std::map<std::string, std::string>;

/// ranges_unknown_to_server is GDAL's message if a server sends the whole file instead of a part. The text of
/// every fault of an answer begins with server_is_to_blame.
inline constexpr const char* ranges_unknown_to_server = "Range downloading not supported";
inline constexpr const char* server_is_to_blame = "server error: ";
inline constexpr const char* sends_whole_file =
    "server error: it sends the whole file when a part is requested";

/// Requests the headers of a file from its server. Empty if the server does not answer, or sends none of
/// these headers.
ServerHeaders headers_of(const std::string& path);

/// The path of a file, and the server's headers when the file was opened.
struct ServedFile {
    std::string path;
    ServerHeaders headers; ///< empty: the server sent none, or the file is local
    /// \throws Error if the server now sends other headers, or none.
    void check_unchanged(const CancelFlag* cancel) const;
};
/// Throws Error if `now` is empty, or if a header that both lists have differs.
void check_same(const std::string& path, const ServerHeaders& before, const ServerHeaders& now);

/// The version of a remote file, to which all answers must belong. Thread-safe.
class ServedVersion {
  public:
    /// Returns the object for `path`, which all readers of the file in this process share.
    static std::shared_ptr<ServedVersion> of(const std::string& path);

    /// Begins with the version that `headers`, the server's current headers, describe. Call it whenever the
    /// file is opened. Empties GDAL's cache for the file if the version has changed, and forgets that earlier
    /// answers were cut off.
    void begin(const std::string& path, const ServerHeaders& headers);
    /// Forgets the version. The headers of the next answer then become the version.
    void forget();
    /// Requests the current version from the server and uses it from then on. Returns "'PATH' has changed
    /// ..." if the file has another version than before, otherwise an empty text.
    std::string ask_again(const std::string& path);
    /// Compares the headers of an answer with the version. Returns the difference as a fault ("server error:
    /// ..."); empty if they agree. A header that no earlier answer had becomes part of the version.
    std::string difference(const ServerHeaders& answer);

    /// Returns why an answer was cut off since begin(); empty if no answer was cut off. Other readers need
    /// the reason, because cutting off an answer ends the connections of all readers.
    std::string cut_off();
    void note_cut_off(const std::string& why);

  private:
    void take(const std::string& path, const ServerHeaders& headers);

    std::mutex m_mutex;
    ServerHeaders m_headers; ///< includes Content-Encoding
    std::string m_cut_off;
};

/// While the object exists, it reads the headers of all answers to GDAL's requests on this thread, which must
/// be for one file. Reading them needs no additional request. An answer that is longer than requested is cut
/// off, because GDAL would keep the whole answer in memory. If a server states no length, bytes are counted
/// roughly, so up to 16 times as many bytes arrive, plus 16 MB. A request for a whole answer, such as the
/// list of a folder, gets up to 64 MB. GDAL shows headers only in curl's debug messages, which this class
/// intercepts with an error handler. Use the object only around functions of VSI*L. While GDAL requests
/// credentials from a server, it installs a handler of its own, and the debug messages would be printed. The
/// object therefore does nothing for file systems that may need credentials.
class AnswerWatch {
  public:
    explicit AnswerWatch(const std::string& path);
    ~AnswerWatch();
    AnswerWatch(const AnswerWatch&) = delete;
    AnswerWatch& operator=(const AnswerWatch&) = delete;

    /// Returns "server error: ..." with the fault of the first wrong answer; empty if all answers are
    /// correct.
    const std::string& fault() const { return m_fault; }
    /// Returns whether an answer was cut off. Results of GDAL that are based on the answer are then invalid.
    bool cut() const { return m_cut; }

  private:
    static void CPL_STDCALL collect(CPLErr level, CPLErrorNum number, const char* message);
    void note_request(const std::string& text);
    void note_line(std::string line);
    void note_connection(const std::string& text) const;
    void note_body();
    void judge_answer();
    void check_length();
    void cut_off(const std::string& has);

    struct Message {
        CPLErr level;
        CPLErrorNum number;
        std::string text;
    };
    const std::string m_path;
    const std::shared_ptr<ServedVersion> m_version; ///< null: the object does nothing
    /// CPL_DEBUG of this thread before the object existed; nullopt: not set
    const std::optional<std::string> m_debug;
    const std::optional<std::string> m_verbose, m_data_in;
    const bool m_prints; ///< the user wants GDAL's debug messages; m_prints_headers: also curl's messages
    const bool m_prints_headers, m_prints_data;
    bool m_has_body = false; ///< false: the request is only for headers (HEAD)
    bool m_counts = false;   ///< the server has not stated the answer's length, so its pieces are counted
    uint64_t m_most = 0;     ///< limit of bytes of the answer
    uint64_t m_pieces = 0, m_header_bytes = 0;
    std::optional<std::pair<uint64_t, uint64_t>> m_asked; ///< first and last byte of the request
    int m_status = 0;
    std::map<std::string, std::string> m_answer; ///< headers of the answer, by name in lower case
    std::vector<Message> m_messages;             ///< messages for the error handler that was set before
    std::string m_fault;
    bool m_cut = false;
};

/// Opens a server's file for reading with VSIFOpenExL() under an AnswerWatch. Returns null if an answer is
/// cut off; VSIGetLastErrorMsg() then states the reason.
VSILFILE* open_watched(const std::string& path);

} // namespace hsi::raster
