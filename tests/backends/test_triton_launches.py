"""Which variant of a Triton kernel a call launched, as which choice: Triton's own code on a GPU that is not there."""

from __future__ import annotations

import pytest

from groundspeed.backends.triton_kernels import Kernel
from groundspeed.backends.triton_launches import Launch, choices_of, noted, resources_of
from groundspeed.measure.contender import open_contender, prepare
from groundspeed.measure.sides import share_tunings
from groundspeed.records import KernelResources
from groundspeed.tree import Tree
from tests.backends.triton_device import SPILLS, device
from tests.core.scratch import make_tree

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton", reason="Triton is needed")

HELPER = '''"""A tuned kernel and one that is not. To the tuner each candidate is slower than the one before."""

import triton
import triton.language as tl

SIGN = 1
tried = []


def clock(call, quantiles):
    call()
    tried.append(len(tried))
    return [SIGN * float(len(tried))] * 3


def candidate(block):
    return triton.Config({"BLOCK": block}, num_warps=1)


@triton.autotune(configs=[candidate(32), candidate(64), candidate(128)], key=["n"], do_bench=clock)
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)


@triton.jit
def plain(y, WIDE: tl.constexpr):
    tl.store(y, WIDE)


def launch(x, n):
    tuned[lambda chosen: (triton.cdiv(n, chosen["BLOCK"]),)](x, x, n)
'''
IMPLEMENTATION = '''"""Its kernels are a helper's; a function of Triton's library is among its names."""

from triton.language.standard import softmax

from .._triton import helper as renamed
from .._triton.helper import plain


def prepare(x):
    width = int(x.shape[0])

    def run():
        renamed.launch(x, width)
        if width > 100:
            plain[(1,)](x, 1)
            plain[(1,)](x, 2)
            plain[(1,)](x, 1)
        return x

    return run
'''
TEXT = "BLOCK: {}, num_warps: 1"


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    with device() as one:
        yield one


def opened(root, helper=HELPER, label=""):
    files = {"double": {"triton_helped": IMPLEMENTATION}, "_triton": {"helper": helper, "unused": HELPER}}
    tree = Tree(make_tree(root, files))
    return open_contender(tree, tree.implementation("double", "triton_helped"), label)


def helper_of(contender):
    return contender.tree.load("_triton.helper")


def x(n=64):
    return {"x": torch.zeros(n)}


def test_the_variant_is_that_of_the_choice_and_not_of_the_last_candidate(gpu, tmp_path):
    one = opened(tmp_path / "tree")
    prepare(one, x(), "cpu")
    assert gpu.loaded == 3 and len(gpu.launched) == 4  # three candidates, then the first of them
    (resource,) = one.opened.resources()
    assert resource == KernelResources("tuned", gpu.launched[-1], 0, 4 * SPILLS)
    assert gpu.launched[-1] == gpu.launched[0] and one.opened.tuned().startswith(TEXT.format(32))


def test_it_is_that_of_the_case_at_hand(gpu, tmp_path):
    one = opened(tmp_path / "tree")
    prepare(one, x(64), "cpu")
    helper_of(one).SIGN = -1
    prepare(one, x(96), "cpu")  # 128 is the fastest now, and takes it at one go
    assert one.opened.tuned().startswith(TEXT.format(128))
    assert [resource.registers for resource in one.opened.resources()] == gpu.launched[-1:]
    first = gpu.launched[0]
    prepare(one, x(64), "cpu")
    assert one.opened.tuned().startswith(TEXT.format(32))
    assert [resource.registers for resource in one.opened.resources()] == [first] == gpu.launched[-1:]


def test_every_kernel_and_every_variant_of_a_call_is_listed_once(gpu, tmp_path):
    one = opened(tmp_path / "tree")
    prepare(one, x(128), "cpu")
    found = one.opened.resources()
    assert [resource.name for resource in found] == ["tuned", "plain", "plain"]
    assert [resource.registers for resource in found] == gpu.launched[-4:-1]
    assert gpu.launched[-1] == gpu.launched[-3]  # the last launch is of a variant that is listed


