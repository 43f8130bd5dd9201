"""Implementations under NVIDIA's compute-sanitizer: memory errors, races, uninitialised reads, wrong barriers."""
