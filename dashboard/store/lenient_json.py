"""JSON as asv writes it: with the literals NaN, Infinity and -Infinity, which most parsers refuse."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson


def loads(payload: bytes) -> Any:
    """Parse strictly, and once more with the standard library's parser when that fails: it knows the three literals.

    Strings are never touched, so a parameter named "NaN" stays a string. Raises ValueError with the place of the
    fault, for a file cut short as well.
    """
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        pass
    try:
        document = json.loads(payload)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _SURROGATE.search(payload):
        json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair is no text: UnicodeEncodeError
    return document


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
