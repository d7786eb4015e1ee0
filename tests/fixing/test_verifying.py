"""When a patch may be called verified."""

from __future__ import annotations

import pytest

from sawbones.fixing import pinned_child
from sawbones.fixing.editing import before
from sawbones.fixing.pinned import Kept
from sawbones.fixing.proposing import Patch, changed
from sawbones.fixing.recipes import Change
from sawbones.fixing.source import Source
from sawbones.fixing.verifying import Candidate, Tried, newly_ill, set_off
from sawbones.schema import Ending, Finding, Fix, Run

HEALED = Tried(True, (), (), "", {})
STILL_ILL = Tried(True, ("does-not-learn",), (), "", {})
FIRES_ANEW = Tried(True, (), ("loss.wrong-sign",), "", {})
GOOD_TEST = Kept("check", "fails", "passes")


def patch(unsafe: str = "") -> Patch:
    source = Source.of(b"a()\n", "train.py")
    change = Change("add b()", (before(source, source.tree.body[0], "b()"),), unsafe)
    return Patch("loop.no-step", change, changed([source], change))


@pytest.mark.parametrize(
    ("tried", "test", "together", "unsafe", "level"),
    [
        (HEALED, GOOD_TEST, None, "", "verified"),
        (HEALED, GOOD_TEST, HEALED, "", "verified"),
        (FIRES_ANEW, GOOD_TEST, None, "", "unsafe"),
        (HEALED, GOOD_TEST, None, "a person should look", "unsafe"),
        (HEALED, Kept("check", "passes", "was not run"), None, "", "unsafe"),
        (HEALED, Kept("check", "fails", "fails"), None, "", "unsafe"),
        (HEALED, Kept("plain", "fails", "could not be run"), None, "", "unsafe"),
        (STILL_ILL, GOOD_TEST, HEALED, "", "verified"),
        (STILL_ILL, GOOD_TEST, FIRES_ANEW, "", "unsafe"),
    ],
)
def test_verified_takes_the_cure_and_a_test_that_tells(tried, test, together, unsafe, level):
    finding = Finding("loop.no-step", "proven", 1.0, "", fix=Fix("in words"))
    fix = Candidate(finding, patch(unsafe), tried, test).judged(together).fix
    assert fix is not None and fix.patch
    assert fix.level == level
    assert fix.measured["test"] == {
        "kind": test.kind,
        "before": test.before,
        "after": test.after,
    }


def test_a_script_that_died_is_not_blamed_for_what_it_had_no_time_to_show():
    slow, thrown = "does-not-generalise", "non-finite"
    for kind, new in (("finished", {slow, thrown}), ("exception", {thrown})):
        died = Run("t.py", (), "", {}, Ending(kind))
        assert newly_ill(died, {"does-not-learn"}, {"does-not-learn", slow, thrown}) == new


def test_a_patch_that_does_not_heal_is_evidence_and_not_offered():
    finding = Finding("loop.no-step", "proven", 1.0, "", fix=Fix("in words"))
    refuted = Candidate(finding, patch(), STILL_ILL, GOOD_TEST).refuted
    assert refuted.fix == Fix("in words")
    assert "did not heal: add b()" in refuted.evidence[-1].text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("pass", pinned_child.PASSED),
        ("assert tmp_path.is_dir()", pinned_child.PASSED),
        ("assert not tmp_path.is_dir()", pinned_child.FAILED),
        ("raise FileNotFoundError", pinned_child.NOT_RUN),
    ],
)
def test_a_pinned_test_is_run_as_pytest_would(tmp_path, capsys, body, status):
    file = tmp_path / "test_it.py"
    file.write_text(f"from pathlib import Path\n\ndef test_it(tmp_path):\n    {body}\n")
    assert pinned_child.main(str(file)) == status


def test_of_several_patches_the_one_that_sets_nothing_off_is_taken():
    nothing = Tried(False, (), (), "", {})
    ranks = [t.rank for t in (nothing, STILL_ILL, FIRES_ANEW, HEALED)]
    assert ranks == sorted(set(ranks)) and ranks[0] == 0


def test_what_a_report_would_only_suspect_is_not_set_off_by_a_patch():
    found = [
        Finding("deployment.concept-drift", "likely", 1.0, ""),
        Finding("loss.wrong-sign", "suspected", 1.0, ""),
        Finding("loss.wrong-loss", "likely", 1.0, ""),
        Finding("loop.no-step", "likely", 1.0, ""),
    ]
    assert set_off(found, {"loop.no-step"}) == [found[2]]
