"""Which questions asv asks of every operator: one module a question, one benchmark an operator in it.

``device_time`` and ``call_time`` in seconds, ``peak_memory`` in bytes, ``error`` without a unit, ``first_call`` in
seconds. How they are measured is groundspeed's matter; how asv is served is told in docs/asv.md.
"""

import sys
from pathlib import Path

# asv imports the suite by its path, and the project's folder is not on sys.path: an installed groundspeed, if there
# were one, would bring its own harness.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from asv_runner import benchmarks as _asv

from groundspeed import asv_suite as _suite

# First, or asv's own types would claim operators named time_… or mem_….
_asv.benchmark_types.insert(0, _suite.warm_type(("cold", "hot")))
