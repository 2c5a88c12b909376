// SPDX-License-Identifier: MIT
// A cube without bands. It gives tiles to operations whose pixels are elsewhere (in device
// memory).
#pragma once

#include "stream/cube_source.h"

#include <memory>

namespace hsi::stream {

class EmptySource final : public CubeSource {
  public:
    explicit EmptySource(const CubeShape& scene) : m_shape{scene.samples, scene.lines, 0} {}
    CubeShape shape() const override { return m_shape; }
    BlockLayout layout() const override { return {}; }
    std::unique_ptr<CubeReader> open_reader() const override { return std::make_unique<Reader>(); }

  private:
    struct Reader final : CubeReader {
        void read(const Rect&, const CubeView<float>&) override {}
    };
    const CubeShape m_shape;
};

} // namespace hsi::stream
