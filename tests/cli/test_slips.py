"""What a hand slips into, answered with what was meant; and what a file leaves out of the contract."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from groundspeed import nvml
from groundspeed.backends.base import prepare_of
from groundspeed.cli import main
from groundspeed.commands import durations
from groundspeed.errors import UserError
from groundspeed.locations.place import Bucket, place
from groundspeed.project import find_project, parse_targets
from groundspeed.selection import Selection
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("s3:/bucket/x", "s3://bucket/x"),
        ("s3:bucket", "s3://bucket"),
        ("gs:/b", "gs://b"),
        ("s3:", "s3://"),
        ("file:/tmp/x", "file:///tmp/x"),
    ],
)
def test_a_url_that_lacks_a_slash_is_no_folder(typed, meant):
    with pytest.raises(argparse.ArgumentTypeError, match=rf"lacks slashes; did you mean {meant}\?$"):
        place(typed)


def test_what_may_be_a_password_is_not_said_back():
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        place("https:/me:secret@host/x")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["run", "--shard", ""], "what follows --shard is empty"),
        (["run", "--shard="], "--shard= is empty"),
        (["store", "push", ""], "what follows push is empty"),
        (["check", "--dtype", "", "relu"], "what follows --dtype is empty"),
        (["history", ""], "what follows history is empty"),
        ([""], "what follows groundspeed is empty"),
    ],
)
def test_a_variable_of_ci_that_is_not_set_is_not_as_if_nothing_had_been_typed(typed, told, capsys):
    """An empty shard measured everything, and an empty place was the folder one is in."""
    assert main(typed) == 2
    assert told in capsys.readouterr().err


def test_an_empty_place_is_not_the_folder_one_is_in():
    with pytest.raises(argparse.ArgumentTypeError, match="is empty"):
        place("")


@pytest.mark.parametrize("folder", ["results", "./s3:", "/tmp/s3:/x", "s3", "s3/x", "C:x"])
def test_a_folder_stays_a_folder(folder):
    assert place(folder) == Path(folder)
    assert place("s3://bucket/x") == Bucket("s3://bucket/x")


def test_a_list_with_commas_is_told_from_a_wrong_name():
    tree = find_project(ROOT).tree()
    with pytest.raises(UserError, match="one --only each: --only relu --only row_sum"):
        parse_targets(["relu,row_sum"], tree)


def test_libraries_that_run_on_a_cpu_count_there_when_they_are_installed(monkeypatch, tmp_path):
    tree = find_project(ROOT).tree()
    run = SimpleNamespace(
        tree=tree, selection=Selection(("relu",), tier="small"), device="cpu", results=tmp_path, machine="a-cpu"
    )
    absent = {"jax"}

    def library(name):
        devices = {"cuda", "cpu"} if name == "jax" else {"cuda"}
        return SimpleNamespace(absent=lambda device: "absent" if name in absent else None, devices=devices)

    names = ("jax", "tvm", "numba", "warp", "cutile", "cutlass", "flaggems")
    monkeypatch.setattr(durations, "LIBRARIES", {name: library(name) for name in names})
    without, seconds = durations.able_to_time(run, "relu"), durations.expected(run, {"relu": run})
    absent.clear()
    assert set(durations.able_to_time(run, "relu")) - set(without) == {"jax_jit"}
    assert {name.partition("_")[0] for name in without} == {"torch"}
    assert durations.expected(run, {"relu": run}) == seconds  # or else shards would be cut by what a runner lacks


def test_a_path_with_a_folder_that_may_not_be_searched_has_no_nvidia_smi(monkeypatch):
    def refused(*of, **how):
        raise PermissionError(13, "Permission denied", "nvidia-smi")

    monkeypatch.setattr(subprocess, "run", refused)
    assert nvml._from_nvidia_smi() == ()


def module(**members):
    return SimpleNamespace(__file__="/x/impls/relu/torch_mine.py", __name__="mine", **members)


def test_a_file_without_prepare_is_told_what_it_is_for():
    with pytest.raises(TypeError, match=r"relu/torch_mine\.py has no function prepare; it gets the operator's inputs"):
        prepare_of(module())({"x": 1})


def test_prepare_with_other_names_is_told_the_operators():
    with pytest.raises(TypeError, match=r"relu/torch_mine\.py: prepare\(a\) does not take \(x\): "):
        prepare_of(module(prepare=lambda a: lambda: a))({"x": 1})


def test_prepare_that_returns_nothing_is_told_what_to_return():
    with pytest.raises(TypeError, match=r"relu/torch_mine\.py: prepare returned NoneType; expected run, a function"):
        prepare_of(module(prepare=lambda x: None))({"x": 1})


def test_what_prepare_raises_is_its_own():
    def prepare(x):
        raise TypeError("of the implementation's own")

    with pytest.raises(TypeError, match=r"^of the implementation's own$"):
        prepare_of(module(prepare=prepare))({"x": 1})
    assert prepare_of(module(prepare=lambda x: lambda: x + 1))({"x": 1})() == 2
