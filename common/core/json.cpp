// SPDX-License-Identifier: MIT
#include "core/json.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
