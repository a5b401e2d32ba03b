"""Faster ways to compute what ops mean, a folder for each device; each is tested against the composition it replaces."""
