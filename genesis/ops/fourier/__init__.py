"""Fourier transforms: `spectra` are the ops, `transforms` and `frequencies` what `genesis.fft` lists."""

from __future__ import annotations

from genesis.ops.fourier import frequencies, spectra, transforms

FUNCTIONS = transforms.FUNCTIONS | frequencies.FUNCTIONS

__all__ = ["FUNCTIONS", "frequencies", "spectra", "transforms"]
