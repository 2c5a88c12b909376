// SPDX-License-Identifier: MIT
#include "terminal/usage_json.h"
#include "core/json.h"

#include "terminal/help.h"
#include "tool/definition_json.h"

namespace hsi::terminal {

std::string usage_json(const tool::Declaration& declaration) {
    OrderedJson json{{"schema", usage_schema}};
    const OrderedJson definition = tool::definition_json(declaration);
    for (const auto& [name, value] : definition.items()) {
        json[name] = value;
        if (name == "description")
            json["usage"] =
                declaration.definition().executable() + " [options] " + usage_arguments(declaration);
    }
    return json.dump(2) + "\n";
}

} // namespace hsi::terminal
