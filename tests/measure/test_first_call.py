"""First calls in fresh processes: caches that are empty, then full; which implementations; and what goes wrong."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from groundspeed import session
from groundspeed.errors import UserError
from groundspeed.measure.first_call_subset import USUAL, Wanted, chosen_case, read_subset
from groundspeed.measure.first_calls import CACHES, cold_and_warm, time_first_call
from groundspeed.measure.process import worker_environment
from groundspeed.measure.workers import Stopped
from groundspeed.operator import Case
from groundspeed.records import FirstCall, read_record
from groundspeed.selection import Selection
from groundspeed.tree import Tree
from tests.core.scratch import ADD, job, make_tree

SLOW = '''"""Slow to import, slower to prepare, slowest to run first; and quick where it finds its cache."""

import os, time
from pathlib import Path

CACHE = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "compiled"
SECONDS = 0.0 if CACHE.exists() else 0.1
time.sleep(0.1)


def prepare(x):
    time.sleep(2 * SECONDS)
    CACHE.touch()
    first = [True]

    def run():
        if first.pop() if first else False:
            time.sleep(4 * SECONDS)
        return x * 2

    return run
'''
CASE = Case.of("float32", {"N": 64})


def one(root: Path, name: str, **changes: object):
    return job(root, implementations=(name,), cases=((CASE.dtype, CASE.shape),), **changes)


def quietly(which: str) -> None:
    """Say nothing of it."""


@pytest.mark.slow
def test_the_parts_of_a_cold_call_and_what_a_full_cache_saves(tmp_path):
    root = make_tree(tmp_path, {"double": {"torch_slow": SLOW}})
    told: list[str] = []
    found = cold_and_warm(one(root, "torch_slow"), worker_environment({}), told.append, lambda: None)
    assert found.problem == "" and told == ["cold", "warm"]
    cold, warm = found.cold, found.warm
    for part, least in ((cold.load_ns, 0.1), (cold.prepare_ns, 0.2), (cold.run_ns, 0.4), (warm.load_ns, 0.1)):
        assert least <= part / 1e9 < least + 3
    assert warm.prepare_ns + warm.run_ns < cold.prepare_ns + cold.run_ns - 0.4e9
    assert cold.total_ns == cold.load_ns + cold.prepare_ns + cold.run_ns


@pytest.mark.slow
def test_the_process_is_fresh_and_its_caches_are_its_own_and_gone_afterwards(tmp_path):
    tells = (
        '"""Tells."""\n\nimport os, sys\nfrom pathlib import Path\n\n'
        f"file = Path({str(tmp_path / 'told')!r})\n"
        "heavy = ('torch', 'torch._dynamo', 'torch._inductor', 'triton', 'cupy')\n"
        "names = [name for name in heavy if name in sys.modules]\n"
        f"caches = [os.environ[name] for name in {CACHES!r}]\n"
        "empty = [not os.listdir(cache) for cache in caches]\n"
        "[(Path(cache) / 'kept').touch() for cache in caches]\n"
        "file.open('a').write(f'{os.getpid()}|{names}|{caches}|{empty}\\n')\n\n\n"
        "def prepare(x):\n    return lambda: x * 2\n"
    )
    root = make_tree(tmp_path / "tree", {"double": {"torch_tells": tells}})
    environment = worker_environment(dict.fromkeys(CACHES, "/nowhere"))
    assert cold_and_warm(one(root, "torch_tells"), environment, quietly, lambda: None).problem == ""
    (cold, warm) = (line.split("|") for line in (tmp_path / "told").read_text().splitlines())
    assert cold[0] != warm[0] and cold[1] == warm[1] == "['torch']"
    caches = ast.literal_eval(cold[2])
    assert cold[2] == warm[2] and len(set(caches)) == len(CACHES)
    assert ast.literal_eval(cold[3]) == [True] * len(CACHES)
    assert ast.literal_eval(warm[3]) == [False] * len(CACHES)
    assert not any(Path(cache).exists() for cache in caches)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "limits", "said"),
    [
        ("def prepare(x):\n    raise OSError('gone')\n", {}, r"OSError: gone \(double/torch_bad.py:2\) in prepare"),
        ("import ctypes\nctypes.string_at(0)\n", {}, "the worker died of SIGSEGV in load"),
        ("import time\ntime.sleep(600)\n", {"load": 0.4}, "no sign of life for 0 s in load"),
    ],
)
def test_one_that_fails_says_how_and_where(tmp_path, text, limits, said):
    root = make_tree(tmp_path, {"double": {"torch_bad": text}})
    found = cold_and_warm(one(root, "torch_bad", limits=limits), worker_environment({}), quietly, lambda: None)
    assert found.cold is None and found.warm is None
    assert re.fullmatch("first call, cold: " + said, found.problem), found.problem


@pytest.mark.slow
def test_it_ends_with_the_run(tmp_path):
    root = make_tree(tmp_path, {"double": {"torch_hangs": "import time\ntime.sleep(600)\n"}})
    asked = []

    def check():
        asked.append(1)
        if len(asked) > 3:
            raise Stopped

    with pytest.raises(Stopped):
        time_first_call(one(root, "torch_hangs"), worker_environment({}), check)


@pytest.mark.slow
def test_a_run_keeps_them_with_the_rows_of_the_subset_alone(tmp_path):
    late = "import os\nfrom pathlib import Path\n\nSEEN = Path(FILE)\n\n\ndef prepare(x):\n"
    late += "    first = not SEEN.exists()\n    SEEN.touch()\n    assert first, 'only once'\n    return lambda: x * 2\n"
    files = {"torch_add": ADD, "torch_once": late.replace("FILE", repr(str(tmp_path / "seen")))}
    make_tree(tmp_path / "impls", {"double": files})
    subset = (Wanted("double", "torch_add", "* N=4096"), Wanted("double", "torch_o*"), Wanted("other", "*"))
    run = session.open_run(tmp_path, tmp_path / "results", Selection(), device="cpu", first_call=subset)
    phases: list[str] = []
    record = read_record(session.measure_operator(run, "double", lambda progress: phases.append(progress.phase)))
    rows = {(row.implementation, row.shape["N"]): row for row in record.measurements}
    have = {key for key, row in rows.items() if row.first_call_cold}
    assert have == {("torch_add", 4096)} and rows["torch_add", 4096].first_call_warm.total_ns > 0
    once = rows["torch_once", 64]
    assert once.status == "ok" and once.first_call_cold is None
    (note,) = (note for note in once.notes if "first call" in note)
    assert note.startswith("first call, cold: AssertionError: only once (double/torch_once.py:")
    assert "first call, cold" in phases and "first call, warm" in phases
    seconds = record.footer.seconds
    assert 0 < seconds["first call"] < seconds["total"]


# the subset


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [Wanted("softmax", "*"), Wanted("matmul", "*"), Wanted("relu", "*")]),
        ("[tool.groundspeed]\nfirst_call_subset = []\n", []),
        (
            '[tool.groundspeed]\nfirst_call_subset = ["soft*/triton_* float32 M=4096,*", " a/b "]\n',
            [Wanted("soft*", "triton_*", "float32 M=4096,*"), Wanted("a", "b")],
        ),
    ],
)
def test_the_subset_is_configured(tmp_path, text, expected):
    (tmp_path / "pyproject.toml").write_text(text)
    assert list(read_subset(tmp_path)) == expected
    assert [str(wanted) for wanted in read_subset(tmp_path / "nowhere")] == list(USUAL)


@pytest.mark.parametrize("value", ['"softmax/*"', "[3]", '["softmax"]', '["/x"]', '["softmax/"]', '[""]'])
def test_what_is_no_list_of_patterns_is_one_line(tmp_path, value):
    (tmp_path / "pyproject.toml").write_text(f"[tool.groundspeed]\nfirst_call_subset = {value}\n")
    with pytest.raises(UserError, match=r"first_call_subset.*expected") as caught:
        read_subset(tmp_path)
    assert "\n" not in str(caught.value)
    (tmp_path / "pyproject.toml").write_text("[tool")
    with pytest.raises(UserError, match=r"pyproject\.toml"):
        read_subset(tmp_path)


def test_the_projects_own_subset_names_what_is_there():
    root = Path(__file__).resolve().parents[2]
    tree = Tree(root / "impls")
    for wanted in read_subset(root):
        cases = tree.spec(wanted.operator).tier_cases("core")
        names = [one.name for one in tree.implementations(wanted.operator)]
        assert any(chosen_case([wanted], wanted.operator, name, cases) for name in names)


def test_one_case_for_each_the_first_that_fits():
    cases = [Case.of(dtype, {"N": n}) for dtype in ("float32", "float16") for n in (1, 2)]
    assert chosen_case([Wanted("a", "b*")], "a", "b_c", cases) == cases[0]
    assert chosen_case([Wanted("a", "b", "float16 *"), Wanted("a", "*")], "a", "b", cases) == cases[2]
    assert chosen_case([Wanted("a", "b", "bfloat16 *"), Wanted("a", "*", "* N=2")], "a", "b", cases) == cases[1]
    assert chosen_case([Wanted("a", "b")], "a", "c", cases) is None
    assert chosen_case([Wanted("a", "b")], "a", "b", []) is None


def test_a_total_is_of_its_parts():
    assert FirstCall(1.0, 2.0, 4.0).total_ns == 7.0
