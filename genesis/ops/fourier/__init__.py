"""Fourier transforms; `genesis.fft` lists them."""
