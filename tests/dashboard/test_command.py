from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from dashboard import command, export_command
from groundspeed.errors import UserError


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_only_this_machine_unless_told_otherwise() -> None:
    assert parse().host == "127.0.0.1"
    assert command.exposure("127.0.0.1") == command.exposure("::1") == command.exposure("localhost") == ""
    assert "no login" in command.exposure("0.0.0.0")
    assert command.exposure("10.0.0.5")


@pytest.mark.parametrize(("text", "path"), [("/", "/"), ("", "/"), ("bench", "/bench/"), ("/a/b/", "/a/b/")])
def test_base_path(text: str, path: str) -> None:
    assert command.base_path(text) == path


@pytest.mark.parametrize("text", ["/a?b", "/a/../b", "/a b", '/"', "/a\\b"])
def test_base_path_that_is_none(text: str) -> None:
    with pytest.raises(UserError, match="--base-path"):
        command.base_path(text)


def test_no_results_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no results folder"):
        command.run(parse("--results", str(tmp_path / "absent")))


def test_a_port_that_is_taken_is_named(results: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port}"):
            command.run(parse("--results", str(results), "--port", str(port)))


def test_export_of_nothing(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    export_command.add_arguments(parser)
    with pytest.raises(UserError, match="no results could be read"):
        export_command.run(parser.parse_args([str(tmp_path / "x.html"), "--results", str(tmp_path)]))
    with pytest.raises(UserError, match="is a folder"):
        export_command.run(parser.parse_args([str(tmp_path), "--results", str(tmp_path)]))
