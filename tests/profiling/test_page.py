"""What is said of a profile, and how the page looks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.analysis.profiles import profile_path, write_profile
from groundspeed.errors import UserError
from groundspeed.git import Commit
from groundspeed.operator import Case, case
from groundspeed.profiling.bound import sentences
from groundspeed.profiling.choose import choose_cases
from groundspeed.profiling.compose import compose
from groundspeed.profiling.kernels import Kernel, gather
from groundspeed.profiling.ncu import METRICS, parse_csv
from groundspeed.profiling.occupancy import multiprocessor
from groundspeed.profiling.page import Page, Section, kernel_sections, markdown, terminal
from groundspeed.profiling.position import Position, Stored, position, stored
from groundspeed.profiling.protocol import Answer
from groundspeed.profiling.run import Seen
from groundspeed.records import Ceilings, Environment, KernelResources
from groundspeed.report.style import PLAIN
from groundspeed.tree import Tree
from tests.cli.records_for_tests import ok, record, store
from tests.cli.toy_project import ROOT
from tests.profiling import tables

IMPLS = Tree(ROOT / "impls")
RELU = IMPLS.spec("relu")
BIG = case("float32", N=16777216)
H200 = Environment("cuda", "NVIDIA H200", "3.12", "Linux", capability="9.0", multiprocessors=132, torch="2.11.0")
CEILINGS = Ceilings(copy=4.28e12, read=4.63e12, write=4.72e12, matmul={"bfloat16": 783e12})
COMMIT = Commit("a251e5d63d5066166f16ce23d5542abcfc4b8afe", "2026-11-29T22:07:02+00:00")
SPILLS = KernelResources("void <unnamed>::relu_vec4<float, (int)4>(const float *)", 168, 0, 24)


def kernels(**counted: dict[str, float]) -> tuple[Kernel, ...]:
    return gather(parse_csv(tables.ncu_csv(*counted.items())), calls=1)


def said(values: dict[str, float], *others: Kernel, spill: int | None = None) -> str:
    (main,) = kernels(rows=values)
    main = Kernel(**{**main.__dict__, "spill_bytes": spill})
    where = position(RELU, BIG, main.time_ns, CEILINGS)
    found = sentences([main, *others], where, multiprocessor("9.0"), "cuda", 132)
    assert 2 <= len(found) <= 4 and all(sentence.endswith(".") for sentence in found)
    return " ".join(found)


def test_what_is_near_its_peak_bounds_the_kernel():
    text = said(tables.STREAMING)
    assert text.startswith("DRAM bounds it: 91 % of peak, multiprocessors at 21 %, L2 cache at 62 %")
    assert said(tables.TROUBLED).startswith("The multiprocessors bound it: 88 % of peak")


def test_too_few_blocks_are_named_before_latency():
    assert said(tables.SMALL).startswith("Too little work bounds it: 8,192 blocks fill 6.0 % of what 132 multiproc")


def test_latency_is_what_is_left_and_what_warps_wait_for_is_named():
    text = said(tables.WAITING)
    assert text.startswith("Latency bounds it: no part is above 60 % of its peak")
    assert "warps wait mostly for global or local memory" in text


def test_spills_conflicts_and_divergence_are_said_where_they_are():
    text = said(tables.TROUBLED, spill=24)
    assert "Registers spill: 24 bytes a thread" in text and "12,345 instructions load them" in text
    assert "Bank conflicts add 40 % of the passes of shared memory." in text
    assert "21.5 of 32 threads take part" in text
    clean = said(tables.STREAMING, spill=0)
    assert not re.search("spill|conflict|diverge", clean)


def test_low_occupancy_names_what_limits_it():
    text = said({**tables.WAITING, "registers": 168.0, "shared_dynamic": 0.0})
    assert "At most 12 % of the warps fit, limited by registers (168 registers a thread" in text


def test_several_kernels_are_counted():
    main, fill = kernels(main=tables.STREAMING, fill={"duration": 2000.0})
    where = position(RELU, BIG, 32112.0, CEILINGS)
    found = sentences([main, fill], where, None, "cuda", 132)
    assert found[1] == "One call runs 2 kernels, copies and fills; main takes 94 % of their time."


@pytest.mark.parametrize(
    ("time_ns", "ceilings", "begins"),
    [
        (33000.0, CEILINGS, "Memory bounds it: 4.07 TB/s is 95 % of what this machine reached."),
        (90000.0, CEILINGS, "It takes 2.87 times the 31.4 µs that its bytes would (1.49 TB/s)."),
        (33000.0, None, "A call over 128 MiB takes 33.0 µs; no ceilings of this machine are on record to judge it."),
    ],
)
def test_without_counters_the_roofline_says_what_it_can(time_ns, ceilings, begins):
    main = Kernel("rows", 1.0, time_ns)
    where = position(RELU, BIG, time_ns, ceilings)
    first, second, *_ = sentences([main], where, multiprocessor("9.0"), "cuda", 132)
    assert first == begins and "profile --with ncu" in second


def test_a_compute_bound_operator_is_held_against_its_matmul_rate():
    spec = IMPLS.spec("matmul")
    one = case("bfloat16", M=4096, N=4096, K=4096)
    where = position(spec, one, 200_000.0, CEILINGS)
    assert where.least is not None and where.least.bound == "compute"
    assert sentences([Kernel("mm", 1.0, 200_000.0)], where, None, "cuda", 132)[0].startswith(
        "Arithmetic bounds it: 687"
    )


def test_nothing_that_ran_is_said_to_be_nothing():
    assert sentences([], Position(0, 0, 0, 0.0), None, "cuda", 132) == [
        "Nothing ran on the device: the output is a view of an input, or empty."
    ]


COUNTS = st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(0, 1e9), max_size=len(METRICS))


@given(
    st.lists(COUNTS, min_size=1, max_size=12), st.one_of(st.none(), st.integers(0, 999)), st.sampled_from(["9.0", ""])
)
def test_any_counters_make_sentences_and_a_page_of_80_columns(counted, spill, capability):
    launches = parse_csv(tables.ncu_csv(*((f"{tables.VEC4}{n}", values) for n, values in enumerate(counted))))
    resources = [] if spill is None else [KernelResources(tables.VEC4, 8, 0, spill)]
    answer = Answer(case=(BIG.dtype, BIG.shape), environment=H200, resources=tuple(resources), tuned="x" * 200)
    seen = Seen("ncu", "2025.3.1", 1, answer, tuple(launches))
    page = compose("relu/cuda_vec4", seen, "", RELU, BIG, Stored(CEILINGS), COMMIT)
    assert 1 <= len(page.sentences) <= 4
    lines = terminal(page, PLAIN)
    assert max(map(len, lines)) <= 80 and "nan" not in "\n".join(lines)
    assert markdown(page).startswith("# relu/cuda\\_vec4, float32 N=16777216\n")


def whole_page() -> Page:
    launches = parse_csv(tables.ncu_csv((tables.VEC4, tables.TROUBLED), (tables.FILL, tables.SMALL)))
    answer = Answer(case=(BIG.dtype, BIG.shape), environment=H200, resources=(SPILLS,), tuned="BLOCK: 1024")
    seen = Seen("ncu", "2025.3.1", 1, answer, tuple(launches))
    before = Stored(CEILINGS, "20261129T220846Z-a251e5d6-36f0", 30100.0, same_code=True)
    return compose("relu/cuda_vec4", seen, "", RELU, BIG, before, COMMIT, now="2026-11-30 12:00 UTC")


def test_the_page_holds_everything_that_was_asked_for():
    text = " ".join(" ".join(terminal(whole_page(), PLAIN)).split())
    for expected in (
        "kernel 1: relu_vec4<float,4>",
        r"duration +1\.50 ms, 100 % of the call's",
        r"grid +8,192 blocks of 256 threads; 7\.76 waves",
        r"registers +168 a thread",
        r"shared memory +48 KiB a block",
        r"spills +24 bytes a thread; 12,345 local loads and 600 stores in all",
        r"occupancy +16 % achieved; 19 % fit: 1 block a multiprocessor, limited by registers",
        r"throughput +DRAM 20 %, L2 25 %, L1 71 %, multiprocessors 88 % of peak",
        r"crossed DRAM +64 MiB read, 40 MiB written",
        r"cache hits +L1 0 %, L2 50 %",
        r"warp efficiency +21\.5 of 32 threads an instruction \(67 %\)",
        r"branch efficiency +100 % of branches",
        r"bank conflicts +400, 40 % of the passes",
        r"a warp waits +cycles an instruction: 41\.2 for global or local memory, 2\.10 for the",
        r"must move +64 MiB read, 64 MiB written",
        r"ceiling +31\.4 µs by memory: the call is at 2\.1 % of it",
        r"measured before +30\.1 µs with a cold cache \(20261129T220846Z-a251e5d6-36f0\)",
        r"1 more time +2\.30 µs, 0\.15 % of all",
        r"NVIDIA H200, ncu 2025\.3\.1, 1 call, commit a251e5d6, 2026-11-30 12:00 UTC\.",
        "The autotuner chose BLOCK: 1024.",
    ):
        assert re.search(expected, text), f"{expected}\n{text}"


def test_markdown_says_the_same_and_breaks_at_no_kernels_name():
    page = whole_page()
    text = markdown(page)
    assert "## kernel 1: relu\\_vec4&lt;float,4>" in text
    for section in page.sections:
        assert len(re.findall(rf"^\| {re.escape(section.rows[0][0])} \|", text, re.MULTILINE)) >= 1
    odd = Page("a|b", ("x<y>*z*",), ("`r`",), (Section("s", (("label", "a | b\nnext"),)),))
    assert "| label | a \\| b next |" in markdown(odd)


def test_of_very_many_kernels_the_rest_is_added_up():
    many = (*(Kernel(f"k{n}", 1.0, 1000.0 - n) for n in range(12)), Kernel("tiny", 3.0, 1.0))
    sections = kernel_sections(many, None, "cuda")
    assert len(sections) == 9 and sections[-1].title == "5 more"


def test_records_give_ceilings_and_the_measurement_of_the_same_case(tmp_path):
    row = ok("triton_row", 127)
    store(tmp_path, record(row, machine="nvidia-h200"))
    label = Case.of(row.dtype, row.shape)
    found = stored(tmp_path, "nvidia-h200", "softmax", "triton_row", label, row.implementation_digest)
    assert found.device_cold_ns == 127_000 and found.ceilings is not None and found.same_code
    other = stored(tmp_path, "nvidia-h200", "softmax", "triton_row", label, "changed")
    assert other.device_cold_ns == 127_000 and not other.same_code
    elsewhere = stored(tmp_path, "nvidia-h200", "relu", "triton_row", label, "")
    assert elsewhere.device_cold_ns is None and elsewhere.ceilings == found.ceilings
    assert stored(tmp_path, "nvidia-a100", "softmax", "triton_row", label, "") == Stored()
    store(tmp_path, record(ok("torch_eager", 300), machine="nvidia-h200", run_id="2099"))
    assert stored(tmp_path, "nvidia-h200", "softmax", "triton_row", label, row.implementation_digest) == found


def test_pages_lie_beside_the_records_and_are_never_torn(tmp_path, monkeypatch):
    path = profile_path(tmp_path, "nvidia-h200", "relu", "cuda_vec4", BIG.label, COMMIT.hash, False, "ncu")
    assert path == tmp_path / "nvidia-h200/profiles/relu/cuda_vec4/float32-N=16777216-a251e5d6-ncu.md"
    assert "-dirty-" in profile_path(tmp_path, "m", "o", "i", "c", COMMIT.hash, True, "ncu").name
    assert "-nocommit-" in profile_path(tmp_path, "m", "o", "i", "c", "", False, "ncu").name
    write_profile(path, "one\n")
    write_profile(path, "two\n")
    assert path.read_text() == "two\n" and list(path.parent.iterdir()) == [path]

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_profile(path, "three\n")
    assert path.read_text() == "two\n" and [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_case_is_named_by_dtype_shape_or_pattern():
    softmax = IMPLS.spec("softmax")

    def chosen(*words: str, device: str = "cuda") -> list[str]:
        return [one.label for one in choose_cases("softmax", softmax, words, device)]

    core = [one.label for one in softmax.tier_cases("core")]
    assert sorted(chosen()) == sorted(core) and chosen()[0] == "float32 M=8192,N=8192"
    assert set(chosen(device="cpu")) == {one.label for one in softmax.tier_cases("small")}
    assert chosen("float16", "M=8192,N=8192") == chosen("M=8192,N=8192 float16") == ["float16 M=8192,N=8192"]
    assert chosen("M=8192,N=8192")[0] == "float32 M=8192,N=8192" and len(chosen("M=8192,N=8192")) == 3
    assert all("M=8192" in label for label in chosen("M=8192,*")) and chosen("M=8192,*")
    assert {label.split()[0] for label in chosen("bfloat16")} == {"bfloat16"}
    checks = {one.label for one in softmax.check_cases} - {one.label for one in softmax.bench_cases}
    assert chosen(sorted(checks)[0]) == [sorted(checks)[0]]
    for words, message in ((("M=1,N=7777777",), "no case"), (("float16", "float32"), "more than one case")):
        with pytest.raises(UserError, match=message):
            chosen(*words)


def test_a_compute_bound_operators_cases_come_by_their_operations():
    spec = IMPLS.spec("matmul")
    assert choose_cases("matmul", spec, (), "cuda")[0].shape_label == "M=8192,N=8192,K=8192"
