"""Timers: one measures every implementation of a case and both sides of a comparison, never two mixed."""
