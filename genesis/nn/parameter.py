"""Tensors that belong to a module; they live in the core, because files hold them, too."""

from __future__ import annotations

from genesis.core.graph.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter"]
