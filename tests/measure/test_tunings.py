"""What autotuners learnt goes from one side to the other and from process to process, by the digest of the code."""

from __future__ import annotations

from groundspeed.backends.base import Opened
from groundspeed.measure.bench import Fault
from groundspeed.measure.contender import Contender, prepare
from groundspeed.measure.sides import share_tunings
from groundspeed.measure.tunings import Tunings


def test_a_tuning_is_kept_and_read_by_digest(tmp_path):
    tunings = Tunings(tmp_path / "deep" / "folder")
    assert tunings.read("abc") == {}
    tunings.write("abc", {})
    tunings.write("abc", {"kernel": []})
    assert not tunings.folder.exists()  # nothing learnt, nothing kept
    tunings.write("abc", {"kernel": [[[64, "fp32"], "BLOCK: 64"]]})
    tunings.write("abc", {"kernel": [[[64, "fp32"], "BLOCK: 64"], [[128, None], "BLOCK: 32"]]})
    assert Tunings(tunings.folder).read("abc") == {"kernel": [[[64, "fp32"], "BLOCK: 64"], [[128, None], "BLOCK: 32"]]}
    assert tunings.read("other") == {} and [path.name for path in tunings.folder.iterdir()] == ["abc.json"]


class Tuner:
    """An implementation whose first run of a key costs a tuning, counted."""

    def __init__(self, digest):
        self.digest, self.known, self.tuned = digest, {}, 0
        self.opened = Opened(
            prepare=lambda tensors: self.run,
            unsupported=lambda case: None,
            to_torch=lambda output: (output,),
            tuning=lambda: {"kernel": [[key, chosen] for key, chosen in self.known.items()]},
            adopt_tuning=lambda learnt: self.known.update(dict(learnt.get("kernel", ()))),
        )

    def run(self):
        if "n" not in self.known:
            self.tuned += 1
            self.known["n"] = f"chosen by {self.digest}"


class Known(Contender):
    """A contender whose digest is given."""

    @property
    def digest(self):
        return self.implementation.digest


def contender(tuner, folder):
    one = Known(tree=None, implementation=tuner, opened=tuner.opened, label="one")
    return share_tunings({"one": one}, folder)["one"]


def test_equal_code_is_tuned_once_and_changed_code_for_itself(tmp_path):
    base, head, later, changed = (Tuner(digest) for digest in ("same", "same", "same", "other"))
    for tuner in (base, head, later, changed):
        prepare(contender(tuner, str(tmp_path)), {}, "cpu")
    assert [tuner.tuned for tuner in (base, head, later, changed)] == [1, 0, 0, 1]
    assert later.known == {"n": "chosen by same"} and changed.known == {"n": "chosen by other"}


def test_without_a_folder_each_tunes_for_itself():
    base, head = Tuner("same"), Tuner("same")
    for tuner in (base, head):
        prepare(contender(tuner, ""), {}, "cpu")
    assert base.tuned == head.tuned == 1


def test_what_could_not_be_loaded_shares_nothing(tmp_path):
    fault = Fault("build", "no")
    assert share_tunings({"one": fault}, str(tmp_path)) == {"one": fault}
