"""Recipes take every name from the user's own code: runs are made by hand, scripts are ordinary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sawbones.faults import all_checks
from sawbones.fixing.proposing import propose
from sawbones.fixing.recipes import recipes
from sawbones.schema import (
    Ending,
    Event,
    Evidence,
    Finding,
    Optimizer,
    Run,
    Site,
    Tensor,
    Verdict,
)
from sawbones.schema.loaded import KeptWeights
from sawbones.schema.loader import Loader
from sawbones.schema.one_off import DataCode
from sawbones.schema.samples import Samples, TokenRows


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


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (
            "for x in data:\n    s = GradScaler()\n    s.step(o)\n",
            "s = GradScaler()\nfor x in data:\n    s.step(o)\n",
        ),
        (
            "class T:\n    def __init__(self):\n        self.o = 1\n    def turn(self):\n"
            "        s = GradScaler()\n        s.step(self.o)\n",
            "class T:\n    def __init__(self):\n        self.o = 1\n        self.s = GradScaler()\n"
            "    def turn(self):\n        self.s.step(self.o)\n",
        ),
        (
            "def turn(x):\n    s = GradScaler()\n    s.step(o)\n",
            "s = GradScaler()\n\n\ndef turn(x):\n    s.step(o)\n",
        ),
    ],
)
def test_a_scaler_is_made_once(tmp_path, text, changed):
    line = text[: text.index("GradScaler")].count("\n") + 1
    assert patched(tmp_path, text, "loop.scaler-misuse", line, run()) == changed


def test_the_second_optimizer_goes_through_the_scaler_too(tmp_path):
    text = "s.scale(l).backward()\ns.step(a)\nb.step()\ns.update()\n"
    ran = run(
        event(1, "scale", 1),
        event(2, "scaler_step", 2, optimizer=0),
        event(3, "step", 2, optimizer=0),
        event(4, "step", 3, optimizer=1),
        event(5, "scaler_update", 4),
    )
    new = patched(tmp_path, text, "loop.scaler-misuse", 3, ran)
    assert new == text.replace("b.step()", "s.step(b)")


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


def test_what_is_left_over_is_applied_behind_a_loop_that_counts_nothing(tmp_path):
    text = (
        "for b in dl:\n    crit(b).backward()\n    seen += 1\n    if seen == PARTS:\n"
        "        o.step()\n        seen = 0\nsave(net)\n"
    )
    ran = run(event(1, "backward", 2), event(2, "step", 5, optimizer=0))
    new = patched(tmp_path, text, "loop.accumulation-remainder", 5, ran)
    assert new == text.replace("save", "if seen:\n    o.step()\n    seen = 0\nsave")


def test_what_is_left_over_is_applied_through_the_object_that_counts(tmp_path):
    text = (
        "class Sum:\n    def add(self, l):\n        l.backward()\n        self.n += 1\n"
        "        if self.n == 4:\n            self.apply()\n"
        "    def apply(self):\n        self.o.step()\n        self.n = 0\n"
        "for b in dl:\n    total.add(crit(b))\n"
    )
    ran = run(event(1, "backward", 3), event(2, "step", 8, optimizer=0))
    new = patched(tmp_path, text, "loop.accumulation-remainder", 8, ran)
    assert new == text + "if total.n:\n    total.apply()\n"


def test_parameters_that_were_left_out_are_handed_over(tmp_path):
    tensors = tuple(
        Tensor(i, name, (4,), "float32", True, "", held)
        for i, (name, held) in enumerate([("body.w", 0), ("head.0.w", -1), ("scale", -1)])
    )
    made = Optimizer(0, "SGD", {}, ({}, {}), Site("train.py", 3))
    text = "net = Net()\nparts = groups(net)\nopt = SGD(parts)\nnet(x)\n"
    ran = run(event(1, "forward", 4), optimizers=(made,), tensors=tensors)
    new = patched(tmp_path, text, "optimizer.missing-params", 3, ran)
    more = '[*parts, {"params": [*net.head.parameters(), net.scale]}]'
    assert new == text.replace("SGD(parts)", f"SGD({more})")
    one = run(event(1, "forward", 4), optimizers=(replace(made, groups=({},)),), tensors=tensors)
    new = patched(tmp_path, text, "optimizer.missing-params", 3, one)
    assert new == text.replace("SGD(parts)", "SGD(net.parameters())")


@pytest.mark.parametrize(
    ("rest", "changed"),
    [
        # The change is a method of the model: the optimizer goes behind its call.
        ("opt = SGD(net.p)\nnet.grow()\n", "net.grow()\nopt = SGD(net.p)\n"),
        # The optimizer is in use before the change: that goes in front of both.
        (
            "opt = SGD(net.p)\nplan = Plan(opt)\nnet.grow()\n",
            "net.grow()\nopt = SGD(net.p)\nplan = Plan(opt)\n",
        ),
    ],
)
def test_the_optimizer_is_built_after_the_last_change_of_the_model(tmp_path, rest, changed):
    head = "class Net:\n    def grow(self):\n        self.head = Linear()\nnet = Net()\n"
    (tmp_path / "train.py").write_text(head + rest)
    where = (Site("train.py", 5), Site("train.py", 3, "Net.grow"))
    found = Finding("optimizer.stale-params", "proven", 1.0, "", where)
    patches = propose(found, run(), tmp_path, strict=True).patches
    assert patches[0].files[0][1].text == head + changed


def test_the_mode_is_not_set_in_a_function_that_evaluation_calls_too(tmp_path):
    text = (
        "def score(x):\n    return crit(net(x))\n\ndef look(x):\n    net.eval()\n"
        "    return score(x)\n\nfor x in data:\n    look(x)\n    l = score(x)\n    l.backward()\n"
    )
    shared = event(1, "forward", 2)
    ran = run(
        replace(event(0, "mode", 5, training=False), site=Site("train.py", 5, "look")),
        shared,
        replace(shared, seq=2, phase="eval"),
        event(3, "backward", 11),
    )
    new = patched(tmp_path, text, "loop.train-in-eval-mode", 2, ran)
    assert new == text.replace("    l = score", "    net.train()\n    l = score")


def test_a_worker_gets_a_function_of_the_top_level(tmp_path):
    text = "def main():\n    rows = Rows(lambda r: r - MEAN)\n"
    new = patched(tmp_path, text, "pipeline.worker-crash", 2, run())
    assert new == (
        "def prepared(r):\n    return r - MEAN\n\n\ndef main():\n    rows = Rows(prepared)\n"
    )
    (tmp_path / "train.py").write_text("def main(mean):\n    rows = Rows(lambda r: r - mean)\n")
    found = Finding("pipeline.worker-crash", "proven", 1.0, "", (Site("train.py", 2),))
    assert propose(found, run(), tmp_path, strict=True).patches == ()


def test_a_text_is_ended_after_it_is_cut_where_its_end_was_put_on_before(tmp_path):
    text = "def f(x):\n    ids = [BOS] + x + [EOS]\n    return ids[: N - 4]\n"
    new = patched(tmp_path, text, "pipeline.truncation", 3, run())
    assert new == "def f(x):\n    ids = ([BOS] + x)\n    return ids[: N - 4 - 1] + [EOS]\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "opt = A(net.parameters(), lr=1)",
            'opt = A([{"params": [p for p in net.parameters() if p.ndim > 1]}, '
            '{"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0}], lr=1)',
        ),
        (
            'opt = A([{"params": net.p, "weight_decay": W}])',
            'opt = A([{"params": [p for p in net.p if p.ndim > 1], "weight_decay": W}, '
            '{"params": [p for p in net.p if p.ndim < 2], "weight_decay": 0.0}])',
        ),
    ],
)
def test_vectors_get_a_group_without_decay(tmp_path, old, new):
    made = Optimizer(0, "A", {}, ({},), Site("train.py", 1))
    tensors = tuple(
        Tensor(i, f"w{i}", shape, "float32", True, "", 0, 0, 0.1)
        for i, shape in enumerate([(4, 4), (4,)])
    )
    ran = run(optimizers=(made,), tensors=tensors)
    found = patched(tmp_path, old + "\n", "optimizer.decay-on-norm-bias", 1, ran)
    assert found == new + "\n"


def test_a_group_of_vectors_alone_loses_its_decay(tmp_path):
    text = (
        "def groups(m):\n    return [{'params': a, 'weight_decay': W}, "
        "{'params': b, 'weight_decay': W}]\nopt = A(groups(net))\n"
    )
    made = Optimizer(0, "A", {}, ({}, {}), Site("train.py", 3))
    tensors = tuple(
        Tensor(i, f"w{i}", shape, "float32", True, "", 0, i, 0.1)
        for i, shape in enumerate([(4, 4), (4,)])
    )
    ran = run(optimizers=(made,), tensors=tensors)
    new = patched(tmp_path, text, "optimizer.decay-on-norm-bias", 3, ran)
    assert new == text.replace("b, 'weight_decay': W", "b, 'weight_decay': 0.0")


def test_more_of_a_text_is_let_through_where_its_limit_is_written(tmp_path):
    rows = TokenRows(batches=9, lengths=(24, 24, 7))
    ran = run(samples=Samples(rows=rows))
    new = patched(tmp_path, "LIMIT = 25\nx = ids[:LIMIT]\n", "pipeline.truncation", 1, ran)
    assert new == "LIMIT = 50\nx = ids[:LIMIT]\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s = GradScaler(enabled=False)", "s = GradScaler()"),
        ("a = autocast('cpu', torch.float16)", "a = autocast('cpu', torch.bfloat16)"),
        ("a = autocast('cpu', dtype=kinds[k])", "a = autocast('cpu', dtype=torch.bfloat16)"),
        ("d = torch.half; a = autocast('cpu', d)", "d = torch.bfloat16; a = autocast('cpu', d)"),
    ],
)
def test_half_precision_is_scaled_or_left(tmp_path, old, new):
    text = f"import torch\n{old}\n"
    assert patched(tmp_path, text, "loop.amp-no-scaler", 2, run()) == text.replace(old, new)


def test_rows_of_a_loop_over_slices_are_drawn(tmp_path):
    text = "import torch\nfor i in range(0, len(x), 8):\n    l = f(x[i : i + 8], y[i : i + 8])\n"
    new = patched(tmp_path, text, "pipeline.no-shuffle", 3, run())
    assert new == (
        "import torch\norder = torch.randperm(len(x))\nfor i in range(0, len(x), 8):\n"
        "    l = f(x[order[i : i + 8]], y[order[i : i + 8]])\n"
    )


def test_every_worker_gets_a_generator_of_its_own(tmp_path):
    text = (
        "import torch\nclass Rows:\n    def __init__(self):\n        self.g = default_rng(3)\n"
        "    def __getitem__(self, i):\n        return self.g.normal()\n\n"
        "dl = DataLoader(Rows(), num_workers=2)\n"
    )
    loader = Loader(0, 1, 2, False, "", None, "", "Rows", 9, 9, Site("train.py", 8))
    ran = run(loaders=(loader,), data_code=DataCode(reads=("train.py", 5, 6)))
    new = patched(tmp_path, text, "pipeline.worker-seed", 8, ran)
    assert new == text.replace(
        "dl = DataLoader(Rows(), num_workers=2)",
        "def seed_worker(number):\n    torch.utils.data.get_worker_info().dataset.g = "
        "default_rng(torch.initial_seed() % 2**32)\n\n\n"
        "dl = DataLoader(Rows(), num_workers=2, worker_init_fn=seed_worker)",
    )


def test_what_a_trial_has_shown_is_no_matter_of_taste(tmp_path):
    text = "opt = Adam(p, eps=9.0)\n"
    (tmp_path / "train.py").write_text(text)
    site = Site("train.py", 1)
    ran = run(optimizers=(Optimizer(0, "Adam", {}, ({},), site),))
    found = Finding("optimizer.bad-moments", "likely", 1.0, "", (site,))
    assert propose(found, ran, tmp_path, strict=True).patches[0].level == "unsafe"
    shown = replace(found, status="proven", verdict=Verdict("t", "confirmed", ""))
    assert propose(shown, ran, tmp_path, strict=True).patches[0].level == "safe"


def test_rows_of_a_computed_table_are_added_where_the_size_is_computed(tmp_path):
    text = "size = len(words)\ntable = nn.Embedding(size, 16)\nhead = nn.Linear(16, size)\n"
    (tmp_path / "train.py").write_text(text)
    asked = Evidence("id 11 of a table of 8 rows", value=11, expected=7)
    site = Site("train.py", 2)
    found = Finding("pipeline.token-out-of-vocab", "proven", 1.0, "", (site,), (asked,))
    patches = propose(found, run(), tmp_path, strict=True).patches
    assert patches[0].files[0][1].text == text.replace("len(words)", "len(words) + 4")
    assert patches[0].level == "safe"


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
        ("loop.nondeterminism", "ids = list(set(x))", "ids = sorted(set(x))"),
        ("loop.nondeterminism", "ids = {w for w in x}", "ids = sorted({w for w in x})"),
        ("loop.nondeterminism", "a = os.listdir(x)", "a = sorted(os.listdir(x))"),
        ("loop.nondeterminism", "g = Random(time.time_ns())", "g = Random(0)"),
        ("loop.nondeterminism", "a = x.sample(9)", "a = x.sample(9, random_state=0)"),
        ("pipeline.no-shuffle", "order = torch.arange(9)", "order = torch.randperm(9)"),
        ("pipeline.padding-side", "y = [0] * n + x", "y = x + [0] * n"),
        ("pipeline.padding-side", "y = F.pad(x, (n, 0))", "y = F.pad(x, (0, n))"),
        ("pipeline.padding-side", "y[i, -len(x):] = x", "y[i, :len(x)] = x"),
        ("pipeline.padding-side", "y[i, w - n:] = x", "y[i, :n] = x"),
        (
            "pipeline.padding-side",
            "y = torch.cat([x.new_zeros(n), x])",
            "y = torch.cat([x, x.new_zeros(n)])",
        ),
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


@pytest.mark.parametrize("kept", ["weights", "copy.copy(weights)"])
def test_what_is_kept_at_the_best_score_is_copied_in_depth(tmp_path, kept):
    text = f"import copy\nif score < best:\n    held = {kept}\n"
    site = Site("train.py", 3)
    ran = run(kept_weights=(KeptWeights(2, 2, 2, 1, 9, site, site),))
    new = patched(tmp_path, text, "loop.snapshot-not-copied", 3, ran)
    assert new.endswith("held = copy.deepcopy(weights)\n")
