// SPDX-License-Identifier: MIT
// The data of unmixing with draws that all pixels share, on the CPU and on GPUs.
#pragma once

#include "unmix/draws.h"
#include "unmix/mixture.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace hsi::unmix {

/// The spectra of a draw: the factors of their least squares, and the class of each.
struct Draw {
    Draw(int n, const Endmembers& chosen, Method method, std::vector<int> of_library,
         std::vector<int> classes);
    const int number;
    const Mixture mixture;
    const std::vector<int> members, class_of;
    std::vector<const double*> spectra; ///< the mixture's spectra
};

struct DrawPlan {
    /// \throws Error as make_draws().
    DrawPlan(const Endmembers& all, const Classes& of, const DrawOptions& how);
    std::vector<int> output_bands() const;

    const DrawOptions options;
    const size_t classes;
    const Endmembers library; ///< normalised
    std::vector<std::unique_ptr<Draw>> draws;
    size_t most = 0; ///< spectra of a draw
    int skipped = 0;
};

} // namespace hsi::unmix
