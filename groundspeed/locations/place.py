"""What ``--results`` and ``groundspeed store push`` take: a folder, a branch, or a URL."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

FORMS = "a folder, git:BRANCH, git:REPOSITORY#BRANCH or a URL such as s3://BUCKET/PREFIX"
READ_HELP = "where results are: a folder, git:BRANCH, s3://BUCKET/PREFIX (default: results/)"
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*(?:::[a-zA-Z0-9+.:-]*)?://")
_SLIP = re.compile(r"(s3|gs|gcs|az|abfs|https?|file):/*([^/].*)?$")  # a folder of such a name is written ./s3:
_GIT = "git:"
_USER = re.compile(r"://[^/@\s]+@")
_SECRET = re.compile(r"(?i)\b((?:sig|signature|token|secret|password|credential|[a-z_]*key)=)[^&\s]+")


@dataclass(frozen=True)
class Branch:
    """A branch that holds nothing but results. ``repository`` is a path or URL; "" is the checkout one is in."""

    branch: str
    repository: str = ""

    def __str__(self) -> str:
        return redacted(f"{_GIT}{self.repository}#{self.branch}" if self.repository else f"{_GIT}{self.branch}")


@dataclass(frozen=True)
class Bucket:
    """A prefix that fsspec reaches."""

    url: str

    def __str__(self) -> str:
        return redacted(self.url)


Location = Branch | Bucket


def place(text: str) -> Path | Location:
    """A folder or a location, as an argument's type. Raises argparse.ArgumentTypeError for what is neither."""
    if not text:  # Path("") would be the folder one is in
        raise argparse.ArgumentTypeError(f"it is empty: expected {FORMS}")
    if text.startswith(_GIT):
        repository, _, branch = text.removeprefix(_GIT).rpartition("#")
        if not branch:
            raise argparse.ArgumentTypeError(f"{redacted(text)} names no branch; expected {FORMS}")
        return Branch(branch, repository)
    if not _URL.match(text):
        if slip := _SLIP.match(text):
            meant = f"{slip[1]}://{'/' if slip[1] == 'file' else ''}{slip[2] or ''}"
            raise argparse.ArgumentTypeError(f"a URL that lacks slashes; did you mean {redacted(meant)}?")
        return Path(text)
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise argparse.ArgumentTypeError(
            f"{redacted(text)}: credentials do not belong into a URL, where other users see them; "
            "set the variables of the environment that the store reads, such as AWS_ACCESS_KEY_ID"
        )
    return Bucket(text.rstrip("/"))


def folder(text: str) -> Path:
    """A folder, as the type of an argument of what writes results. Raises argparse.ArgumentTypeError for a location."""
    found = place(text)
    if isinstance(found, Path):
        return found
    raise argparse.ArgumentTypeError(
        f"results are written into a folder, and then put there; type: groundspeed store push {found}"
    )


def redacted(text: str) -> str:
    """A line that may be shown: without what could be a password, a token or a key."""
    return _SECRET.sub(r"\1***", _USER.sub("://***@", text))
