"""What a device kernel is called, however the tool that saw it spells its demangled name."""

from __future__ import annotations

import re

_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}")
_CAST = re.compile(r"\((?:unsigned )?(?:bool|char|short|int|long|long long)\)(?=[\w-])")  # (int)4, as nvcc prints 4


def qualified_name(demangled: str) -> str:
    """``void (anonymous namespace)::relu<float>(float*)`` → ``relu``; other namespaces stay: ``at::native::fill``."""
    return _bare(demangled, keep_template=False)


def short_name(demangled: str) -> str:
    """The function's own name, without namespaces, template and parameters: ``fill``."""
    return re.split(r"::|\.", qualified_name(demangled))[-1]


def instance_name(demangled: str) -> str:
    """The function's own name with its template arguments: ``relu<float,4>``. The same from every tool.

    Spaces and casts of integers go, since tools differ in them; so does the order of ``const``.
    """
    whole = _CAST.sub("", _bare(demangled, keep_template=True))
    name, _, template = whole.partition("<")
    arguments = re.sub(r"\bconst\b|\s+", "", template)
    return re.split(r"::|\.", name)[-1] + (f"<{arguments}" if template else "")


def _bare(demangled: str, keep_template: bool) -> str:
    """Up to the parameter list, without ``void`` and without anonymous namespaces."""
    text = _ANONYMOUS.sub("", demangled.strip()).removeprefix("void ").strip()
    depth = 0
    kept = []
    for character in text:
        if character == "(" and depth == 0:
            break
        depth += character == "<"
        if depth == 0 or keep_template:
            kept.append(character)
        depth -= character == ">"
    name = "".join(kept).strip()
    if not keep_template:
        name = name.rsplit(" ", 1)[-1]
    return name.removeprefix("::")
