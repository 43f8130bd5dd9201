"""What is asked of a nursery and what it answers: one JSON object a packet."""

from __future__ import annotations

import msgspec

MOST_BYTES = 1 << 12


class Fork(msgspec.Struct, frozen=True, tag=True):
    """Fork a worker. Beside it come three descriptors: where its job is read from, its events go to, and its log."""


class Collect(msgspec.Struct, frozen=True, tag=True):
    """Give the exit status of a child that has ended."""

    pid: int


class Serving(msgspec.Struct, frozen=True, tag=True):
    """The imports are done. ``refusal`` says why it will not fork all the same."""

    refusal: str = ""


class Forked(msgspec.Struct, frozen=True, tag=True):
    pid: int


class Collected(msgspec.Struct, frozen=True, tag=True):
    """``status`` as subprocess has it: the exit status, or the negative number of the signal that ended it."""

    status: int


Request = Fork | Collect
Answer = Serving | Forked | Collected

_requests = msgspec.json.Decoder(Request)
_answers = msgspec.json.Decoder(Answer)


def decode_request(data: bytes) -> Request:
    return _requests.decode(data)


def decode_answer(data: bytes) -> Answer:
    return _answers.decode(data)
