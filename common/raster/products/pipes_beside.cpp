// SPDX-License-Identifier: MIT
#include "raster/products/pipes_beside.h"

#include "core/error.h"
#include "core/json.h"
#include "core/system.h"
#include "core/text.h"
#include "raster/hdf5/hdf5_references.h"
#include "raster/products/binary_names.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace hsi::raster {
namespace {

using Names = std::vector<std::string>;

bool is_pipe(const std::string& path) { return kind_of_path(path) == PathKind::pipe; }

/// Returns system::odd_entries() of a folder. The result is kept until the folder changes, because many
/// scenes can be in the same folder.
std::shared_ptr<const Names> odd_entries(const std::string& folder) {
    struct Listed {
        struct stat facts;
        std::shared_ptr<const Names> names;
    };
    static std::mutex mutex;
    static std::map<std::string, Listed> all;
    struct stat now {};
    if (::stat(folder.c_str(), &now) != 0) return std::make_shared<const Names>();
    const auto same = [&](const struct stat& then) {
        return now.st_ino == then.st_ino && now.st_dev == then.st_dev &&
               now.st_mtim.tv_sec == then.st_mtim.tv_sec && now.st_mtim.tv_nsec == then.st_mtim.tv_nsec;
    };
    const std::lock_guard lock(mutex);
    if (const auto at = all.find(folder); at != all.end() && same(at->second.facts)) return at->second.names;
    auto names = std::make_shared<const Names>(system::odd_entries(folder));
    constexpr size_t most_folders = 1000;
    if (all.size() >= most_folders) all.clear();
    // Modification times of folders are coarse: an entry may appear in the same time step in which the folder
    // was listed. A recently changed folder is therefore listed again.
    constexpr time_t settled = 2; // seconds
    all.erase(folder);
    if (std::time(nullptr) - now.st_mtim.tv_sec >= settled) all.emplace(folder, Listed{now, names});
    return names;
}

/// Returns true for side files whose names do not begin with the name of the scene. They are METADATA.DIM and
/// summary.txt, or contain a part of the name, such as HDR..., RPC..., DIM... and ..._MTL.txt.
bool is_shared_side_file(const std::string& name) {
    const bool text = name.ends_with(".txt") || name.ends_with(".xml");
    return name == "metadata.dim" || name == "summary.txt" || name.ends_with("_mtl.txt") ||
           (text && begins_with_any(name, {"hdr", "rpc", "dim"}));
}

std::string beside(const std::string& path) {
    const std::string folder = folder_of(path), own = name_of(path), name = CPLString(own).tolower();
    const std::string stem =
        name.substr(0, name.find_last_of('.') == 0 ? std::string::npos : name.rfind('.'));
    const auto entries = odd_entries(folder);
    for (const std::string& entry : *entries) {
        const std::string other = CPLString(entry).tolower();
        const bool begins =
            other.starts_with(stem) && (other.size() == stem.size() ||
                                        std::isalnum(static_cast<unsigned char>(other[stem.size()])) == 0);
        if (entry == own || !(begins || is_shared_side_file(other))) continue;
        if (const std::string found = join_path(folder, entry); is_pipe(found)) return found;
    }
    return {};
}

/// Returns true for a Zarr store, whose arrays and chunks are in nested folders.
bool is_store(const std::string& folder) {
    const auto has = [&](const char* name) {
        return kind_of_path(join_path(folder, name)) != PathKind::nothing;
    };
    return has(".zgroup") || has(".zarray") || has(".zmetadata") || has("zarr.json");
}

/// Returns the path of a pipe in a folder that is read as one scene; empty if there is none. Searches folders
/// down to `levels` below the folder; in a Zarr store, searches folders at any depth.
std::string inside(const std::string& top, int levels) {
    constexpr size_t most_folders = 10000;
    constexpr int deepest = 64; // a limit is needed because links may form a circle
    if (is_store(top)) levels = deepest;
    std::vector<std::pair<std::string, int>> ahead{{top, levels}};
    for (size_t k = 0; k < ahead.size(); ++k) {
        const auto [folder, left] = ahead[k];
        const auto entries = odd_entries(folder);
        for (const std::string& entry : *entries)
            if (const std::string found = join_path(folder, entry); is_pipe(found)) return found;
        std::error_code ec;
        std::filesystem::directory_iterator at(folder, ec);
        for (const std::filesystem::directory_iterator end; left > 0 && !ec && at != end; at.increment(ec)) {
            std::error_code unknown;
            if (at->is_directory(unknown) && ahead.size() < most_folders)
                ahead.emplace_back(at->path().string(), left - 1);
        }
    }
    return {};
}

/// Returns whether a file that begins with these bytes is a text. Without this check, words in the pixels of
/// a raw file would be treated as file names.
bool is_text(std::string_view begin) {
    return std::all_of(begin.begin(), begin.end(), [](char c) {
        return static_cast<unsigned char>(c) >= ' ' || (c >= '\t' && c <= '\r') || c == '\x1a' || c == '\0';
    });
}

/// The text of a file that may name other files.
struct NamingText {
    std::string text; ///< empty: the file is not a text
    bool xml = false, json = false;
    bool header = false; ///< the text belongs to a format whose header names the data files
};

NamingText naming_text(const std::string& path) {
    constexpr size_t looked_at = 1024, shortest = 16, any = size_t{1} << 20, xml_of_any = size_t{16} << 20,
                     most = size_t{256} << 20;
    const std::string begin = beginning_of_file(path, looked_at);
    if (begin.size() < shortest || begin.find('\0') < shortest) return {};
    const size_t first = begin.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (first == std::string::npos) return {};
    const bool xml = begin[first] == '<', json = begin[first] == '{';
    // GDAL reads JSON of these two forms as rasters. The suite's own documents are checked elsewhere.
    if (json && !contains_any(begin, {"\"stac_", "\"refs\""})) return {};
    const bool vrt = xml && begin.find("<VRTDataset") != std::string::npos;
    const bool ers = contains_any(CPLString(begin).tolower(), {"datasetheader", "algorithm"});
    const bool label = contains_any(begin, {"PDS_VERSION_ID", "ODL_VERSION_ID", "IsisCube"});
    if (!xml && !json && !ers && !label && !is_text(begin)) return {}; // the file contains pixels
    const size_t bound = vrt || ers || label ? most : xml || json ? xml_of_any : any;
    std::error_code unknown;
    const auto bytes = static_cast<size_t>(std::filesystem::file_size(path, unknown));
    NamingText out{beginning_of_file(path, std::min(bytes, bound)), xml, json, xml || ers || label};
    // After a label, the pixels follow. The text ends where GDAL's reader finds the end of the label.
    if (label && !ers && !xml && !json) {
        size_t end = out.text.size();
        for (const char* mark : {"\r\nEND\r\n", "\nEND\n", "\r\nEnd\r\n", "\nEnd\n"})
            end = std::min(end, out.text.find(mark));
        out.text.resize(end);
    }
    return out;
}

/// Follows file names from text to text until it finds a pipe.
class Walk {
  public:
    std::string found; ///< path of the pipe; empty if none was found

