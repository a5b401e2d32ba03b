"""Fourier transforms of signals, whole and by frames, and windows; `genesis.fft` lists the transforms."""
