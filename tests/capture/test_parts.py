"""The parts of capture, each by itself."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.capture.conftest import environment

from sawbones.capture import edits
from sawbones.capture.bundle import read_bundle
from sawbones.capture.literals import Writing
from sawbones.capture.minimise import shortest_window, smallest
from sawbones.capture.operators import (
    Call,
    OperatorTrace,
    first_nonfinite,
    first_nonfinite_gradient,
)
from sawbones.capture.prints import fingerprint
from sawbones.capture.protocol import Protocol
from sawbones.capture.randomness import Streams, restore
from sawbones.capture.reduction import Reducer
from sawbones.capture.reproducer import in_a_fork
from sawbones.capture.spikes import Spikes


def test_streams_continue_where_they_were() -> None:
    streams = Streams()
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    random.gauss(0, 1)
    state = streams.read()

    def draw() -> tuple[float, ...]:
        return random.random(), random.gauss(0, 1), float(np.random.rand()), float(torch.rand(()))

    first = draw()
    draw()
    restore(state)
    assert draw() == first


def test_reading_the_streams_draws_nothing() -> None:
    before = random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state()
    Streams().read()
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tobytes() == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])


def test_a_spike_is_far_above_all_before() -> None:
    spikes = Spikes()
    assert all(spikes.saw(1.0 + 0.1 * (i % 7)) is None for i in range(60))
    assert spikes.saw(2.5) is None
    assert spikes.saw(9.0) is not None


def test_a_sample_that_spikes_in_every_epoch_is_seen_although_its_first_visit_came_too_early() -> (
    None
):
    spikes = Spikes()
    seen = [spikes.saw(3e7 if i % 30 == 5 else 2.0 + 0.1 * (i % 7)) is not None for i in range(90)]
    assert [i for i, hit in enumerate(seen) if hit] == [35, 65]


def test_a_loss_that_stays_high_is_not_a_spike_for_ever() -> None:
    spikes = Spikes()
    seen = [spikes.saw(1.0 if i < 40 else 30.0) is not None for i in range(120)]
    assert seen[40] and not any(seen[50:])


def test_smallest_finds_the_one_and_the_pair() -> None:
    assert smallest(range(100), lambda kept: 37 in kept) == [37]
    assert smallest(range(64), lambda kept: {5, 60} <= set(kept)) == [5, 60]
    assert smallest(range(10), lambda kept: False) == list(range(10))


def test_shortest_window() -> None:
    assert shortest_window(64, lambda start, size: start <= 20 < start + size) == (20, 1)
    assert shortest_window(64, lambda start, size: start <= 30 and start + size > 34) == (30, 5)


def test_edits_keep_what_belongs_together() -> None:
    batch = {
        "ids": torch.arange(12).reshape(3, 4),
        "target": torch.arange(9).reshape(3, 3),
        "names": ["a", "b", "c"],
        "scale": 2,
    }
    assert edits.num_examples(batch) == 3
    small = edits.apply(
        batch,
        [
            {"edit": "rows", "of": 3, "keep": [2]},
            {"edit": "window", "of": 4, "start": 1, "length": 2},
        ],
    )
    assert small["ids"].tolist() == [[9, 10]]
    assert small["target"].tolist() == [[7, 8]]
    assert small["names"] == ["c"]
    assert batch["ids"].shape == (3, 4)
    kept = edits.apply(batch, [{"edit": "keep", "paths": ["['ids']"], "elements": [5]}])
    assert kept["ids"].sum() == 5
    assert kept["target"].sum() == 36


def test_examples_that_lie_end_to_end_are_cut_where_they_lie() -> None:
    batch = [torch.arange(12).reshape(6, 2), torch.tensor([1, 2, 3]), torch.tensor([7, 8, 9])]
    points, lengths, labels = edits.apply(batch, [{"edit": "rows", "of": 3, "keep": [0, 2]}])
    assert points.tolist() == [[0, 1], [6, 7], [8, 9], [10, 11]]
    assert (lengths.tolist(), labels.tolist()) == ([1, 3], [7, 9])


def test_fingerprints_see_every_bit_and_type() -> None:
    tensor = torch.ones(3)
    other = tensor.clone()
    other[1] = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    prints = {
        fingerprint(t)
        for t in (tensor, other, tensor.double(), tensor.reshape(3, 1), tensor.bfloat16())
    }
    assert len(prints) == 5
    assert fingerprint(torch.tensor([float("nan")])) == fingerprint(torch.tensor([float("nan")]))


def test_the_operator_that_overflowed_is_named_not_the_nan_after_it() -> None:
    trace = OperatorTrace()
    with trace.stream:
        scores = torch.tensor([1.0, 200.0])
        powers = torch.exp(scores)
        powers / powers.sum()
    found = first_nonfinite(trace)
    assert found is not None
    assert found.name == "torch.exp"


def test_a_mask_is_not_blamed_but_the_row_that_is_all_mask() -> None:
    trace = OperatorTrace()
    with trace.stream:
        scores = torch.zeros(2, 3).masked_fill(torch.tensor([[True] * 3, [False] * 3]), -torch.inf)
        torch.nn.functional.softmax(scores, dim=-1).sum()
    found = first_nonfinite(trace)
    assert found is not None
    assert found.name == "torch.nn.functional.softmax"


def test_a_gradient_at_zero_is_found() -> None:
    trace = OperatorTrace()
    weight = torch.zeros(3, requires_grad=True)
    with trace.stream:
        (weight * 2).norm().sqrt().backward()
    found = first_nonfinite_gradient(trace)
    assert found is not None
    assert found[0].short == "sqrt"


def test_a_call_made_twice_is_told_by_its_order() -> None:
    protocol = Protocol()
    protocol.calls.extend(["scale", "backward", "unscale_", "unscale_"])
    lines = protocol.script("RuntimeError", "unscale_() has already been called", in_scaler=True)
    assert lines is not None
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        exec("\n".join(["import torch", *lines]), {})
    assert protocol.script("RuntimeError", "another", in_scaler=False) is None


def test_a_fork_that_dies_takes_nothing_with_it() -> None:
    assert in_a_fork(lambda: {"found": 1}) == {"found": 1}
    assert in_a_fork(lambda: os.kill(os.getpid(), signal.SIGKILL) or {}) is None


def test_a_call_is_cut_down_to_what_fails() -> None:
    torch.manual_seed(0)
    scores = torch.randn(6, 40, 30)
    scores[3, 17, 21] = 100.0
    call = Call("torch.exp", (scores,), {}, func=torch.exp)
    small = Reducer(call, lambda c: bool(c.again().isinf().any())).reduced()
    assert small.args[0].shape == (1, 1, 1)
    assert float(small.args[0]) == 100.0


def test_written_values_are_read_back_exactly() -> None:
    torch.manual_seed(0)
    for tensor in (
        torch.randn(3, 2),
        torch.randn(2).half(),
        torch.randn(40, 40).bfloat16(),
        torch.tensor([torch.inf, torch.nan]),
        torch.ones(9),
    ):
        writing = Writing()
        code = writing.call(Call("torch.clone", (tensor,), {}, func=torch.clone))
        scope: dict[str, object] = {}
        exec(
            "\n".join(["import torch", *writing.imports(), *writing.lines, f"found = {code}"]),
            scope,
        )
        assert torch.equal(torch.nan_to_num(scope["found"]), torch.nan_to_num(tensor))
        assert scope["found"].dtype is tensor.dtype


WATCHED = """
import torch, sawbones
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with sawbones.watch(model, out="watched") as w:
    for step in range(6):
        if step == 3:
            w.capture()
        x = torch.randn(5, 3)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(*w.bundles)
"""


def test_a_step_is_captured_by_hand(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WATCHED)
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    bundle = read_bundle(tmp_path / done.stdout.strip())
    assert (bundle.failure.kind, bundle.step) == ("by hand", 3)
    assert bundle.batches()[0]["values"]["args"][0].shape == (5, 3)


def test_a_single_number_that_says_another_stride_has_the_bits_it_has() -> None:
    number = torch.arange(6.0).reshape(2, 3)[:1, 1:2]
    strided = number.as_strided((1,), (3,))
    assert strided.is_contiguous() and strided.stride() == (3,)
    assert fingerprint(strided) == fingerprint(torch.tensor([1.0]))
