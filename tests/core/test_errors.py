"""What an error says in a line."""

from __future__ import annotations

import warnings

import pytest

from groundspeed.errors import first_line, kind_and_line


@pytest.mark.parametrize(
    ("said", "line", "with_kind"),
    [
        ("expected 3\ngot 4", "expected 3", "ValueError: expected 3"),
        ("\n  \n late ", "late", "ValueError: late"),
        ("", "ValueError", "ValueError"),
        (" \n ", "ValueError", "ValueError"),
        ("\x1b[91m\x1b[1merror[IR]:\x1b[0m no IR\n", "error[IR]: no IR", "ValueError: error[IR]: no IR"),
        ("\x1b[38;2;1;2;3m\x1b[0m\n\x07be\x00ll\x1b[2K\x7f\ta tab", "bell\ta tab", "ValueError: bell\ta tab"),
        ("\x1b[0m", "ValueError", "ValueError"),
    ],
)
def test_it_is_the_first_that_is_not_blank_or_its_kind(said, line, with_kind):
    assert first_line(ValueError(said)) == line
    assert kind_and_line(ValueError(said)) == with_kind


SCRIPTED = """The following operation failed in the TorchScript interpreter.
Traceback of TorchScript (most recent call last):
  File "jit.py", line 4, in product
def product(x, y):
    return (x + 1) @ y
            ~~~~~~~~~~ <--- HERE
"""
UNBUILT = """RuntimeError: default_program(20): error: identifier "__nv_bfloat16" is undefined

1 error detected in the compilation of "default_program".

nvrtc compilation failed:

extern "C" __global__
void fused_sub_div(__nv_bfloat16* x) {
{
}
}
"""
PYTHON = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
torch.OutOfMemoryError: no room
"""


@pytest.mark.parametrize(
    ("said", "with_kind"),
    [
        (
            SCRIPTED + "RuntimeError: mat1 and mat2 cannot be multiplied\n",
            "RuntimeError: mat1 and mat2 cannot be multiplied",
        ),
        (SCRIPTED + UNBUILT, 'RuntimeError: default_program(20): error: identifier "__nv_bfloat16" is undefined'),
        (SCRIPTED + "builtins.ValueError: too many\nof them", "RuntimeError: builtins.ValueError: too many"),
        (SCRIPTED + "something else\n", "RuntimeError: something else"),
        (PYTHON, "RuntimeError: torch.OutOfMemoryError: no room"),
        ("no kernel was found\nKeyError: 'x'", "RuntimeError: no kernel was found"),
        ("no kernel was found\nfor it\n" + PYTHON, "RuntimeError: no kernel was found"),
    ],
)
def test_a_heading_of_a_traceback_gives_way_to_what_was_raised(said, with_kind):
    assert kind_and_line(RuntimeError(said)) == with_kind


def test_torchscript_says_it_so():
    """What the rule is for, from PyTorch itself."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        product = torch.jit.script(scripted_product)
    with pytest.raises(RuntimeError) as raised:
        product(torch.ones(2, 3), torch.ones(2, 3))
    assert "mat1 and mat2 shapes cannot be multiplied" in kind_and_line(raised.value)


def scripted_product(x, y):
    return (x + 1) @ y
