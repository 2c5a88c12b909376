// SPDX-License-Identifier: MIT
// Names that people type: compared whatever the case, and the one that was meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi {

/// The words of a list: "5,Soil" is 5 and Soil. One that holds a comma stands in double quotes, in which a
/// quote is written twice: 5,"Corn, young". Without blanks around; empty when a word is or a quote does not
/// end.
std::optional<std::vector<std::string>> listed_words(std::string_view text);

/// "a, b, c" for between = ", ".
std::string joined(const std::vector<std::string>& words, const char* between);

/// True when the two are equal but for the case of ASCII letters.
bool equal_names(std::string_view a, std::string_view b);

/// The one of `names` that is spelled most like `name`, whatever the case; empty when none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

/// "Did you mean -ws?" for nearest_name() with `before` in front; empty when none is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names,
                         const char* before = "");

} // namespace hsi
