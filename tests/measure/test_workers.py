"""Workers from a nursery: as good as started anew, seconds earlier; and when a nursery is not to be trusted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from groundspeed.measure import forked, nursery, process, supervisor
from groundspeed.measure import workers as source
from groundspeed.measure.forked import Nursery, NurseryLost
from groundspeed.measure.process import worker_environment
from groundspeed.measure.protocol import Job
from groundspeed.measure.supervisor import supervise
from groundspeed.measure.workers import Workers
from tests.core.scratch import calls, job, make_tree, rows_by_name
from tests.measure import fake_worker
from tests.measure.fake_worker import READY, script, whole
from tests.measure.test_process import gone

ROOT = Path(__file__).resolve().parents[2]
POPEN = subprocess.Popen
NO_JOB = Job("double", "", "", "cpu", ("a",), ())

TELLS = '''"""Tells of its process what a fork could have spoilt."""

import os, resource, signal, sys, threading
from pathlib import Path
import torch


def prepare(x):
    def facts():
        return [
            len(os.listdir("/proc/self/task")),
            f"threads of Python's {threading.active_count()}",
            f"own group {os.getpgid(0) == os.getpid()}",
            f"descriptors {sorted(map(int, os.listdir('/proc/self/fd')))[:-1]}",
            f"signals {signal.getsignal(signal.SIGINT)} {signal.getsignal(signal.SIGCHLD)}",
            f"streams {os.readlink('/proc/self/fd/1') == os.readlink('/proc/self/fd/2')} {sys.stdout.write_through}",
            f"torch {torch.get_num_threads()} {torch.is_grad_enabled()}",
            f"nice {os.nice(0)} {sorted(os.sched_getaffinity(0))} {resource.getrlimit(resource.RLIMIT_NOFILE)}",
            f"folder {os.getcwd()}",
        ]

    Path(TARGET).write_text("\\n".join(map(str, facts())))
    big = torch.ones(1 << 22)
    assert float((big * 2).sum()) == 2 << 22, "the thread pool works"
    return lambda: x * 2
'''


@pytest.fixture(scope="module")
def nurseries():
    with Workers(worker_environment({}), compiler=False) as own:
        yield own


@pytest.mark.slow
def test_a_forked_worker_is_what_a_started_one_is(nurseries, tmp_path):
    told = {}
    for name, workers in (("forked", nurseries), ("started", None)):
        text = TELLS.replace("TARGET", repr(str(tmp_path / f"{name}.txt")))
        root = make_tree(tmp_path / name, {"double": {"torch_tells": text}})
        outcome = supervise(job(root), worker_environment({}), lambda progress: None, workers=workers)
        assert {row.status for row in outcome.rows.values()} == {"ok"}, [one.reason for one in outcome.rows.values()]
        told[name] = (tmp_path / f"{name}.txt").read_text().splitlines()
    threads = {name: int(lines.pop(0)) for name, lines in told.items()}
    assert threads["forked"] <= threads["started"]  # NumPy's own are ended by a fork, and come back when needed
    assert told["forked"] == told["started"]
    assert "own group True" in told["forked"]


@pytest.mark.slow
@pytest.mark.parametrize("forked", [True, False])
def test_threads_on_a_cpu_are_a_definite_number_and_in_the_record(forked, tmp_path):
    text = "import torch\n\nassert torch.get_num_threads() == 3\n\n\ndef prepare(x):\n    return lambda: x * 2\n"
    root = make_tree(tmp_path, {"double": {"torch_counts": text}})
    environment = worker_environment({"OMP_NUM_THREADS": "3"})
    if forked:
        with Workers(environment, compiler=False) as own:
            outcome = supervise(job(root), environment, lambda progress: None, workers=own)
    else:
        outcome = supervise(job(root), environment, lambda progress: None)
    assert {row.status for row in outcome.rows.values()} == {"ok"}, [one.reason for one in outcome.rows.values()]
    assert outcome.environment is not None and outcome.environment.threads == 3


@pytest.mark.quiet
@pytest.mark.slow
def test_one_that_is_forked_begins_seconds_earlier(nurseries):
    seconds = {}
    for name, start in (("forked", nurseries.start), ("started", lambda: process.start_worker(nurseries.environment))):
        nurseries.start().kill()  # its imports are done
        began = time.monotonic()
        worker = start()
        worker.hand_over(NO_JOB)  # no such tree: the worker ends when it has read it
        list(worker.lines(lambda: 60.0))
        worker.wait()
        worker.kill()
        seconds[name] = time.monotonic() - began
    assert seconds["forked"] < 0.5 * seconds["started"], seconds


def test_its_end_its_last_words_and_its_children_are_seen_as_of_one_started_anew(nurseries, tmp_path):
    forks = calls("child = os.fork()\n        if not child: time.sleep(600)\n        print(child); os._exit(3)")
    root = make_tree(tmp_path, {"double": {"torch_forks": forks}})
    worker = nurseries.start()
    assert worker.process.forked and not worker.process.has_ended()
    worker.hand_over(job(root, implementations=("torch_forks",)))
    assert list(worker.lines(lambda: 60.0))
    assert worker.process.has_ended() and worker.process.returncode is None
    child = int(worker.last_words())
    assert worker.wait() == 3 and worker.process.returncode == 3 and gone(child)
    worker.kill()
    worker.kill()  # twice is no fault


def test_killing_one_that_waits_leaves_the_nursery_and_the_others(nurseries):
    one, other = nurseries.start(), nurseries.start()
    one.kill()
    assert one.process.returncode == -9 and one.log.closed and gone(one.process.pid)
    assert not other.process.has_ended()
    with pytest.raises(subprocess.TimeoutExpired):
        other.process.wait(0.05)
    other.kill()
    assert nurseries.why_not == ""
    nurseries.start().kill()


def test_threads_may_ask_one_nursery_at_once(nurseries):
    ended: list[int | None] = []

    def one() -> None:
        worker = nurseries.start()
        worker.process.stdin.close()  # no job: it ends with a complaint
        ended.append(worker.wait())
        worker.kill()

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == [1] * 6


def test_what_it_forked_ends_with_it():
    own = Nursery(worker_environment({}), "work")
    worker = own.fork()
    own.close()
    assert gone(worker.process.pid)
    assert worker.wait() == -9 and worker.process.lost
    worker.kill()


def test_a_nursery_of_nobody_ends():
    """As after kill -9 of the supervisor: the other end of its socket closes."""
    program = (
        "import os, sys; from groundspeed.measure.forked import Nursery; "
        "from groundspeed.measure.process import worker_environment; "
        "one = Nursery(worker_environment({}), 'work'); worker = one.fork(); "
        "print(one._process.pid, worker.process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=worker_environment({}), cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == -9
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2 and all(gone(pid) for pid in pids)


# when it is not to be trusted


def serving(code: str, monkeypatch) -> None:
    """Put a program in the nursery's place; ``control`` is its end of the socket."""
    preamble = "import os, socket, sys, time; control = socket.socket(fileno=int(sys.argv[1]))\n"

    def start(words, **options):
        return POPEN([sys.executable, "-S", "-c", preamble + code, *words[3:]], **options)

    monkeypatch.setattr(forked.subprocess, "Popen", start)


