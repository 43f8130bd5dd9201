"""Operators that are spread over several GPUs: a process a GPU, called in step, each judged and timed.

A worker that has such an operator forks its ranks: rank r works on GPU r, or on the CPU beside the others. It never
touches a device itself. What happens is decided in the worker (``case``) and done by all ranks at once (``desk``),
order by order, since a collective that one rank calls and another does not is one that waits for ever.
"""
