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


@pytest.mark.parametrize(
    "words",
    [("--port", "99999"), ("--port", "-1"), ("--host", ""), ("--host", "no-host.invalid"), ("--host", "a" * 70 + ".b")],
)
def test_an_address_that_is_none_is_one_line(results: Path, words: tuple[str, str]) -> None:
    with pytest.raises(UserError, match=words[0]) as caught:
        command.run(parse("--results", str(results), *words))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_of_port_0_the_real_port_is_announced(
    results: Path, host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    import waitress

    inner, answered = waitress.create_server, []

    def answers(out: str) -> bool:
        address, _, port = out.split()[2].removeprefix("http://").strip("/").rpartition(":")
        with socket.create_connection((address, int(port)), timeout=5):
            return int(port) > 0

    def create(*given, **named):
        server = inner(*given, **named)
        monkeypatch.setattr(server, "run", lambda: answered.append(answers(capsys.readouterr().out)))
        return server

    monkeypatch.setattr(waitress, "create_server", create)
    assert command.run(parse("--results", str(results), "--host", host, "--port", "0")) == 0
    assert answered == [True]


def test_an_export_makes_no_folder(results: Path, tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    export_command.add_arguments(parser)
    absent = tmp_path / "absent"
    with pytest.raises(UserError, match=f"there is no folder {absent}"):
        export_command.run(parser.parse_args([str(absent / "x.html"), "--results", str(results)]))
    assert not absent.exists()
