// SPDX-License-Identifier: MIT
// The data of Monte Carlo unmixing that all pixels share, on the CPU and on GPUs.
#pragma once

#include "unmix/draws.h"
#include "unmix/mixture.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace hsi::unmix {

/// The spectra of one realisation, with the factors of their least-squares problem and the class of each
/// spectrum.
struct Draw {
    Draw(int n, const Endmembers& chosen, Method method, std::vector<int> of_library,
         std::vector<int> classes);
    const int number;
    const Mixture mixture;
    const std::vector<int> members, class_of;
    std::vector<const double*> spectra; ///< pointers to the spectra of the mixture
};

struct DrawPlan {
    /// \throws Error in the same cases as make_draws().
    DrawPlan(const Endmembers& all, const Classes& of, const DrawOptions& how);
    std::vector<int> output_bands() const;

    const DrawOptions options;
    const size_t classes;
    const Endmembers library; ///< normalised spectra
    std::vector<std::unique_ptr<Draw>> draws;
    size_t most = 0; ///< largest number of spectra in a realisation
    int skipped = 0;
};

} // namespace hsi::unmix
