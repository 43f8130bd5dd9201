"""Imports run one way (DESIGN §2), there is no circle, and what must start fast never imports torch."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT, imports, modules, within

PROJECT = modules("groundspeed", "dashboard", "benchmarks")
KNOWN = set(PROJECT)
GRAPH = {name: imports(name, path) for name, path in PROJECT.items()}

FOUNDATION = (
    "groundspeed.errors",
    "groundspeed.operator",
    "groundspeed.records",
    "groundspeed.digest",
    "groundspeed.git",
    "groundspeed.revisions",
    "groundspeed.kernel_names",
    "groundspeed.whole_files",
    "groundspeed.caches",
    "groundspeed.cores",
    "groundspeed.installed",
    "groundspeed.run_ids",
    "groundspeed.interrupts",
)
TREE = ("groundspeed.tree", "groundspeed.selection", "groundspeed.project", "groundspeed.guests")
HOST = ("groundspeed.machine", "groundspeed.nvml", "groundspeed.build")
MEASURE = ("groundspeed.backends", "groundspeed.measure", "groundspeed.session")

# What each part may import of the project besides itself. The longest matching name decides.
ALLOWED: dict[str, tuple[str, ...]] = {
    "groundspeed.errors": (),
    "groundspeed.operator": ("groundspeed.errors",),
    "groundspeed.records": ("groundspeed.whole_files",),
    "groundspeed.whole_files": (),
    "groundspeed.caches": (),
    "groundspeed.cores": (),
    "groundspeed.installed": (),
    "groundspeed.run_ids": (),
    "groundspeed.interrupts": (),
    "groundspeed.digest": FOUNDATION,
    "groundspeed.git": (),
    "groundspeed.revisions": ("groundspeed.git", "groundspeed.errors"),
    "groundspeed.kernel_names": (),
    "groundspeed.writable": ("groundspeed.errors",),
    "groundspeed.tree": (*FOUNDATION,),
    "groundspeed.selection": (*FOUNDATION, "groundspeed.tree"),
    "groundspeed.project": (*FOUNDATION, "groundspeed.tree", "groundspeed.guests"),
    "groundspeed.guests": (*FOUNDATION, "groundspeed.tree"),
    "groundspeed.nvml": FOUNDATION,
    "groundspeed.machine": ("groundspeed.nvml", "groundspeed.build", *FOUNDATION),
    "groundspeed.build": (*FOUNDATION, "groundspeed.tree"),
    "groundspeed.analysis": ("groundspeed.records", "groundspeed.whole_files", "groundspeed.interrupts"),
    "groundspeed.scaffold": (),
    "groundspeed.locations": FOUNDATION,
    "groundspeed.report": ("groundspeed.analysis", "groundspeed.records", "groundspeed.errors"),
    "groundspeed.backends": (*FOUNDATION, *TREE, *HOST),
    # gate.paired holds no more than what the gate asks of the engine; the engine answers it
    "groundspeed.measure": (
        *FOUNDATION,
        *TREE,
        *HOST,
        "groundspeed.backends",
        "groundspeed.analysis",
        "groundspeed.gate.paired",
    ),
    "groundspeed.session": (*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.analysis"),
    "groundspeed.compiler_caches": FOUNDATION,
    "groundspeed.rehearsal": (*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.compiler_caches"),
    "groundspeed.checks": (*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.analysis"),
    "groundspeed.sanitizer": (*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.report"),
    "groundspeed.profiling": (*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.analysis", "groundspeed.report"),
    "groundspeed.calibrate": (
        *FOUNDATION,
        *TREE,
        *HOST,
        *MEASURE,
        "groundspeed.analysis",
        "groundspeed.report",
        "groundspeed.gate.floors",
    ),
    "groundspeed.bridge": (*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.analysis"),
    "groundspeed.gate": (
        *FOUNDATION,
        *TREE,
        *HOST,
        *MEASURE,
        "groundspeed.analysis",
        "groundspeed.locations",
        "groundspeed.report",
    ),
    # the command may spread what it measures over a fleet, whose stations measure with the gate's own engine
    "groundspeed.gate.gate_command": (
        *(*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.analysis", "groundspeed.report", "groundspeed.gate"),
        "groundspeed.fleet",
    ),
    "groundspeed.gate.on_fleet": (*FOUNDATION, *TREE, "groundspeed.gate", "groundspeed.fleet"),
    "groundspeed.fleet": (*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.report", "groundspeed.gate"),
    "groundspeed.importing": (*FOUNDATION, *HOST, "groundspeed.analysis"),
    "groundspeed.bisect": (*FOUNDATION, *TREE, "groundspeed.analysis", "groundspeed.report", "groundspeed.gate"),
    "groundspeed.asv_inventory": (*FOUNDATION, *TREE),
    "groundspeed.asv_sweep": (
        *(*FOUNDATION, *TREE, *HOST, *MEASURE, "groundspeed.rehearsal", "groundspeed.compiler_caches"),
        "groundspeed.asv_inventory",
    ),
    "groundspeed.asv_replay": (
        *FOUNDATION,
        *TREE,
        "groundspeed.asv_inventory",
        "groundspeed.asv_sweep",
        "groundspeed.asv_answer",
    ),
    "groundspeed.asv_suite": (
        *FOUNDATION,
        *TREE,
        "groundspeed.asv_inventory",
        "groundspeed.asv_sweep",
        "groundspeed.asv_replay",
        "groundspeed.asv_answer",
    ),
    "dashboard": (
        "groundspeed.records",
        "groundspeed.locations",
        "groundspeed.analysis",
        "groundspeed.errors",
        "groundspeed.project",
        "groundspeed.revisions",
        "groundspeed.writable",
        "groundspeed.whole_files",
    ),
    "benchmarks": ("groundspeed.asv_suite", "groundspeed.asv_inventory", "groundspeed.asv_sweep"),
}
# asv's own plugins, the pytest plugin and the command line stand on top: they may import all, and none imports them.
ON_TOP = ("groundspeed.cli", "groundspeed.commands", "groundspeed.__main__", "groundspeed.pytest_plugin")

NO_TORCH = (
    *("groundspeed.analysis", "groundspeed.report", "groundspeed.commands", "groundspeed.gate", "groundspeed.bisect"),
    "groundspeed.fleet",
    "dashboard",
)
NO_TORCH_MODULES = (
    "groundspeed.cli",
    "groundspeed.records",
    "groundspeed.tree",
    "groundspeed.selection",
    "groundspeed.machine",
    "groundspeed.build",
    "groundspeed.asv_suite",
    "groundspeed.pytest_plugin",
    "groundspeed.profiling.compose",
    "groundspeed.calibrate.run",
    "groundspeed.calibrate.report",
    "groundspeed.sanitizer.report",
)


def ours(target: str) -> str | None:
    """The project's module that an import names, or None for the standard library and packages."""
    return target if target in KNOWN else None


