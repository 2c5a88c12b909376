// SPDX-License-Identifier: MIT
#include "core/json.h"

#include <set>
#include <utility>
#include <vector>

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace hsi {
namespace {

constexpr size_t deepest = 256; // 64 scenes within one another take 130

/// Thrown out of the parser, which has no other way to end early.
struct Fault {
    std::string what;
};

/// Watches a document while it is parsed.
class Watch {
  public:
    bool operator()(int, Json::parse_event_t event, const Json& parsed) {
        using Event = Json::parse_event_t;
        if (event == Event::object_start || event == Event::array_start) {
            m_members.emplace_back();
            if (m_members.size() > deepest)
                throw Fault{"nests more than " + std::to_string(deepest) + " levels deep"};
        } else if (event == Event::object_end || event == Event::array_end) {
            m_members.pop_back();
        } else if (event == Event::key) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!m_members.back().insert(key).second) throw Fault{"has '" + key + "' twice"};
        }
        return true;
    }

  private:
    std::vector<std::set<std::string>> m_members; ///< of the objects around; empty for a list
};

} // namespace

std::optional<Json> parse_json(const std::string& text, std::string& fault) {
    try {
        Watch watch;
        Json root = Json::parse(
            text,
            [&](int depth, Json::parse_event_t event, Json& parsed) { return watch(depth, event, parsed); },
            false);
        if (!root.is_discarded()) return root;
        fault = "is not valid JSON, or is cut off";
    } catch (const Fault& found) {
        fault = found.what;
    }
    return std::nullopt;
}

} // namespace hsi
