"""Trained models are not here."""