def rule(module: str) -> str | None:
    return max((part for part in ALLOWED if within(module, part)), key=len, default=None)


@pytest.mark.parametrize("module", sorted(m for m in KNOWN if rule(m)))
def test_imports_run_one_way(module):
    part = rule(module)
    allowed = (part, *ALLOWED[part])
    wrong = [
        f"{PROJECT[module].relative_to(ROOT)}:{one.line} imports {one.target}"
        for one in GRAPH[module]
        if ours(one.target) and not _permitted(one.target, allowed)
    ]
    assert not wrong, f"{part} may import only {', '.join(allowed)}"


def _permitted(target: str, allowed: tuple[str, ...]) -> bool:
    # "groundspeed" alone is the version, not everything in the package
    return target == "groundspeed" or within(target, *allowed)


def test_nothing_imports_what_stands_on_top():
    wrong = [
        f"{module}:{one.line} imports {one.target}"
        for module, found in GRAPH.items()
        if not within(module, *ON_TOP)
        for one in found
        if ours(one.target) and within(one.target, *ON_TOP)
    ]
    assert not wrong


def test_every_module_has_a_rule():
    free = [m for m in KNOWN if rule(m) is None and not within(m, *ON_TOP) and m != "groundspeed"]
    assert not [m for m in free if not m.startswith("groundspeed.asv_")], "name it in ALLOWED or in ON_TOP"


def test_there_is_no_circle():
    """Also none that a late import hides: two modules that need each other are one module, or three."""
    state: dict[str, str] = {}
    circles: list[str] = []

    def visit(module: str, path: list[str]) -> None:
        state[module] = "open"
        for target in {one.target for one in GRAPH[module] if ours(one.target)} - {module}:
            if state.get(target) == "open":
                circles.append(" → ".join([*path[path.index(target) :], target]))
            elif target not in state:
                visit(target, [*path, target])
        state[module] = "done"

    for module in GRAPH:
        if module not in state:
            visit(module, [module])
    assert not circles


@pytest.mark.parametrize("package", [*NO_TORCH, *NO_TORCH_MODULES])
def test_never_imports_torch(package):
    """Not at import, whatever it imports in turn; each part in a fresh process."""
    names = [name for name in KNOWN if within(name, package)] if package in NO_TORCH else [package]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print([m for m in ('torch', 'triton', 'cupy', 'jax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_analysis_imports_no_dashboard():
    wrong = {
        m: [one.target for one in GRAPH[m] if one.target.split(".")[0] in ("dash", "plotly", "flask", "dashboard")]
        for m in KNOWN
        if within(m, "groundspeed.analysis", "groundspeed.records", "groundspeed.report")
    }
    assert not {m: found for m, found in wrong.items() if found}


def test_the_command_line_is_cheap_to_import():
    program = "import sys; before = set(sys.modules); import groundspeed.cli; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    heavy = {"torch", "numpy", "msgspec", "asv", "asv_runner", "dash", "polars", "asyncio"} & set(done.stdout.split())
    assert not heavy


def test_listing_takes_a_fraction_of_a_second():
    """At most 0.3 s of processor time, the fastest of five: other processes on the machine must not decide."""
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-m", "groundspeed", "list"], cwd=ROOT, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0, done.stderr
    assert min(seconds) <= 0.3, seconds
