"""docs/fleet.md says what there is: its commands parse, its recipe is pinned, its outcomes are the ledger's."""

from __future__ import annotations

import argparse
import re
import shlex

from groundspeed.commands import costs, merge, run
from groundspeed.fleet.simulation.page import PAGE
from groundspeed.gate import gate_command

TEXT = PAGE.read_text(encoding="utf-8")
MODULES = {"run": run, "merge": merge, "gate": gate_command, "costs": costs}


def test_every_command_parses():
    commands = re.findall(r"^(?:groundspeed|.*-m groundspeed) (run|merge|gate|costs)\b([^\n`']*)", TEXT, re.MULTILINE)
    assert {name for name, _ in commands} == set(MODULES) and len(commands) >= 8
    for name, rest in commands:
        parser = argparse.ArgumentParser(exit_on_error=False)
        MODULES[name].add_arguments(parser)
        words = shlex.split(re.split(r"\s{2,}", rest)[0].replace('"$SHARD"', "1/3"))
        parser.parse_args(words)


def test_the_recipe_pins_its_actions_and_has_no_expression_in_a_script():
    recipe = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[1]
    uses = re.findall(r"uses: (\S+)(.*)", recipe)
    assert len(uses) == 4
    for action, comment in uses:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action) and re.match(r" # v\d", comment)
    assert all("${{" not in line for line in re.findall(r"run: .*", recipe))
