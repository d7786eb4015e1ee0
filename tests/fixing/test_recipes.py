"""Recipes take every name from the user's own code: runs are made by hand, scripts are ordinary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sawbones.faults import all_checks
from sawbones.fixing.proposing import propose
from sawbones.fixing.recipes import recipes
from sawbones.schema import Ending, Event, Evidence, Finding, Optimizer, Run, Site, Verdict


def event(seq: int, kind: str, line: int, **data: object) -> Event:
    return Event(seq, kind, 0, 0, "train", 0.0, Site("train.py", line), data=data)


def run(*events: Event, **fields: object) -> Run:
    return replace(Run("train.py", (), "", {}, Ending("finished"), events=events), **fields)


def patched(tmp_path: Path, text: str, fault: str, line: int, ran: Run, number: int = 0) -> str:
    (tmp_path / "train.py").write_text(text)
    found = Finding(fault, "proven", 1.0, "", (Site("train.py", line),))
    patches = propose(found, ran, tmp_path, strict=True).patches
    assert patches, "no patch"
    new = patches[number].files[0][1]
    compile(new.text, "train.py", "exec")
    return new.text


@pytest.mark.parametrize("name", ["opt", "self.opt", 'opts["net"]', "state.optim[0]", "sgd_"])
def test_gradients_are_cleared_by_the_name_that_steps(tmp_path, name):
    text = f"for x in data:\n    crit(x).backward()\n    {name}.step()\n"
    ran = run(event(1, "backward", 2), event(2, "step", 3, optimizer=0, uncleared=4))
    new = patched(tmp_path, text, "loop.no-zero-grad", 2, ran)
    assert new == text.replace("    crit", f"    {name}.zero_grad()\n    crit")


def test_behind_the_step_where_backward_is_elsewhere(tmp_path):
    text = "def back(l):\n    l.backward()\n\ndef turn(o):\n    o.step()\n"
    ran = run(event(1, "backward", 2), event(2, "step", 5, optimizer=0, uncleared=4))
    new = patched(tmp_path, text, "loop.no-zero-grad", 2, ran)
    assert new == text + "    o.zero_grad()\n"


def test_through_a_scaler_the_optimizer_is_its_argument(tmp_path):
    text = "scaler_.scale(l).backward()\nclip(p)\nscaler_.step(self.o)\n"
    ran = run(
        event(1, "scale", 1),
        event(2, "clip", 2),
        event(3, "scaler_step", 3, optimizer=0),
        event(4, "step", 3, optimizer=0),
    )
    new = patched(tmp_path, text, "loop.clip-before-unscale", 2, ran)
    assert new == text.replace("clip(p)", "scaler_.unscale_(self.o)\nclip(p)")


def test_a_step_past_the_scaler_goes_through_it(tmp_path):
    text = "gs.scale(crit).backward()\nopt.step()\n"
    ran = run(event(1, "scale", 1), event(2, "step", 2, optimizer=0))
    new = patched(tmp_path, text, "loop.scaler-misuse", 2, ran)
    assert new == "gs.scale(crit).backward()\ngs.step(opt)\ngs.update()\n"


def test_a_late_clip_moves_in_front_of_the_step(tmp_path):
    text = "l.backward()\nopt.step()\nclip_(net.parameters(), 1.0)  # calm\n"
    ran = run(event(1, "step", 2, optimizer=0), event(2, "clip", 3))
    new = patched(tmp_path, text, "loop.clip-after-step", 3, ran)
    assert new == "l.backward()\nclip_(net.parameters(), 1.0)  # calm\nopt.step()\n"


def test_the_loss_is_divided_by_the_name_in_the_condition(tmp_path):
    text = (
        "for i, b in enumerate(dl):\n    crit(b).backward()\n    if (i + 1) % PARTS == 0:\n"
        "        o.step()\n"
    )
    ran = run(*(event(i, "backward", 2) for i in range(4)), event(5, "step", 4, optimizer=0))
    new = patched(tmp_path, text, "loop.accumulation-unscaled", 2, ran)
    assert "    (crit(b) / PARTS).backward()\n" in new
    new = patched(tmp_path, text, "loop.accumulation-remainder", 4, ran)
    assert "    if (i + 1) % PARTS == 0 or i + 1 == len(dl):\n" in new


@pytest.mark.parametrize(
    ("written", "changed"),
    [
        ("lr=2.0", "lr=0.2"),
        ("lr=RATE", "lr=RATE"),
        ("lr=cfg.rate", "lr=cfg.rate * 0.1"),
    ],
)
def test_the_rate_is_changed_where_its_number_stands(tmp_path, written, changed):
    text = f"RATE, STEPS = 2.0, 9\nsgd = SGD(net.parameters(), {written})\n"
    made = Optimizer(0, "SGD", {"lr": 2.0}, ({"lr": 2.0},), Site("train.py", 2))
    new = patched(tmp_path, text, "optimizer.lr-too-high", 2, run(optimizers=(made,)))
    assert changed in new
    if written == "lr=RATE":
        assert new.startswith("RATE, STEPS = 0.2, 9\n")


@pytest.mark.parametrize(
    ("fault", "old", "new"),
    [
        ("loss.double-softmax", "return F.softmax(self.head(x), dim=1)", "return self.head(x)"),
        ("loss.double-softmax", "s = net(x).softmax(-1)", "s = net(x)"),
        ("loss.double-sigmoid", "p = torch.sigmoid(net(x))", "p = net(x)"),
        (
            "loss.reduction-sum",
            'l = crit(a, b, reduction="sum")',
            'l = crit(a, b, reduction="mean")',
        ),
        ("loss.reduction-sum", "l = -picked.sum()", "l = -picked.mean()"),
        (
            "pipeline.no-shuffle",
            "dl = DataLoader(rows, 8)",
            "dl = DataLoader(rows, 8, shuffle=True)",
        ),
        ("model.unstable-norm", "y = x / torch.sqrt(v)", "y = x / torch.sqrt(v + 1e-5)"),
        ("loss.unstable-log", "l = torch.log(p).mean()", "l = torch.log(p.clamp_min(1e-7)).mean()"),
        ("model.unstable-norm", "y = x / (d + g)", "y = x / (d + g + 1e-5)"),
        ("model.unstable-norm", "y = x / (x - m).sqrt()", "y = x / (x - m + 1e-5).sqrt()"),
        ("model.mask-polarity", "m = ids != PAD", "m = ids == PAD"),
        ("model.mask-polarity", "h = a(x, attn_mask=word)", "h = a(x, attn_mask=~word)"),
        ("model.mask-polarity", "h = a(x, attn_mask=i != 0)", "h = a(x, attn_mask=i == 0)"),
        ("model.mask-shape", "m = k[:, None, :, None]", "m = k[:, None, None, :]"),
        ("model.mask-shape", "m = k.repeat(H, 1, 1)", "m = k.repeat_interleave(H, dim=0)"),
        ("model.detached-graph", "z = q.rsample().detach()", "z = q.rsample()"),
        ("model.detached-graph", "z = torch.normal(m, s)", "z = (m + s * torch.randn_like(m))"),
        ("model.inplace-modified", "x += y", "x = x + y"),
        ("model.inplace-modified", "x.relu_()", "x = x.relu()"),
        ("model.inplace-modified", "x = F.relu(x, inplace=True)", "x = F.relu(x, inplace=False)"),
        ("loop.memory-leak", "total += crit(x)", "total += crit(x).detach()"),
        ("loop.memory-leak", "self.h.append(x)", "self.h.append(x.detach())"),
        ("pipeline.truncation", "y = (x + [EOS])[:N]", "y = x[: N - 1] + [EOS]"),
        ("loss.weighting", "l = F.nll_loss(x, y, weight=w)", "l = F.nll_loss(x, y, weight=1 / w)"),
        ("model.causal-leak", "m = torch.tril(a, diagonal=1)", "m = torch.tril(a, diagonal=0)"),
        ("model.attention-scale", "s = q @ k.mT", "s = (q @ k.mT / q.shape[-1] ** 0.5)"),
    ],
)
def test_local_changes(tmp_path, fault, old, new):
    head = "import torch\nimport torch.nn.functional as F\n"
    text = f"{head}def f(self, x):\n    {old}\n"
    assert patched(tmp_path, text, fault, 4, run()) == text.replace(old, new)


def test_a_file_that_changed_since_the_run_is_left_alone(tmp_path):
    (tmp_path / "train.py").write_text("s = net(x).softmax(-1)\n")
    site = Site("train.py", 1, code="s = net(y).softmax(-1)")
    found = Finding("loss.double-softmax", "proven", 1.0, "", (site,))
    assert propose(found, run(), tmp_path, strict=True).patches == ()


def test_files_outside_of_the_working_folder_are_not_touched(tmp_path):
    (tmp_path / "lib.py").write_text("s = net(x).softmax(-1)\n")
    inner = tmp_path / "work"
    inner.mkdir()
    found = Finding("loss.double-softmax", "proven", 1.0, "", (Site("../lib.py", 1),))
    assert propose(found, run(), inner, strict=True).patches == ()


def test_every_recipe_belongs_to_a_fault_and_survives_a_run_without_anything(tmp_path):
    known = {check.fault for check in all_checks()}
    assert set(recipes()) <= known
    for fault in recipes():
        found = Finding(fault, "proven", 1.0, "", (Site("gone.py", 3),))
        assert propose(found, run(), tmp_path, strict=True).patches == (), fault


def test_an_assignment_that_does_nothing_is_not_left_behind(tmp_path):
    text = "def f(s):\n    s = s.softmax(-1)\n    return s\n"
    new = patched(tmp_path, text, "loss.double-softmax", 2, run())
    assert new == "def f(s):\n    return s\n"
    text = "def f(s):\n    s = s.softmax(-1)  # why\n    return s\n"
    new = patched(tmp_path, text, "loss.double-softmax", 2, run())
    assert new == "def f(s):\n    s = s  # why\n    return s\n"


def test_numbers_of_a_trial_are_used_as_they_were_tried(tmp_path):
    made = Optimizer(0, "SGD", {"lr": 2.0}, ({"lr": 2.0},), Site("train.py", 1))
    text = "o = SGD(p, lr=2.0)\nl.backward()\no.step()\n"
    ran = run(event(1, "backward", 2), event(2, "step", 3, optimizer=0), optimizers=(made,))
    for fault, details, changed in (
        ("optimizer.lr-too-high", {"factor": 0.01}, "lr=0.02)"),
        ("optimizer.lr-too-low", {"factor": 10.0}, "lr=20.0)"),
        ("loop.exploding-gradients", {"max_norm": 1.0}, "max_norm=1)"),
    ):
        (tmp_path / "train.py").write_text(text)
        verdict = Verdict("t", "confirmed", "", details=details)
        found = Finding(fault, "proven", 1.0, "", (Site("train.py", 1),), verdict=verdict)
        patches = propose(found, ran, tmp_path, strict=True).patches
        assert changed in patches[0].files[0][1].text


def test_what_a_person_has_to_decide_names_choices_and_their_cost(tmp_path):
    asked = 0
    for fault in recipes():
        found = Finding(fault, "proven", 1.0, "", (Site("gone.py", 3),))
        decide = propose(found, run(), tmp_path, strict=True).decide
        if decide is not None:
            asked += 1
            assert decide.text.startswith(("Decide ", "Choose ")) and len(decide.text) > 100, fault
    assert asked >= 20


@pytest.mark.parametrize("fault", ["model.position-bounds", "pipeline.token-out-of-vocab"])
def test_a_table_gets_as_many_rows_as_the_largest_id_needs(tmp_path, fault):
    (tmp_path / "train.py").write_text("table = nn.Embedding(8, 16)\n")
    asked = Evidence("id 11 of a table of 8 rows", value=11, expected=7)
    found = Finding(fault, "proven", 1.0, "", (Site("train.py", 1),), (asked,))
    patches = propose(found, run(), tmp_path, strict=True).patches
    assert patches[0].files[0][1].text == "table = nn.Embedding(12, 16)\n"


@pytest.mark.parametrize("fault", ["model.bad-init", "model.dead-units"])
def test_the_statement_that_overwrites_the_first_weights_goes(tmp_path, fault):
    text = "net = Net()\nnn.init.normal_(net.weight, std=9)\ntrain(net)\n"
    assert patched(tmp_path, text, fault, 2, run()) == "net = Net()\ntrain(net)\n"
