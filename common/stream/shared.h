// SPDX-License-Identifier: MIT
// What a pass that the ranks of a job share (parallel/ranks.h) wants of its operation and its sinks. Without
// these every rank goes through all tiles itself, with the same result.
#pragma once

#include "stream/cube_source.h"

namespace hsi::parallel {
class Ranks;
}

namespace hsi::stream {

/// An operation, too, whose tiles may be shared among ranks.
class Divisible {
  public:
    virtual ~Divisible() = default;
    /// False for an operation that needs all tiles on every rank after all.
    virtual bool divides() const { return true; }
    /// All ranks together, after Operation::stop(): what this rank has gathered becomes the whole, the same
    /// on every rank. For an operation that gathers nothing there is nothing to do.
    virtual void exchange(parallel::Ranks&) {}
};

/// A sink whose one file the ranks write together. Where concurrent(), each writes its own tiles; else the
/// root writes what the others send.
class SharedSink : public CubeSink {};

/// A sink of which each rank has its own, which is to hold all tiles on every rank.
class GatheringSink : public CubeSink {
  public:
    /// All ranks together, after the last tile: each gives the others what was written into its own.
    virtual void gather(parallel::Ranks& ranks) = 0;
};

} // namespace hsi::stream
