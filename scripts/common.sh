# SPDX-License-Identifier: MIT
# Functions that the scripts share. Source it after `set -eu`; it leaves the shell in the root of the repository.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\n== %s\n' "$*"; }

die() {
    printf 'ERROR: %s\n' "$1" >&2
    shift
    if [ $# -gt 0 ]; then printf '%s\n' "$@" >&2; fi
    exit 1
}

# Finds the optional CUDA compiler on PATH or in the toolkit's usual place, and prints its path.
find_nvcc() {
    if command -v nvcc; then return 0; fi
    if [ -x /usr/local/cuda/bin/nvcc ]; then
        echo /usr/local/cuda/bin/nvcc
        return 0
    fi
    return 1
}

# GoogleTests against slow references, most with one thread. Other tests run the same code in several tilings on several
# threads. Sanitizers omit these tests if time is short.
slow_references='*Reference*:*AreLibsvms:*KnownOptimum*:*EqualsTheOrderedProduct*:*WithoutATrace:*WindowAgrees*'
slow_references+=':*ConvergedPenalty:*OnBothBorders:*AreNoOtherThing:LocalRx.*ItsDefinition'

# Succeeds if the driver shows at least one GPU.
have_gpu() { command -v nvidia-smi >/dev/null && [[ $(nvidia-smi -L 2>/dev/null) == *"GPU 0"* ]]; }

# A compiler job needs about 1 GB, a job of nvcc more: on a machine with little memory, there are fewer jobs than cores.
build_jobs() {
    local cores memory
    cores=$(nproc)
    memory=$(awk '/^MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
    [ "$memory" -ge 1 ] || memory=1
    if [ "$memory" -lt "$cores" ]; then echo "$memory"; else echo "$cores"; fi
}

# configure_preset PRESET [cmake options]: configures build/PRESET for this machine. The environment variable
# HSI_CMAKE_OPTIONS holds additional cmake options.
configure_preset() {
    local preset=$1 nvcc options=()
    shift
    if command -v ccache >/dev/null; then
        options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    fi
    if nvcc=$(find_nvcc); then
        options+=("-DCMAKE_CUDA_COMPILER=$nvcc")
    fi
    # shellcheck disable=SC2086  # a list of options, meant to be split
    cmake --preset "$preset" "$@" "${options[@]}" ${HSI_CMAKE_OPTIONS:-}
}

# build_preset PRESET [cmake options] [-- targets]: configures and builds into build/PRESET.
build_preset() {
    local preset=$1 options=()
    shift
    while [ $# -gt 0 ] && [ "$1" != "--" ]; do
        options+=("$1")
        shift
    done
    if [ "${1:-}" = "--" ]; then shift; fi
    configure_preset "$preset" "${options[@]}"
    cmake --build --preset "$preset" --parallel "$(build_jobs)" ${1:+--target "$@"}
}
