"""What every test may rely on: GPU tests skipped where there is none, browser tests where there is no Chromium."""

from __future__ import annotations

import functools
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator

import pytest

# Also where the package is not installed; the name is that of its entry point, so it is loaded once.
pytest_plugins = ["groundspeed.pytest_plugin", "tests.browser"]

# A shell that begins the tests by ``&`` has them ignore Ctrl-C, which every command they start would inherit; those
# that are interrupted by a test would go on to their end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def why_no_gpu() -> str | None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "needs an NVIDIA GPU: nvidia-smi is not installed"
    listed = subprocess.run([tool, "-L"], capture_output=True, text=True)
    return None if "GPU 0" in listed.stdout else f"needs an NVIDIA GPU: nvidia-smi says {listed.stdout.strip()[:80]!r}"


@functools.cache
def why_no_browser() -> str | None:
    from tests.browser import NAMES, chromium  # later than pytest loads it as a plugin, and rewrites its asserts

    return None if chromium() else "needs Chromium: none of " + ", ".join(NAMES) + " is installed"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    spread = config.pluginmanager.hasplugin("xdist")
    for item in items:
        if spread:
            item.add_marker(pytest.mark.xdist_group(_together(item)))
        for mark, why in (("gpu", why_no_gpu), ("browser", why_no_browser)):
            if item.get_closest_marker(mark) and (reason := why()):
                item.add_marker(pytest.mark.skip(reason=reason))


def _together(item: pytest.Item) -> str:
    """What must run in one process: a file's tests, and all of the fleet's, as one Ray cluster would find another."""
    file = item.nodeid.partition("::")[0]
    return "fleet" if file.startswith("tests/fleet/") else file


@pytest.fixture(autouse=True)
def _tools_of_no_other_test() -> Iterator[None]:
    """What the harness takes for its own tools in a test may be that test's fakes, and must be nothing to the next."""
    name = "groundspeed.measure.referee.tools"
    before = list(sys.modules[name]._watched) if name in sys.modules else None
    yield
    if before is not None:
        sys.modules[name]._watched[:] = before
    elif name in sys.modules:
        sys.modules[name].watch()


@pytest.fixture(scope="session", autouse=True)
def _no_worker_of_xdist() -> Iterator[None]:
    """A pytest that a test starts is not spread; pytest-benchmark would take it to be, and time nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
            patch.delenv(name, raising=False)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """With ``-m gpu``, let no package that GPU tests do without stop them: a GPU machine may be offline and bare.

    Everywhere else a package that is not there is an error: its tests must not vanish.
    """
    report = yield
    if report.failed and collector.config.option.markexpr == "gpu":
        missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", str(report.longrepr))
        if missing and missing[1] not in ("groundspeed", "tests", "impls"):
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"Skipped: needs the package {missing[1]}")
    return report
