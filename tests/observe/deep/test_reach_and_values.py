"""What the loss reaches, what runs outside of the model, where values stop being finite, and what a
crash leaves behind.
"""

import pytest
import torch
from tests.observe.deep import models
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.observe.deep import DeepObserver
from sawbones.observe.sites import SiteFinder

INPUTS = torch.randn(6, 5, generator=torch.Generator().manual_seed(2))


class _PlainList(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(5, 5), nn.Linear(5, 5)]
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


def test_modules_in_a_plain_list_are_found_with_the_line_that_runs_them():
    model = _PlainList()
    record = observe(model, lambda: model(INPUTS).mean())
    found = [
        (m["class"], m["num_params"], m["trainable"], m["reached"]) for m in record.unregistered
    ]
    assert found == [("Linear", 30, 30, True)] * 2
    assert "layer(x)" in record.unregistered[0]["site"].code


def test_registered_modules_and_separate_roots_are_not_reported():
    a, b = nn.Linear(5, 5), nn.Linear(5, 1)
    record = observe([a, b], lambda: b(torch.tanh(a(INPUTS))).mean())
    assert record.unregistered == () and record.unreached == ()


class _Cut(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.body, self.head, self.how = nn.Linear(5, 5), nn.Linear(5, 1), how

    def forward(self, x):
        if self.how == "no_grad":
            with torch.no_grad():
                h = self.body(x)
        else:
            h = self.body(x)
            h = h.detach() if self.how == "detach" else h.data if self.how == "data" else h
        return self.head(h)


@pytest.mark.parametrize("how", ["detach", "data", "no_grad"])
def test_a_cut_graph_names_the_parameters_before_it_and_the_place(how):
    model = _Cut(how)
    record = observe(model, lambda: model(INPUTS).mean())
    assert set(record.unreached) == {"body.weight", "body.bias"}
    cut = record.probes["cuts"][0]
    assert cut["feeds_loss"] and cut["site"].function == "forward"
    assert cut["no_grad"] if how == "no_grad" else cut["name"] == how
    whole = _Cut("")
    assert observe(whole, lambda: whole(INPUTS).mean()).unreached == ()


def _nonfinite(make):
    model = nn.Linear(5, 3)
    return observe(model, lambda: make(model(INPUTS)), backward=False).first_nonfinite


@pytest.mark.parametrize(
    ("make", "name", "reason"),
    [
        (lambda z: torch.log(torch.relu(z)).mean(), "log", "log of zero"),
        (lambda z: torch.exp(z * 1000).mean(), "exp", "exp overflow"),
        (lambda z: (z / (z - z)).mean(), "div", "division by zero"),
        (lambda z: torch.sqrt(z - 10).mean(), "sqrt", "root of a negative number"),
        (
            lambda z: z.masked_fill(z == z, -torch.inf).softmax(-1).mean(),
            "softmax",
            "fully masked softmax row",
        ),
    ],
)
def test_the_first_non_finite_operator_and_its_cause(make, name, reason):
    found = _nonfinite(make)
    assert (found["name"], found["reason"], found["phase"]) == (name, reason, "forward")
    assert (
        found["site"].function == "<lambda>" and found["inputs"][0]["max"] is not None
    ) or name == "softmax"


def test_a_mask_of_minus_infinity_is_no_accident():
    model, ids = models.SoftmaxGPT(), models.tokens()
    assert observe(model, lambda: model(ids[:, :-1], ids[:, 1:])[1]).first_nonfinite is None
    model = models.Translator()
    src, tgt = models.tokens(4, 10, 19).t(), models.tokens(4, 9, 19).t()
    assert (
        observe(
            model, lambda: F.cross_entropy(model(src, tgt).flatten(0, 1), tgt.flatten())
        ).first_nonfinite
        is None
    )


def test_bad_inputs_and_broken_weights_are_told_apart():
    model = nn.Linear(5, 3)
    bad = INPUTS.clone()
    bad[0, 0] = torch.nan
    assert (
        observe(model, lambda: model(bad).mean(), backward=False).first_nonfinite["reason"]
        == "bad input"
    )
    with torch.no_grad():
        model.weight[0, 0] = torch.inf
    assert (
        observe(model, lambda: model(INPUTS).mean(), backward=False).first_nonfinite["reason"]
        == "weights already non-finite"
    )


def test_a_gradient_that_breaks_at_zero_is_found_before_the_backward():
    found = _nonfinite(lambda z: torch.sqrt(torch.relu(z - 100)).mean())
    assert (found["name"], found["phase"]) == ("sqrt", "backward")
    assert _nonfinite(lambda z: torch.sqrt(torch.relu(z) + 1e-6).mean()) is None


def test_a_broken_gradient_counts_for_more_than_an_infinity_that_a_minimum_leaves_out():
    def nearest(guard):
        def make(z):
            apart = ((z[:, None] - z[None]).square().sum(-1) + guard).sqrt()
            return apart.masked_fill(torch.eye(len(z)) > 0, torch.inf).min(1).values.mean()

        return _nonfinite(make)

    found = nearest(0.0)
    assert (found["name"], found["phase"]) == ("sqrt", "backward")
    assert nearest(1e-6)["name"] == "masked_fill"  # stats/failures.py asks what came of it


def test_dead_and_saturated_units():
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    with torch.no_grad():
        model[0].bias[:4] = -100.0
        model[2].weight.mul_(100.0)
        model[2].bias.add_(50.0)
    record = observe(model, lambda: torch.sigmoid(model(INPUTS) * 1e4).mean())
    seen = {a.cls: a for a in record.activations}
    assert seen["ReLU"].dead_units >= 0.5 and seen["ReLU"].module == "1"
    assert seen["Tanh"].saturated_share > 0.9 and seen["sigmoid"].saturated_share > 0.9
    assert seen["Linear"].saturated_share == 0.0 and len(seen["Tanh"].spread) == 5


def test_the_trace_names_place_module_shapes_and_arguments():
    model, ids = models.SoftmaxGPT(), models.tokens()
    record = observe(model, lambda: model(ids[:, :-1], ids[:, 1:])[1])
    softmax = next(op for op in record.ops if op.name == "softmax")
    assert (
        softmax.args["dim"] == -1
        and softmax.inputs[0].shape == (4, 2, 11, 11)
        and softmax.module == "SoftmaxGPT"
    )
    assert softmax.site.code.startswith("att = F.softmax") and softmax.outputs[0].max <= 1.0
    assert next(op for op in record.ops if op.name == "linear").module == "q"
    assert next(op for op in record.ops if op.name == "__getitem__").args["index"] == "[:, :-1]"
    fill = next(op for op in record.ops if op.name == "masked_fill")
    assert (
        fill.args["value"] == float("-inf")
        and fill.outputs[0].nonfinite > 0
        and fill.outputs[0].min is not None
    )
    assert fill.outputs[0].id == softmax.inputs[0].id


def test_a_shape_error_leaves_the_chain_of_modules_and_the_operator():
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Sequential(nn.Linear(8, 2)))
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [model])
    observer.start()
    with pytest.raises(RuntimeError):
        model(INPUTS)
    context = observer.crash_context()
    observer.stop()
    chain = [(m["path"], m["class"], m["failed"]) for m in context["modules"]]
    assert chain == [
        ("Sequential", "Sequential", True),
        ("0", "Linear", False),
        ("1", "ReLU", False),
        ("2", "Sequential", True),
        ("2.0", "Linear", True),
    ]
    assert context["modules"][1]["outputs"] == [["float32", [6, 7]]]
    assert context["operator"]["op"] == "linear" and context["operator"]["inputs"][0]["shape"] == (
        6,
        7,
    )
    assert context["operator"]["inputs"][0]["max"] is not None


def test_an_index_past_the_table_names_the_value():
    model = nn.Embedding(10, 4)
    observer = DeepObserver(0, 0, SiteFinder(), lambda: [model])
    observer.start()
    with pytest.raises(IndexError):
        model(torch.tensor([[1, 2, 12]]))
    operator = observer.crash_context()["operator"]
    observer.stop()
    assert (
        operator["op"] == "embedding"
        and operator["inputs"][0]["max"] == 12
        and operator["inputs"][1]["shape"] == (10, 4)
    )


class _Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s + x * s * (1 - s))


def test_a_custom_autograd_function_is_no_cut():
    model = nn.Linear(5, 5)
    record = observe(model, lambda: _Swish.apply(model(INPUTS)).mean())
    assert record.unreached == () and not any(cut["feeds_loss"] for cut in record.probes["cuts"])
