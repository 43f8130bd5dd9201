"""What the harness's own kernels do, in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

MIX = """
import torch
from groundspeed.measure.timers.probes import mix

source, target = torch.arange(3 * 1000, dtype=torch.int32), torch.full((2 * 1000 + 7,), -1, dtype=torch.int32)
mix(source, target, 3, 2, 512)
total = source.view(3, 1000).sum(dim=0, dtype=torch.int32)
assert torch.equal(target[:1000], total) and torch.equal(target[1000:2000], total + 1)
assert (target[2000:] == -1).all()
"""


def test_a_mix_reads_and_writes_each_part_once_and_nothing_beyond():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", MIX], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
