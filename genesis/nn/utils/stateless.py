"""Modules as functions of their parameters, under PyTorch's old name."""

from __future__ import annotations

from genesis.func import functional_call as functional_call
