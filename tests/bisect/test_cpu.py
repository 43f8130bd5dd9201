"""The bisection with its real engine on the CPU: a slow commit of a torch implementation, a broken one before it."""

from __future__ import annotations

import pytest

from groundspeed.gate.gate_command import engine, one_engine
from tests.gate.test_gate_cpu import EAGER, POLICY, SPEC

FILE = "impls/rowsum/torch_eager.py"
SLOW = EAGER.replace("return x.sum(1)", "x.exp().log().exp().log()\n        return x.sum(1)")


@pytest.mark.quiet
@pytest.mark.slow
def test_a_planted_slow_commit_is_found_beside_a_broken_one(repo, bisected):
    repo.git("rm", "-rq", "impls")
    repo.write("impls/rowsum/spec.py", SPEC)
    repo.write(FILE, EAGER)
    repo.write("pyproject.toml", POLICY)
    good = repo.commit("Begin")
    texts = {
        "Spell it out": EAGER.replace("x.sum(1)", "x.sum(dim=1)"),
        "Name the output": EAGER.replace("return x.sum(1)", "out = x.sum(1)\n        return out"),
        "Break it": "raise RuntimeError('not finished')\n" + EAGER,
        "Mend it and do needless work": SLOW,
        "Spell the slow one out": SLOW.replace("x.sum(1)", "x.sum(dim=1)"),
    }
    commits = {}
    for subject, text in texts.items():
        repo.write(FILE, text)
        commits[subject] = repo.commit(subject)
    with one_engine(engine) as found:
        result = bisected("rowsum/torch_eager", good, "HEAD", "--metric", "device_hot", engine=found())
    assert result.status == 0, result.output
    slow, broken = commits["Mend it and do needless work"], commits["Break it"]
    assert f"the first bad commit is {slow} or one before it that cannot be told" in result.output
    assert broken[:10] in result.output and "passed over: broken: failed" in result.output
    assert "not finished" in result.output
    good_steps = [line for line in result.steps if "good  " in line]
    assert len(good_steps) == 1 and commits["Name the output"][:10] in good_steps[0], result.output
