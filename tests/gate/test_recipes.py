"""The CI recipes: their commands exist, their actions are pinned, and nothing that a stranger wrote reaches a shell."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from groundspeed.gate import gate_command

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("perf-*.yml"))
RECIPES = [*WORKFLOWS, ROOT / ".gitlab/perf-gate.yml"]


def test_the_recipes_are_there():
    assert [path.name for path in RECIPES] == [
        "perf-gate-comment.yml",
        "perf-gate.yml",
        "perf-nightly.yml",
        "perf-gate.yml",
    ]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_gate_command_parses(path):
    text = re.sub(r"\s*\\\n\s*", " ", path.read_text())
    text = re.sub(r">-\n((?:\s{6}.+\n)+)", lambda match: " ".join(match[1].split()) + "\n", text)
    commands = re.findall(r"-m groundspeed gate (.+)", text)
    assert commands
    for command in commands:
        parser = argparse.ArgumentParser(exit_on_error=False)
        gate_command.add_arguments(parser)
        parser.parse_args(shlex.split(re.split(r"\s(?:>|\|\|)\s", command)[0]))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_rights_are_named(path):
    text = path.read_text()
    uses = re.findall(r"uses: (\S+)(.*)", text)
    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action) and re.match(r" # v\d", comment)
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_expression_stands_in_a_script(path):
    """A branch name is text of a stranger's choosing: it may come as an environment variable only."""
    scripts = re.findall(r"run: (?:\|\n((?:[ ]{10,}.*\n|\n)+)|(.*)\n)", path.read_text())
    assert scripts
    for block, line in scripts:
        assert "${{" not in block + line


def test_a_job_with_rights_runs_nothing_of_the_pull_request():
    comment = (ROOT / ".github/workflows/perf-gate-comment.yml").read_text()
    assert "pull-requests: write" in comment
    assert "ref:" not in comment and "head_sha }}" not in comment.partition("Comment")[0]
    gate = (ROOT / ".github/workflows/perf-gate.yml").read_text()
    assert "write" not in re.sub(r"#.*", "", gate) and "pull_request_target" not in gate


def test_the_required_job_is_never_skipped():
    gate = (ROOT / ".github/workflows/perf-gate.yml").read_text()
    required = gate.partition("  perf-gate:\n    needs")[2]
    assert "if: always()" in required and '[ "$RESULT" = success ]' in required
