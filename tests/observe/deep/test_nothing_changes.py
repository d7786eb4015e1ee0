"""A deep step leaves the host run as it was: losses, random streams, gradients, buffers, modes."""

import copy

import pytest
import torch
from tests.observe.deep import models
from torch import nn
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode_stack

from sawbones.observe.deep import DeepObserver
from sawbones.observe.sites import SiteFinder


def _gpt():
    ids = models.tokens()
    model = models.SdpaGPT()
    return model, lambda m: F.cross_entropy(m(ids[:, :-1]).transpose(1, 2), ids[:, 1:])


def _nanogpt():
    ids = models.tokens()
    return models.SoftmaxGPT(), lambda m: m(ids[:, :-1], ids[:, 1:])[1]


def _classifier():
    ids = models.padded()
    return models.Classifier(), lambda m: F.cross_entropy(m(ids), torch.tensor([0, 1, 2, 0]))


def _translator():
    src, tgt = models.tokens(4, 10, 19).t(), models.tokens(4, 9, 19, seed=1).t()
    return models.Translator(), lambda m: F.cross_entropy(
        m(src, tgt[:-1]).reshape(-1, 19), tgt[1:].reshape(-1)
    )


def _convnet():
    images = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(3))
    return models.ConvNet(), lambda m: F.cross_entropy(m(images), torch.tensor([0, 1, 2, 3, 0, 1]))


def _tagger():
    ids = models.tokens(3, 9, 17)

    def loss(m):
        logs = F.log_softmax(m(ids[:, :-1]), -1)
        return -logs.gather(1, ids[:, 1:].reshape(-1, 1)).mean()

    return models.Tagger(), loss


def _checkpointed():
    ids = models.tokens()
    model = models.SoftmaxGPT()
    body = nn.Sequential(nn.Linear(29, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 29))
    whole = nn.ModuleList([model, body])

    def loss(m):
        logits = m[0](ids[:, :-1]).flatten(0, 1)
        logits = torch.utils.checkpoint.checkpoint(m[1], logits, use_reentrant=False)
        return F.cross_entropy(logits, ids[:, 1:].flatten())

    return whole, loss


def _train(model, make_loss, deep, steps=4, probe=True):
    torch.manual_seed(11)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        observer = DeepObserver(step, 0, SiteFinder(), lambda: [model], probe) if deep else None
        if observer is not None:
            observer.start()
        loss = make_loss(model)
        if observer is not None:
            observer.before_backward(loss)
        loss.backward()
        gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        optimizer.step()
        if observer is not None:
            record = observer.stop()
            notes = record.probes.get("errors", [])
            assert all("recomputes" in note for note in notes), notes
            assert record.ops and record.losses and (record.influence or notes)
        losses.append(loss.item())
    return losses, gradients, torch.random.get_rng_state(), [b.clone() for b in model.buffers()]


@pytest.mark.parametrize(
    "case", [_gpt, _nanogpt, _classifier, _translator, _convnet, _tagger, _checkpointed]
)
def test_losses_gradients_buffers_and_random_streams_are_bit_identical(case):
    model, make_loss = case()
    twin = copy.deepcopy(model)
    bare, watched = _train(twin, make_loss, deep=False), _train(model, make_loss, deep=True)
    assert bare[0] == watched[0]
    assert torch.equal(bare[2], watched[2])
    for mine, theirs in zip(bare[1] + bare[3], watched[1] + watched[3], strict=True):
        assert (mine is None and theirs is None) or torch.equal(mine, theirs)
    assert not _get_current_function_mode_stack()
    assert (
        not nn.modules.module._global_forward_hooks
        and not nn.modules.module._global_forward_pre_hooks
    )


def test_an_inference_pass_inside_of_the_step_takes_the_same_kernel():
    teacher = models.Classifier().eval()
    student = models.Classifier()
    ids = models.padded()

    def run(deep):
        observer = DeepObserver(0, 0, SiteFinder(), lambda: [student])
        if deep:
            observer.start()
        with torch.no_grad():
            goal = teacher(ids)
        torch.manual_seed(5)
        loss = F.mse_loss(student(ids), goal)
        if deep:
            observer.stop()
        return goal, loss

    (bare_goal, bare), (goal, watched) = run(False), run(True)
    assert torch.equal(bare_goal, goal) and torch.equal(bare, watched)


