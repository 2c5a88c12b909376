// SPDX-License-Identifier: MIT
#include "detect/groups/group_scorer.cuh"

#include "cuda/check.h"

#include <algorithm>

namespace hsi::detect {
namespace {

bool measures(Method method) { return method == Method::ace || method == Method::rx; }

/// Returns true if scores need the factor's inverse, or if this inverse decides whether a matrix that was not
/// shrunk can be inverted.
bool wants_inverse(const GroupOptions& o) {
    return measures(o.method) || (!o.ledoit_wolf && o.conditioning.shrinkage == 0);
}

size_t squared(int n) { return static_cast<size_t>(n) * static_cast<size_t>(n); }

template <class T>
std::vector<T> downloaded(const cuda::DeviceBuffer<T>& from, size_t first, size_t count,
                          cudaStream_t stream) {
    std::vector<T> to(count);
    HSI_CUDA_CHECK(
        cudaMemcpyAsync(to.data(), from.data() + first, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
    HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
    return to;
}

template <class T>
void upload(const cuda::DeviceBuffer<T>& to, size_t first, const std::vector<T>& from, cudaStream_t stream) {
    HSI_CUDA_CHECK(cudaMemcpyAsync(to.data() + first, from.data(), from.size() * sizeof(T),
                                   cudaMemcpyHostToDevice, stream));
    HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
}

} // namespace

GroupScorer::GroupScorer(const GroupOptions& options, int bands, size_t groups, size_t places,
                         cudaStream_t stream)
    : m_options(options), m_bands(bands), m_targets(options.targets.spectra.size()),
      m_inverse(wants_inverse(options)), m_groups(groups), m_x(places * static_cast<size_t>(bands)),
      m_state(places), m_constant(groups * static_cast<size_t>(bands)), m_mean(m_constant.size()),
      m_matrix(groups * squared(bands)), m_own(m_mean.size()), m_weight(m_mean.size()),
      m_inverses(m_inverse ? m_matrix.size() : 0),
      m_squares(measures(options.method) || options.ledoit_wolf ? places : 0),
      m_spectra(m_targets * static_cast<size_t>(bands)), m_rows(groups * m_spectra.size()),
      m_constants(groups * m_targets), m_scores(std::max<size_t>(1, m_targets) * places) {
    std::vector<double> spectra;
    for (const auto& one : options.targets.spectra)
        spectra.insert(spectra.end(), one.begin(), one.end());
    if (!spectra.empty()) upload(m_spectra, 0, spectra, stream);
}

uint64_t GroupScorer::bytes(const GroupOptions& options, int bands, uint64_t groups, uint64_t places) {
    const auto n = static_cast<uint64_t>(bands),
               targets = static_cast<uint64_t>(options.targets.names.size());
    const uint64_t matrices = wants_inverse(options) ? 2 : 1,
                   squares = measures(options.method) || options.ledoit_wolf ? 1 : 0;
    return places * (4 * n + 1 + 8 * (squares + std::max<uint64_t>(1, targets))) +
           groups * (8 * (matrices * n * n + n * (3 + targets) + targets) + n + sizeof(gpu::DeviceGroup)) +
           8 * n * targets;
}

gpu::GroupWork GroupScorer::with_buffers(gpu::GroupWork w) const {
    w.bands = m_bands;
    w.targets = static_cast<int>(m_targets);
    w.centred = m_options.method != Method::cem;
    w.ace = m_options.method == Method::ace;
    w.measures = measures(m_options.method);
    w.ledoit_wolf = m_options.ledoit_wolf;
    w.absorption = m_options.targets.absorption;
    w.share = m_options.conditioning.shrinkage;
    w.exclude_share = m_options.exclude_share;
    w.group = m_groups.data();
    w.x = m_x.data();
    w.state = m_state.data();
    w.mean = m_mean.data();
    w.constant = m_constant.data();
    w.matrix = m_matrix.data();
    w.own = m_own.data();
    w.weight = m_weight.data();
    w.inverse = m_inverses.data();
    w.squares = m_squares.data();
    w.spectra = m_spectra.data();
    w.rows = m_rows.data();
    w.constants = m_constants.data();
    w.scores = m_scores.data();
    return w;
}

void GroupScorer::begin(const std::vector<gpu::DeviceGroup>& groups, gpu::GroupWork& work,
                        cudaStream_t stream) {
    m_groups.upload(groups.data(), groups.size(), stream);
    work.groups = static_cast<int>(groups.size());
    work.most = 0;
    for (const auto& group : groups)
        work.most = std::max<int64_t>(work.most, group.pixels);
}

void GroupScorer::score(const gpu::GroupWork& work, std::vector<gpu::DeviceGroup>& groups,
                        cudaStream_t stream) {
    gpu::launch_look(work, stream);
    const int rounds = m_options.exclude_share > 0 ? m_options.exclude_iterations : 0;
    for (int round = 0; round <= rounds; ++round) {
        gpu::launch_statistics(work, stream);
        m_groups.download(groups.data(), groups.size(), stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
        for (size_t g = 0; g < groups.size(); ++g)
            if (groups[g].fate == gpu::uncertain) settle(work, g, groups[g], stream);
        gpu::launch_group_scores(work, stream);
        if (round < rounds) gpu::launch_exclusion(work, stream);
    }
}

/// Decides about a matrix that may be singular, as the CPU's code does.
void GroupScorer::settle(const gpu::GroupWork& work, size_t g, gpu::DeviceGroup& group, cudaStream_t stream) {
    auto conditioning = m_options.conditioning;
    conditioning.by_bands = true;
    conditioning.tell_eigenvalues = false;
    conditioning.shrinkage = group.share;
    try {
        const auto detector =
            make_detector(m_options.method, m_options.targets, moments_of(g, group, stream), conditioning);
        take_parts(g, detector, stream);
        group.fate = gpu::going;
        group.regularised = detector.ridge > 0;
    } catch (const TargetIsMean&) {
        group.fate = gpu::target_is_mean;
    }
    HSI_CUDA_CHECK(cudaMemcpyAsync(work.group + g, &group, sizeof group, cudaMemcpyHostToDevice, stream));
    HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
}

/// Returns the statistics from the sums of products above the diagonal. For cem, they are computed as if the
/// mean were 0.
stream::SceneStatistics GroupScorer::moments_of(size_t g, const gpu::DeviceGroup& group,
                                                cudaStream_t stream) const {
    const auto n = static_cast<size_t>(m_bands);
    stream::SceneStatistics moments;
    moments.bands = m_bands;
    moments.valid_pixels = group.counted;
    moments.mean = downloaded(m_mean, g * n, n, stream);
    moments.covariance = downloaded(m_matrix, g * n * n, n * n, stream);
    const auto own = downloaded(m_own, g * n, n, stream);
    const auto constant = downloaded(m_constant, g * n, n, stream);
    const double count = group.counted;
    for (size_t a = 0; a < n; ++a) {
        if (constant[a] != 0) moments.constant.push_back(static_cast<int>(a));
        moments.covariance[a * n + a] = own[a] / count;
        for (size_t b = a + 1; b < n; ++b)
            moments.covariance[b * n + a] = moments.covariance[a * n + b] /= count;
    }
    return moments;
}

/// Copies the parts of a detector to the device, with zeros for the bands that the detector leaves out.
void GroupScorer::take_parts(size_t g, const Detector& d, cudaStream_t stream) {
    const auto n = static_cast<size_t>(m_bands);
    const size_t used = d.used.size();
    std::vector<double> rows(m_targets * n), inverse(m_inverse ? n * n : 0);
    for (size_t a = 0; a < used; ++a) {
        const auto row = static_cast<size_t>(d.used[a]);
        for (size_t t = 0; t < m_targets; ++t)
            rows[t * n + row] = d.rows[t * used + a];
        for (size_t b = 0; b <= a && !d.factor.empty(); ++b)
            inverse[row * n + static_cast<size_t>(d.used[b])] = d.factor[a * used + b];
    }
    if (m_targets > 0) {
        upload(m_rows, g * rows.size(), rows, stream);
        upload(m_constants, g * m_targets, d.constants, stream);
    }
    if (m_inverse) upload(m_inverses, g * n * n, inverse, stream);
}

GroupRecord GroupScorer::record_of(const gpu::DeviceGroup& group) {
    GroupRecord record;
    record.state = group.fate == gpu::going            ? GroupState::scored
                   : group.fate == gpu::few_pixels     ? GroupState::few_pixels
                   : group.fate == gpu::target_is_mean ? GroupState::target_is_mean
                                                       : GroupState::no_variance;
    record.regularised = group.regularised != 0;
    record.pixels = group.background;
    record.excluded = group.excluded;
    if (group.fate != gpu::few_pixels && group.fate != gpu::no_variance) record.shrinkage = group.share;
    return record;
}

} // namespace hsi::detect