def test_a_refusal_and_an_end_are_told_in_words(monkeypatch):
    refuses = b'{"type":"Serving","refusal":"its imports initialised CUDA"}'
    serving(f"control.send({refuses!r}); time.sleep(600)", monkeypatch)
    one = Nursery({}, "work")
    with pytest.raises(NurseryLost, match=r"^its imports initialised CUDA$"):
        one.fork()
    one.close()
    serving("print('ImportError: no torch'); sys.exit(1)", monkeypatch)
    one = Nursery({}, "work")
    with pytest.raises(NurseryLost, match=r"^it ended with status 1: ImportError: no torch$"):
        one.fork()
    one.close()


def refusing(monkeypatch, *refused):
    """Nurseries that refuse to serve with these imports; what was asked of them all, in order."""
    asked = []

    class Nursery:
        def __init__(self, environment, imports):
            self.imports = imports
            asked.append(imports)

        def fork(self):
            if self.imports in refused:
                raise NurseryLost(f"its imports started {len(asked)} threads")
            return "forked"

        def close(self):
            asked.append("closed")

    monkeypatch.setattr(source, "Nursery", Nursery)
    monkeypatch.setattr(source, "start_worker", lambda environment: environment)
    return asked


def test_after_two_that_do_not_serve_workers_are_started_anew(monkeypatch):
    asked = refusing(monkeypatch, "compiler", "front end")
    with Workers({"A": "1"}) as own:
        assert own.start() == {"A": "1"} and own.start() == {"A": "1"}
        assert own.why_not == "its imports started 3 threads"
    assert asked == ["compiler", "closed", "front end", "closed"]
    without, anew = own.remarks
    assert without.startswith("workers begin without torch.compile's imports")
    assert without.endswith(": its imports started 1 threads")
    assert anew == "each worker does its own imports, which takes longer: its imports started 3 threads"


def test_why_a_nursery_with_the_compiler_was_refused_is_kept(monkeypatch):
    asked = refusing(monkeypatch, "compiler")
    with Workers({}) as own:
        assert [own.start(), own.start()] == ["forked", "forked"] and own.why_not == ""
    assert asked == ["compiler", "closed", "front end", "closed"]
    need = "those that need them take longer"
    assert own.remarks == [f"workers begin without torch.compile's imports, {need}: its imports started 1 threads"]


def test_without_the_compiler_a_second_try_is_one_more_of_the_same(monkeypatch):
    asked = refusing(monkeypatch, "work")
    with Workers({}, compiler=False) as own:
        own.start()
    assert asked == ["work", "closed", "work", "closed"]
    assert own.remarks[0] == "the process that workers are forked from had to be started again: " + (
        "its imports started 1 threads"
    )
    with Workers({}, nursery=False) as own:
        assert own.why_not and not own.remarks  # nobody has lost what nobody asked for


