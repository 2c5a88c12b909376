# SPDX-License-Identifier: MIT
# The tools in a container, beside GDAL's own, whose plugin folder holds the suite's:
#
#   docker build -t gdal-hsi .                        Debian 13, without CUDA
#   docker build --target cuda -t gdal-hsi:cuda .     Ubuntu 24.04 with the CUDA Toolkit, for docker run --gpus all
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" gdal-hsi gdal_hsi_spp scene.dat spp.tif
#
# One stage makes Debian packages, another installs them, so that no compiler is left in the image.
ARG DEBIAN_IMAGE=debian:trixie-slim
ARG CUDA_DEVELOPMENT_IMAGE=nvidia/cuda:13.0.1-devel-ubuntu24.04
ARG CUDA_RUNTIME_IMAGE=nvidia/cuda:13.0.1-runtime-ubuntu24.04

FROM ${CUDA_DEVELOPMENT_IMAGE} AS build-cuda
# Machine code for the generations of GPUs that the packages are for; one of them (90) is compiled in a fraction of the time.
ARG HSI_CUDA_ARCHITECTURES="75-real;80-real;86-real;89-real;90"
WORKDIR /usr/src/gdal-hsi
COPY scripts scripts
RUN scripts/packages build package
COPY . .
RUN scripts/package --output /packages

FROM ${CUDA_RUNTIME_IMAGE} AS cuda
RUN --mount=type=bind,from=build-cuda,source=/packages,target=/packages \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gdal-bin \
        /packages/gdal-hsi_*.deb /packages/gdal-hsi-cuda_*.deb && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /data

FROM ${DEBIAN_IMAGE} AS build-cpu
WORKDIR /usr/src/gdal-hsi
COPY scripts scripts
RUN scripts/packages build package
COPY . .
RUN scripts/package --cpu-only --output /packages

# The last stage is what is built where no target is named.
FROM ${DEBIAN_IMAGE} AS cpu
RUN --mount=type=bind,from=build-cpu,source=/packages,target=/packages \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gdal-bin /packages/gdal-hsi_*.deb && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /data
