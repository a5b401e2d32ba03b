"""Losses. Each is a composition; ``reduction`` is "mean", "sum" or "none"."""
