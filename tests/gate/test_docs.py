"""docs/gating.md says what the code does: metrics, thresholds, keys, verdicts, fields."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from groundspeed.analysis.rule import Verdict
from groundspeed.gate import soak_record
from groundspeed.gate.config import Config, Override, read_config
from groundspeed.gate.metrics import METRICS
from groundspeed.gate.report import Finding, OperatorVerdict
from groundspeed.gate.trials import summary

TEXT = (Path(__file__).parents[2] / "docs/gating.md").read_text()


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_metric_is_there_with_its_thresholds(metric):
    (row,) = re.findall(rf"^\| `{metric.name}` \| (.+?) \|", TEXT, re.MULTILINE)
    stated = [float(number) / 100 for number in re.findall(r"(\d+) %", row)]
    assert stated == pytest.approx(list(metric.thresholds))


def test_the_example_policy_is_the_default_one_and_names_every_key():
    example = re.search(r"```toml\n(\[tool\.groundspeed\.gate\].*?)```", TEXT, re.DOTALL)[1]
    config = read_config(example)
    without = {"overrides", "thresholds", "tier"}
    for field in fields(Config):
        if field.name not in without:
            assert getattr(config, field.name) == getattr(Config(), field.name), field.name
            assert re.search(rf"^{field.name.removesuffix('_seconds')} = ", example, re.MULTILINE), field.name
    assert all(re.search(rf"^{field.name} = ", example, re.MULTILINE) for field in fields(Override))


def test_every_verdict_and_field_is_named():
    assert all(verdict in section("Verdicts") for verdict in Verdict)
    named = set(re.findall(r"`(\w+)`", section("Reports")))
    for struct in (Finding, OperatorVerdict):
        assert {field.name for field in msgspec.structs.fields(struct)} <= named


@pytest.mark.parametrize("module", [soak_record, summary])
def test_the_tallies_can_be_written(module):
    assert TEXT.count(module.BEGIN) == TEXT.count(module.END) == 1
