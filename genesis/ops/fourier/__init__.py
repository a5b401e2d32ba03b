"""Fourier transforms: `spectra` are the ops, `transforms` and `frequencies` what `genesis.fft` lists; `windows`
are the weights of samples.
"""

from __future__ import annotations

from genesis.ops.fourier import frequencies, spectra, transforms, windows

FUNCTIONS = transforms.FUNCTIONS | frequencies.FUNCTIONS

__all__ = ["FUNCTIONS", "frequencies", "spectra", "transforms", "windows"]
