#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Markov random field of gdal_hsi_sahic as it is usually written with PyTorch: the reference implementation for
sahic_cuda_bench.

    sahic_peer.py [REPEAT]

Algorithm 1 of paper 003 with its periodic border, (H'H + I)^-1 by rfft2, all classes in one tensor, everything on the
GPU, without copies in the time. Medians of CUDA events of 200 iterations, in single and in double precision.
"""
import statistics
import sys

import torch


def field(p, weight, fixed, lam, mu, iterations):
    """p: [class, line, sample]; weight: [line, sample]; fixed: [line, sample], -1 or the class."""
    classes, lines, samples = p.shape
    y = torch.arange(lines, device=p.device, dtype=torch.float64)
    x = torch.arange(samples // 2 + 1, device=p.device, dtype=torch.float64)
    symbol = 5 - 2 * torch.cos(2 * torch.pi * y / lines)[:, None] - 2 * torch.cos(2 * torch.pi * x / samples)[None, :]
    inverse = (1 / symbol).to(p.dtype)
    given = (fixed >= 0)[None]
    one_hot = torch.nn.functional.one_hot(fixed.clamp(min=0), classes).permute(2, 0, 1).to(p.dtype)
    limit = (lam / mu * weight)[None]
    v1, v2, v3, v4 = p.clone(), p.clone(), p.clone(), p.clone()
    v5h, v5v = torch.zeros_like(p), torch.zeros_like(p)
    d1, d2, d3, d4, d5h, d5v = (torch.zeros_like(p) for _ in range(6))
    for _ in range(iterations):
        q = (v1 + d1 + v2 + d2 + v3 + d3 + v4 + d4) / 4
        q = torch.where(given, one_hot, q)
        v1 = (p + mu * (q - d1)) / (1 + mu)
        v2 = (q - d2).clamp(min=0)
        v3 = q - d3
        v3 = v3 + (1 - v3.sum(0, keepdim=True)) / classes
        h, v = v5h + d5h, v5v + d5v
        right = q - d4 + torch.roll(h, 1, 2) - h + torch.roll(v, 1, 1) - v
        v4 = torch.fft.irfft2(torch.fft.rfft2(right) * inverse, s=(lines, samples))
        h, v = torch.roll(v4, -1, 2) - v4, torch.roll(v4, -1, 1) - v4
        th, tv = h - d5h, v - d5v
        norm = torch.sqrt(th * th + tv * tv)
        factor = (norm - limit).clamp(min=0) / norm.clamp(min=1e-30)
        v5h, v5v = factor * th, factor * tv
        d1, d2, d3, d4 = d1 - (q - v1), d2 - (q - v2), d3 - (q - v3), d4 - (q - v4)
        d5h, d5v = d5h - (h - v5h), d5v - (v - v5v)
    return q


def main():
    repeat = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(torch.cuda.get_device_name(0), "PyTorch", torch.__version__)
    for name, lines, samples, classes, lam in (("Pavia University", 610, 340, 9, 1.0), ("Indian Pines", 145, 145, 16, 2.0)):
        for dtype in (torch.float32, torch.float64):
            torch.manual_seed(1)
            p = torch.softmax(2 * torch.randn(classes, lines, samples, device="cuda", dtype=dtype), 0)
            weight = 0.3 + 0.6 * torch.rand(lines, samples, device="cuda", dtype=dtype)
            fixed = torch.full((lines, samples), -1, device="cuda")
            fixed.view(-1)[:: lines * samples // 360] = 1
            times = []
            for i in range(repeat + 2):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                field(p, weight, fixed, lam, 0.05, 200)
                end.record()
                end.synchronize()
                if i >= 2:
                    times.append(begin.elapsed_time(end))
            print(f"{name}, {lines}x{samples}, {classes} classes, {str(dtype)[6:]}: {statistics.median(times):.1f} ms")


main()