    void look_at_parts(const std::string& name, int depth = 0) {
        if (m_absent.contains(name)) return;
        const auto parts = parts_of_name(name);
        if (!parts) throw Error("a name has too many parts: '" + name.substr(0, 80) + "...'", "Shorten it.");
        for (const NamedPart& part : *parts) {
            if (found.empty() && part.kind == PathKind::pipe) found = part.path;
            if (part.kind == PathKind::file) look_at(part.path, depth + 1);
        }
        if (parts->empty()) m_absent.insert(name);
    }

    void look_at(const std::string& path, int depth = 0) {
        constexpr int deepest = 16;
        if (depth > deepest || !found.empty()) return;
        const PathKind kind = kind_of_path(path);
        if (kind == PathKind::nothing || !m_seen.insert(real_name(path)).second) return;
        if (kind == PathKind::folder) {
            found = inside(path, depth == 0 ? 1 : 0);
        } else if (kind == PathKind::file) {
            found = beside(path);
            for (const std::string& text : texts_of_dataset(path))
                if (found.empty()) look_into(text, depth);
            for (const std::string& file : {path, std::string(CPLResetExtension(path.c_str(), "aux"))})
                look_at_texts(texts_of_imagine(file), folder_of(file), depth);
            look_at_texts(external_files_of_hdf4(path), ".", depth);
            if (found.empty() && leads_to_hdf5(path)) found = pipe_behind_hdf5(path);
        }
    }

