"""What ``groundspeed new`` writes: skeletons that load and run, and fail their own check until somebody fills them in.

A line that is still to be written is marked in the skeleton itself (``marks``), so that the check can point at it.
"""