def test_hooks_of_the_user_run_once_and_the_influence_map_is_left_out():
    model = models.SdpaGPT()
    ids, seen = models.tokens(), []
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [model])
    observer.start()
    logits = model(ids[:, :-1])
    logits.register_hook(lambda g: seen.append(1))
    loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    observer.before_backward(loss)
    loss.backward()
    record = observer.stop()
    assert seen == [1]
    assert record.influence == () and any(
        "backward hooks" in text for text in record.probes["errors"]
    )


def test_stop_under_another_mode_takes_out_only_the_own_one():
    class Other(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    observer = DeepObserver(0, 0, SiteFinder(), list)
    observer.start()
    with Other() as other:
        first = observer.stop()
        assert [mode is other for mode in _get_current_function_mode_stack()] == [True]
    assert not _get_current_function_mode_stack()
    assert observer.stop() is first


def test_a_failing_analysis_is_noted_and_the_rest_stands(monkeypatch):
    from sawbones.observe.deep import attention

    def broken(*_):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(attention, "find", broken)
    model, make_loss = _gpt()
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [model])
    observer.start()
    loss = make_loss(model)
    observer.before_backward(loss)
    record = observer.stop()
    assert record.attention == () and record.losses and record.influence
    assert any("on purpose" in text for text in record.probes["errors"])


def test_compiled_models_are_left_alone():
    model = torch.compile(models.ConvNet(), backend="eager")
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [model])
    observer.start()
    assert not _get_current_function_mode_stack()
    assert observer.stop().probes["skipped"] == "torch.compile"


@pytest.mark.filterwarnings("ignore:Using `torch.compile")
@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_model_that_turns_out_to_be_compiled_is_left_alone_from_its_first_call():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = torch.compile(models.ConvNet(), backend="eager")
    observer = DeepObserver(0, 0, SiteFinder(), list)
    observer.start()
    model(torch.randn(2, 1, 8, 8)).sum().backward()
    frames = dict(torch._dynamo.utils.counters["frames"])
    assert observer.stop().probes["skipped"] == "torch.compile"
    model(torch.randn(2, 1, 8, 8))
    assert dict(torch._dynamo.utils.counters["frames"]) == frames
    torch._dynamo.utils.counters.clear()


@pytest.mark.skipif(
    torch.__version__.startswith("2.6."),
    reason="torch 2.6 notes the modes before it says that it compiles: hooks/compiling.py is earlier",
)
@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_compiled_function_ends_the_trace_when_it_is_compiled():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    layer = nn.Linear(4, 4)
    double = torch.compile(lambda x: torch.sin(x) * 2, backend="eager", fullgraph=True)
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [layer])
    observer.start()
    watched = double(layer(torch.ones(2, 4)))
    record = observer.stop()
    frames = dict(torch._dynamo.utils.counters["frames"])
    assert record.probes["skipped"] == "torch.compile"
    assert torch.equal(double(layer(torch.ones(2, 4))), watched)
    assert dict(torch._dynamo.utils.counters["frames"]) == frames
    torch._dynamo.utils.counters.clear()


def test_a_long_trace_keeps_the_way_from_the_loss_to_the_model():
    model = nn.Linear(3, 3)
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [model])
    observer.start()
    rows = torch.randn(4000, 3)
    x = torch.stack([rows[i] for i in range(4000)][-8:])
    h = model(x)
    for _ in range(6500):
        h = h * 0.999
    loss = ((h - x) ** 2).mean()
    observer.before_backward(loss)
    record = observer.stop()
    assert len(record.ops) == 6000 and record.ops[-1].name == "mean"
    assert sum(op.name == "__getitem__" for op in record.ops) <= 1500
    assert [found.fn for found in record.losses] == ["mse_loss"] and record.unreached == ()