  private:
    /// Returns the same name for all spellings of the folder's path. The file name itself is not resolved,
    /// because other side files belong to another link to the same file.
    static std::string real_name(const std::string& path) {
        std::error_code ec;
        return join_path(std::filesystem::canonical(folder_of(path), ec).string(), name_of(path));
    }

    /// Where a text was found.
    struct Place {
        std::string folder;
        const Names& odd; ///< pipes and devices in the folder
        int depth;
        /// The text is a header that names data files. Names of devices are then also checked, as are files
        /// next to it, which may name further files.
        bool header;
    };

    void look_into(const std::string& path, int depth) {
        const NamingText naming = naming_text(path);
        if (naming.text.empty()) return;
        const auto odd = odd_entries(folder_of(path));
        const Place place{folder_of(path), *odd, depth, naming.header};
        if (naming.json) {
            std::string fault;
            if (const auto json = parse_json(naming.text, fault)) return look_at_json(*json, place);
        }
        if (naming.xml) {
            const CPLXMLTreeCloser root(CPLParseXMLString(naming.text.c_str()));
            return look_at_nodes(root.get(), place, 0);
        }
        std::string_view rest = naming.text;
        while (!rest.empty() && found.empty()) {
            const size_t end = std::min(rest.find_first_of(std::string_view("\"'\r\n\0", 5)), rest.size());
            look_at_names(rest.substr(0, end), place);
            rest.remove_prefix(std::min(rest.size(), end + 1));
        }
    }

    /// Examines texts of a binary file in this folder.
    void look_at_texts(const std::vector<std::string>& texts, const std::string& folder, int depth) {
        const auto odd = odd_entries(folder);
        for (const std::string& text : texts)
            look_at_names(text, {folder, *odd, depth, true});
    }

    /// Examines only whole texts, because a text such as a history may contain "-report /dev/stderr".
    void look_at_json(const Json& json, const Place& place) {
        if (json.is_string()) {
            const auto& text = json.get_ref<const std::string&>();
            const std::string_view local = "file://";
            look_at_name(text.starts_with(local) ? std::string_view(text).substr(local.size()) : text, place);
        }
        if (json.is_structured())
            for (const Json& member : json)
                look_at_json(member, place);
    }

    void look_at_nodes(const CPLXMLNode* node, const Place& place, int level) {
        constexpr int deepest = 256;
        for (; node != nullptr && level < deepest && found.empty(); node = node->psNext) {
            // Texts such as a history may contain "-report /dev/stderr".
            if (EQUAL(node->pszValue, "MDI") && !names_files(CPLGetXMLValue(node, "key", ""))) continue;
            if (node->eType == CXT_Text) look_at_names(node->pszValue, place);
            look_at_nodes(node->psChild, place, level + 1);
        }
    }

    /// Returns true for metadata items from which GDAL takes file names.
    static bool names_files(const char* key) {
        return EQUAL(key, "OVERVIEW_FILE") || EQUAL(key, "X_DATASET") || EQUAL(key, "Y_DATASET");
    }

