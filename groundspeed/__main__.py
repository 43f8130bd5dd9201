"""``python -m groundspeed`` is the command, for interpreters into which nothing was installed."""

from __future__ import annotations

import sys

from groundspeed.cli import main

sys.exit(main())
