"""The same promises on a GPU: nothing changes, and the record is as full as on a CPU."""

import pytest
import torch
from tests.observe.deep import models
from torch.nn import functional as F

from sawbones.observe.deep import DeepObserver
from sawbones.observe.sites import SiteFinder

pytestmark = pytest.mark.gpu


def train(deep, amp, probe=False, steps=4):
    torch.manual_seed(0)
    model = models.SdpaGPT(vocab=512, width=128, heads=4, layers=3, context=256).cuda()
    ids = models.padded(8, 129, 512).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    losses, record = [], None
    for step in range(steps):
        observer = DeepObserver(step, 0, SiteFinder(), lambda: [model], probe) if deep else None
        if observer is not None:
            observer.start()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp):
            loss = F.cross_entropy(
                model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0
            )
        if observer is not None:
            observer.before_backward(loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if observer is not None:
            record = observer.stop()
        losses.append(loss.item())
    return losses, torch.cuda.get_rng_state(), record


@pytest.mark.parametrize("amp", [False, True])
def test_losses_and_random_streams_are_bit_identical_on_a_gpu(amp, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=False)
    try:
        bare, watched = train(False, amp), train(True, amp, probe=True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert bare[0] == watched[0] and torch.equal(bare[1], watched[1])
    record = watched[2]
    assert "errors" not in record.probes, record.probes["errors"]
    (found,) = record.influence
    assert found.future == 0.0 and found.past > 0.01 and found.other_examples == 0.0
    assert record.tokens[0].pad_id == 0 and record.tokens[0].pad_side == "right"
    assert record.attention[0].future_mass == 0.0 and record.losses[0].facts.copied_at == 1
    assert record.first_nonfinite is None and record.probes["causality"]["before"] == 0.0
    linear = next(op for op in record.ops if op.name == "linear")
    assert linear.outputs[0].max > linear.outputs[0].min and linear.outputs[0].std > 0


def test_the_first_non_finite_operator_is_found_on_a_gpu():
    model = torch.nn.Linear(5, 3).cuda()
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [model])
    observer.start()
    loss = torch.log(torch.relu(model(torch.randn(6, 5, device="cuda")) - 100)).mean()
    observer.before_backward(loss)
    record = observer.stop()
    assert (
        record.first_nonfinite["reason"] == "log of zero"
        and record.first_nonfinite["name"] == "log"
    )
