"""groundspeed: benchmark GPU operators so that the numbers can be believed, kept, compared and gated on."""

__version__ = "0.1.0"