def test_where_there_are_no_process_handles_there_is_no_nursery(monkeypatch):
    monkeypatch.setattr(source, "supported", lambda: False)
    monkeypatch.setattr(source, "start_worker", lambda environment: "anew")
    own = Workers({})
    own.warm_up()
    assert own.start() == "anew"


class Scripted(Workers):
    """Forked workers that follow one script each."""

    def __init__(self, *scripts: str) -> None:
        super().__init__({})
        self._scripts = list(scripts)

    def start(self):
        if self.why_not:
            return supervisor.start_worker({})
        worker = fake_worker.start(self._scripts.pop(0))
        worker.process.forked = True
        return worker


def scripted(monkeypatch, forked_ones: list[str], started: list[str]):
    waiting = iter(started)
    monkeypatch.setattr(supervisor, "start_worker", lambda environment: fake_worker.start(next(waiting)))
    own = Scripted(*forked_ones)
    one = Job("double", "tree", "tree", "cpu", ("a", "b"), (("float32", (("N", 0),)),))
    outcome = supervise(one, {}, lambda progress: None, workers=own)
    assert next(waiting, None) is None and not own._scripts
    return outcome, own


def test_a_forked_worker_that_does_not_begin_is_tried_again_anew(monkeypatch):
    outcome, own = scripted(monkeypatch, ["print('CUDA error: 3'); sys.exit(1)"], [whole(1, "a", "b")])
    assert {row.status for row in outcome.rows.values()} == {"ok"} and outcome.problem == ""
    assert own.why_not.endswith("did not begin: the worker exited with status 1 too early: CUDA error: 3")


def test_one_that_has_begun_is_not(monkeypatch):
    dies = script(READY, fake_worker.phase("check", 0, "b"), fake_worker.DIE)
    outcome, own = scripted(monkeypatch, [dies, whole(1, "a")], [])
    assert outcome.rows[0, "b"].failure == "crash" and own.why_not == ""


# what the nursery looks at before it serves


def test_a_thread_too_many_is_a_refusal():
    stop = threading.Event()
    before = nursery._threads()
    assert nursery.unsafe(before) == ""
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert nursery.unsafe(before) == "its imports started 1 threads"
    stop.set()
    thread.join()


@pytest.mark.parametrize(("mapped", "status", "expected"), [(False, 0, False), (True, 0, True), (True, 3, False)])
def test_cuda_is_asked_whether_it_was_initialised(monkeypatch, mapped, status, expected):
    maps = "7f00 r-xp /usr/lib/libcuda.so.580.1\n" if mapped else "7f00 r-xp /usr/lib/libc.so.6\n"
    monkeypatch.setattr(nursery.Path, "read_text", lambda *_, **__: maps)

    class Driver:
        def cuCtxGetCurrent(self, context):
            return status

    monkeypatch.setattr(nursery.ctypes, "CDLL", lambda name: Driver())
    assert nursery.cuda_is_initialised() is expected
    assert nursery.unsafe(10_000) == ("its imports initialised CUDA" if expected else "")


@pytest.mark.slow
def test_the_compilers_imports_start_no_thread_and_are_imported_once(tmp_path):
    """With them a nursery serves, and torch.compile in a worker of it finds them done."""
    text = '''"""Compiled."""

import sys
import torch

assert "torch._inductor.compile_fx" in sys.modules
from torch._inductor import codecache


def prepare(x):
    assert codecache.torch_key.cache_info().currsize if hasattr(codecache.torch_key, "cache_info") else True
    return torch.compile(lambda: x * 2, dynamic=False, fullgraph=True)
'''
    root = make_tree(tmp_path, {"double": {"torch_compile": text}})
    with Workers(worker_environment({})) as own:
        outcome = supervise(job(root), own.environment, lambda progress: None, workers=own)
        assert own.why_not == ""
    rows = rows_by_name(outcome)
    assert [row.status for row in rows["torch_compile"]] == ["ok", "ok"], rows


@pytest.mark.parametrize("given", ["GPU-1353da6d", "MIG-7", "0,1"])
def test_a_nursery_that_was_given_a_gpu_asks_no_driver_whether_there_is_one(given, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: pytest.fail("the driver was asked"))
    asked = torch.cuda.is_available
    with nursery._devices_as_told():
        assert torch.cuda.is_available()
    assert torch.cuda.is_available is asked


@pytest.mark.parametrize(("given", "cuda"), [("", "13.0"), ("-1", "13.0"), ("GPU-1353da6d", None)])
def test_without_a_gpu_by_name_nvml_is_asked_and_not_cuda(given, cuda, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK") == "1")
    with nursery._devices_as_told():
        assert torch.cuda.is_available()
    assert not torch.cuda.is_available()


def test_whoever_waits_for_a_nurserys_imports_is_stopped_at_once(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ended = []
    with Workers(worker_environment({})) as workers:

        def wait():
            try:
                workers.start()
            except source.Stopped as stopped:
                ended.append(stopped)

        waiting = threading.Thread(target=wait)
        waiting.start()
        while workers._nursery is None:
            time.sleep(0.01)
        workers.stop()
        waiting.join(60)  # far from the imports' end
        assert len(ended) == 1 and not waiting.is_alive()
