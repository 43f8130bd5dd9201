"""Parameters by what they mean, and names that are files' too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.importing.names import dtype_of, named, slug, slugs
from groundspeed.operator import is_name


def test_parameters_are_sorted_by_their_names_whatever_the_case():
    found = named(
        {"Implementation": "fused", "DType": "torch.float16", "operator": "softmax", "N": "4096", "mode": "a"}
    )
    assert (found.operator, found.implementation, found.dtype) == ("softmax", "fused", "float16")
    assert found.shape == {"N": 4096, "mode": "a"}


def test_what_is_no_dtype_of_ours_stays_in_the_shape():
    found = named({"T": 128, "dtype": "float8"})
    assert found.dtype == "" and found.shape == {"T": 128, "dtype": "float8"}
    assert named({"T": "F32", "type": "x"}).shape == {"type": "x"}


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("F16", "float16"), ("BF16", "bfloat16"), ("numpy.float32", "float32"), ("float64", "float64"), ("U64", "")],
)
def test_dtypes_of_other_programs(text, dtype):
    assert dtype_of(text) == dtype


@given(st.text())
def test_a_slug_is_a_name_of_a_file_whatever_the_text(text):
    assert is_name(slug(text)) and len(slug(text)) <= 80


@given(st.lists(st.text(max_size=3), max_size=8))
def test_slugs_tell_apart_what_the_names_tell_apart(names):
    found = slugs(names)
    assert set(found) == set(names) and len(set(found.values())) == len(set(names))


def test_numbers_stay_numbers_only_where_nothing_is_lost():
    assert named({"a": "007", "b": "-3", "c": "1e3", "d": "9" * 30}).shape == {
        "a": "007",
        "b": -3,
        "c": "1e3",
        "d": "9" * 30,
    }