def test_timed_calls_run_what_triton_made(gpu, tmp_path):
    one = opened(tmp_path / "tree")
    helper = helper_of(one)
    links = [helper.tuned, helper.tuned.fn, helper.tuned.fn.fn, helper.plain]
    with one.opened.watch():
        assert all("run" in vars(link) for link in links)
        kept = helper.plain.run
    assert not any("run" in vars(link) for link in links)
    before = len(gpu.launched)
    kept(torch.zeros(1), 3, grid=(1,), warmup=False)
    assert len(gpu.launched) == before + 1 and one.opened.resources() == ()


def test_a_kernel_is_seen_below_its_tuner_and_a_compilation_is_no_launch(gpu, tmp_path):
    helper = helper_of(opened(tmp_path / "tree"))
    kernel = Kernel("helper.tuned", (helper.tuned, helper.tuned.fn, helper.tuned.fn.fn, helper.tuned.base_fn))
    with noted([kernel]) as launches:
        helper.tuned.warmup(torch.zeros(64), torch.zeros(64), 64, grid=(1,))
        assert launches == []
        helper.tuned.fn[(1,)](torch.zeros(64), torch.zeros(64), 64, BLOCK=64)
    assert [(launch.kernel, launch.chosen) for launch in launches] == [("tuned", "")]
    assert [launch.resources.registers for launch in launches] == gpu.launched


def test_what_a_call_raises_leaves_the_kernels_as_they_were(gpu, tmp_path):
    one = opened(tmp_path / "tree")
    with pytest.raises(KeyError), one.opened.watch():
        raise KeyError("gone")
    assert "run" not in vars(helper_of(one).plain)


def test_somebody_elses_run_is_put_back(gpu, tmp_path):
    one = opened(tmp_path / "tree")
    other = helper_of(one).plain.run = lambda *arguments, **named: None
    with one.opened.watch():
        assert helper_of(one).plain.run is not other
    assert helper_of(one).plain.run is other


def test_a_helpers_kernels_are_the_implementations_and_no_others(gpu, tmp_path):
    one = opened(tmp_path / "tree")
    one.tree.load("_triton.unused")  # loaded, say by another implementation, and not imported by this one
    helper_of(one).tuned.cache[(64,)] = helper_of(one).tuned.configs[0]
    assert list(one.opened.tuning()) == ["_triton.helper.tuned"]
    assert one.opened.own_kernels() == {"tuned", "plain"}  # and none that is called softmax


def test_a_helpers_tuner_is_tuned_once_for_equal_sides_and_once_a_changed_one(gpu, tmp_path):
    changed = HELPER.replace("SIGN = 1", "SIGN = -1")
    texts = {"base": HELPER, "head": HELPER, "changed": changed}
    sides = {label: opened(tmp_path / label, text, label) for label, text in texts.items()}
    shared = share_tunings(dict(sides), str(tmp_path / "tunings"))
    for side in shared.values():
        prepare(side, x(), "cpu")
    assert {label: len(helper_of(side).tried) for label, side in sides.items()} == {"base": 3, "head": 0, "changed": 3}
    chosen = {label: side.opened.tuned().partition(",")[0] for label, side in sides.items()}
    assert chosen == {"base": "BLOCK: 32", "head": "BLOCK: 32", "changed": "BLOCK: 128"}


# what is said of launches


def launches(*told):
    return [Launch(kernel, chosen, None) for kernel, chosen in told]


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([], ""),
        ([("k", "")], ""),
        ([("k", "A")], "A"),
        ([("k", "A"), ("k", "A")], "A"),
        ([("k", "A"), ("k", "B"), ("k", "A")], "A; B; A"),
        ([("k", "A"), ("other", ""), ("l", "B"), ("k", "A")], "k(A); l(B)"),
        ([("k", "A"), ("l", "B"), ("k", "C")], "k(A); k(C); l(B)"),
    ],
)
def test_choices_in_words(seen, said):
    assert choices_of(launches(*seen)) == said


def test_an_interpreted_launch_has_no_resources():
    assert resources_of(launches(("k", "A"))) == ()
