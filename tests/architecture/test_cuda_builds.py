"""Every ``.cu`` file compiles, wherever there is nvcc: no GPU is needed for that, and the cache is the user's own."""

from __future__ import annotations

import pytest

from groundspeed.build import BuildError, build_all, cuda_sources, find_toolchain
from groundspeed.errors import UserError
from tests.architecture.sources import ROOT

IMPLS = ROOT / "impls"
SOURCES = list(cuda_sources(IMPLS))


@pytest.fixture(scope="module")
def built():
    try:
        toolchain = find_toolchain()
    except UserError as missing:
        pytest.skip(str(missing))
    return build_all(IMPLS, SOURCES, toolchain)


def test_there_are_sources():
    assert SOURCES


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_compiles_and_names_its_kernels(built, source):
    extension = built[source]
    assert not isinstance(extension, BuildError), str(extension)
    assert extension.binary.is_file()
    assert extension.resources, "ptxas named no kernel"
