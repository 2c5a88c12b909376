// SPDX-License-Identifier: MIT
// Facts about a server's answers. GDAL hands over the bytes of an answer and hides its headers; here the
// headers are read, so that bytes of another part or of another version of a file are not taken for pixels.
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

/// The headers that distinguish the states of a remote file: ETag, Last-Modified, Content-Length (of the
/// whole file).
using ServerHeaders = std::map<std::string, std::string>;

/// How GDAL says that an answer was the whole file instead of a part, and how every fault of an answer
/// begins.
inline constexpr const char* ranges_unknown_to_server = "Range downloading not supported";
inline constexpr const char* server_is_to_blame = "the server is to blame: ";
inline constexpr const char* sends_whole_file =
    "the server is to blame: it sends the whole file when it is asked for a part";

/// Asks the server for the headers of a file. Empty if the server does not answer, or states none of them.
ServerHeaders headers_of(const std::string& path);

/// A path, and the server's headers when it was opened.
struct ServedFile {
    std::string path;
    ServerHeaders headers; ///< empty: none, or not a remote file
    /// \throws Error when the server now states other headers, or none.
    void check_unchanged(const CancelFlag* cancel) const;
};
/// Throws Error when `now` differs from `before`.
void check_same(const std::string& path, const ServerHeaders& before, const ServerHeaders& now);

/// The version of a server's file that all answers must belong to. Thread-safe.
class ServedVersion {
  public:
    /// The version of `path` that this process reads. All readers of the file share the object.
    static std::shared_ptr<ServedVersion> of(const std::string& path);

    /// The file is opened again, and the server states these headers. GDAL's cache is emptied where they
    /// differ from those of the last time. What was cut off before is forgotten.
    void begin(const std::string& path, const ServerHeaders& headers);
    /// Forgets the version, so that the next answer states it.
    void forget();
    /// Asks the server for the version that is there now, which counts from then on. Returns "'PATH' has
    /// changed ..." if it is another one; else an empty text.
    std::string ask_again(const std::string& path);
    /// Returns the difference between an answer and the version; empty if there is none. Headers that no
    /// earlier answer has stated become part of the version.
    std::string difference(const ServerHeaders& answer);

    /// Why an answer was cut off since begin(); empty if none was. An answer that one reader cuts off ends
    /// the connections of all readers.
    std::string cut_off();
    void note_cut_off(const std::string& why);

  private:
    void take(const std::string& path, const ServerHeaders& headers);

    std::mutex m_mutex;
    ServerHeaders m_headers; ///< Content-Encoding included
    std::string m_cut_off;
};

/// While one of these lives, it reads the headers of all answers to GDAL's requests on this thread, which
/// must be for one file. It costs no request. An answer that is longer than the request is cut off: GDAL
/// would keep all of it in memory. Where a server states no length, bytes are counted roughly, so that up to
/// 16 times as much comes, and 16 MB. A request for a whole answer, such as the list of a folder, gets up to
/// 64 MB. GDAL shows headers in debug messages of curl alone; they are kept from being printed. Use it around
/// functions of VSI*L alone: where GDAL silences its errors, debug messages would be printed. So it does
/// nothing for file systems whose credentials GDAL may have to ask a server for: it silences errors then.
class AnswerWatch {
  public:
    explicit AnswerWatch(const std::string& path);
    ~AnswerWatch();
    AnswerWatch(const AnswerWatch&) = delete;
    AnswerWatch& operator=(const AnswerWatch&) = delete;

    /// Returns "the server is to blame: ..." with what is wrong about the first wrong answer; empty if all
    /// are right.
    const std::string& fault() const { return m_fault; }
    /// An answer was cut off: nothing that GDAL has made of it holds.
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
    const std::shared_ptr<ServedVersion> m_version; ///< null: it does nothing
    const std::optional<std::string> m_debug; ///< the thread's own earlier CPL_DEBUG; nullopt if it had none
    const std::optional<std::string> m_verbose, m_data_in;
    const bool m_prints; ///< the user wants debug messages, m_prints_headers: also curl's
    const bool m_prints_headers, m_prints_data;
    bool m_has_body = false; ///< the request is not for headers alone
    bool m_counts = false;   ///< the server has stated no length
    uint64_t m_most = 0;     ///< bytes of the answer
    uint64_t m_pieces = 0, m_header_bytes = 0;
    std::optional<std::pair<uint64_t, uint64_t>> m_asked; ///< first and last byte of the request
    int m_status = 0;
    std::map<std::string, std::string> m_answer; ///< headers by names in lower case
    std::vector<Message> m_messages;             ///< for the handler that was there before
    std::string m_fault;
    bool m_cut = false;
};

/// VSIFOpenExL() for reading, of a server's file under an AnswerWatch. Null where an answer is cut off:
/// VSIGetLastErrorMsg() then says so.
VSILFILE* open_watched(const std::string& path);

} // namespace hsi::raster