    /// Examines the possible file names in a text: the whole text, the part after "=", and each word.
    void look_at_names(std::string_view text, const Place& place) {
        if (!place.header && place.odd.empty() && text.find('/') == std::string_view::npos) return;
        constexpr const char* around = " \t(),;{}&@";
        look_at_name(trimmed(text, around), place);
        const size_t equals = text.find('=');
        if (equals != std::string_view::npos) look_at_name(trimmed(text.substr(equals + 1), around), place);
        for (bool all = true; !text.empty() && found.empty(); all = false) {
            const size_t end = std::min(text.find_first_of(" \t(),;{}[]=&@\""), text.size());
            if (!all || end < text.size()) look_at_name(text.substr(0, end), place);
            text.remove_prefix(std::min(text.size(), end + 1));
        }
    }

    void look_at_name(std::string_view text, const Place& place) {
        const bool slash = text.find('/') != std::string_view::npos;
        if (!found.empty() || text.empty() || text.size() > PATH_MAX ||
            (!place.header && !slash && place.odd.empty()))
            return;
        const std::string name(text);
        if (name.find_first_not_of("./") == std::string::npos) return; // "." may be a word of any text
        if (!place.header && begins_with_any(name, {"/dev/", "/proc/"})) return;
        if (name.starts_with("/vsi") || (place.header && name.find(':') != std::string::npos))
            look_at_parts(name, place.depth);
        if (!found.empty() || !is_local(name)) return;
        std::string path = name.front() == '/' ? name : join_path(place.folder, name);
        // If a label names "A.IMG", drivers also search for "a.img".
        for (const std::string& entry : place.odd)
            if (!slash && equal_names(entry, name)) path = join_path(place.folder, entry);
        if (m_absent.contains(path)) return;
        const PathKind kind = kind_of_path(path);
        if (kind == PathKind::pipe)
            found = path;
        else if (kind == PathKind::nothing)
            m_absent.insert(path);
        else
            look_at(path, place.depth + 1);
    }

    std::set<std::string> m_seen;
    /// Names of missing files, because texts repeat the same names for each band.
    std::unordered_set<std::string> m_absent;
};

} // namespace

std::optional<std::vector<NamedPart>> parts_of_name(const std::string& name) {
    constexpr int most_looks = 20000;
    std::vector<NamedPart> parts;
    int looks = 0;
    for (size_t begin = 0; begin < name.size(); ++begin) {
        const bool starts = begin == 0 || std::strchr("/,{=:\"?", name[begin - 1]) != nullptr;
        if (!starts && name[begin] != '/') continue;
        for (size_t end = name.find_first_of("/,}&:\"?", begin + 1);;
             end = name.find_first_of("/,}&:\"?", end + 1)) {
            if (++looks > most_looks) return std::nullopt;
            const std::string path = name.substr(begin, end - begin);
            const PathKind kind = kind_of_path(path);
            if (kind != PathKind::nothing) parts.push_back({path, kind, end == std::string::npos});
            if (end == std::string::npos || (kind == PathKind::nothing && name[end] == '/')) break;
        }
    }
    return parts;
}

std::vector<std::string> texts_of_dataset(const std::string& path) {
    std::vector<std::string> texts{path, path + ".aux.xml"};
    for (const char* const extension : {"hdr", "HDR", "prj", "PRJ"}) {
        texts.push_back(path + "." + extension);
        texts.emplace_back(CPLResetExtension(path.c_str(), extension));
    }
    return texts;
}

std::string pipe_beside(const std::string& path) {
    if (path.size() > PATH_MAX) return {};
    Walk walk;
    if (is_local(path) && kind_of_path(path) != PathKind::nothing)
        walk.look_at(path);
    else if (path.find(':') != std::string::npos || path.starts_with("/vsi"))
        walk.look_at_parts(path);
    return walk.found;
}

void refuse_pipe_beside(const std::string& path) {
    if (const std::string pipe = pipe_beside(path); !pipe.empty())
        throw Error("cannot open '" + path + "': GDAL would open '" + pipe + "', which is a pipe or a device",
                    "Remove it, or give it another name.");
}

} // namespace hsi::raster
