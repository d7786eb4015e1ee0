"""Recipes of models and losses know the forms in which users write the same mistake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sawbones.fixing.proposing import propose
from sawbones.schema import DeepStep, Ending, Evidence, Finding, Op, Run, Site, Value
from sawbones.schema.loss import LossCall, LossFacts, PaddedTargets
from sawbones.schema.run import Module

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
"""


def run(*ops: Op, **fields: object) -> Run:
    deep = (DeepStep(0, 0, ops),) if ops else ()
    return replace(Run("train.py", (), "", {}, Ending("finished"), deep=deep), **fields)


def op(name: str, line: int, shapes: list[tuple[int, ...]], made: tuple[int, ...]) -> Op:
    inputs = tuple(Value(i, shape, "float32") for i, shape in enumerate(shapes))
    output = Value(9, made, "float32", requires_grad=True)
    return Op(0, name, Site("train.py", line), "", inputs, (output,))


def texts(
    folder: Path, fault: str, text: str, lines: list[int], ran: Run, **fields: object
) -> list[str]:
    """The file as each patch makes it; lines count behind the imports."""
    (folder / "train.py").write_text(HEAD + text)
    where = tuple(Site("train.py", 3 + line) for line in lines)
    found = replace(Finding(fault, "proven", 1.0, "", where), **fields)
    patches = propose(found, ran, folder, strict=True).patches
    return [p.files[0][1].text.removeprefix(HEAD) for p in patches]


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ((8, 4, 12, 6), (8, 12, 24), "y.reshape(h.shape)", "y.transpose(1, 2).reshape(h.shape)"),
        ((8, 4, 12, 6), (8, 12, 24), "y.view(b, t, -1)", "y.transpose(1, 2).reshape(b, t, -1)"),
        ((8, 4, 12), (8, 12, 4), "y.reshape(b, t, c)", "y.transpose(1, 2)"),
        ((8, 3, 5, 7), (8, 35, 3), "y.view(b, n, c)", "y.permute(0, 2, 3, 1).reshape(b, n, c)"),
        ((8, 12, 24), (8, 4, 12, 6), "y.view(b, h, t, d)", "y.view(b, t, h, d).transpose(1, 2)"),
        (
            (8, 7, 36),
            (8, 3, 2, 7, 6),
            "y.reshape(B, 3, H, N, D)",
            "y.reshape(B, N, 3, H, D).permute(0, 2, 3, 1, 4)",
        ),
    ],
)
def test_dimensions_change_places_as_the_shapes_ask(tmp_path, before, after, old, new):
    ran = run(op("reshape", 4, [before], after))
    assert texts(tmp_path, "model.head-mixing", f"z = {old}\n", [1], ran) == [f"z = {new}\n"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p = torch.arange(s[0])[:, None].expand(s)", "p = torch.arange(s[1])[None, :].expand(s)"),
        ("p = torch.arange(x.size(0)).unsqueeze(1)", "p = torch.arange(x.size(1)).unsqueeze(0)"),
        ("x = x + self.t[:b, None]", "x = x + self.t[None, :t]"),
        (
            "p = torch.arange(t).repeat_interleave(b).view(b, t)",
            "p = torch.arange(t).repeat(b).view(b, t)",
        ),
        ("x = x + self.t.mean(dim=1, keepdim=True)", "x = x + self.t"),
        ("x = x + self.t[:, x.shape[1] - 1 :]", "x = x + self.t[:, : x.shape[1]]"),
        ("x = x + self.t[: x.size(0)]", "x = x + self.t[: x.size(1)].transpose(0, 1)"),
    ],
)
def test_positions_run_along_the_sequence(tmp_path, old, new):
    text = f"def f(self, x):\n    b, t = x.shape\n    {old}\n"
    assert texts(tmp_path, "model.position-broadcast", text, [3], run())[0] == text.replace(
        old, new
    )


@pytest.mark.parametrize(
    ("shift", "old", "new"),
    [
        (0, "a, b = s[i : i + n], s[i : i + n]", "a, b = s[i : i + n], s[i + 1 : i + n + 1]"),
        (0, "a, b = s[i], s[i]", "a, b = s[i], s[i + 1]"),
        (0, "a, b = s[:, :-1], s[:, :-1]", "a, b = s[:, :-1], s[:, 1:]"),
        (0, "b = s[n - 1 :]", "b = s[n :]"),
        (-1, "a, b = s[:, 1:], s[:, :-1]", "a, b = s[:, :-1], s[:, 1:]"),
        (2, "a, b = s[:-2], s[2:]", "a, b = s[:-1], s[1:]"),
        (2, "a, b = x[:, :-1], y[:, 1:]", "a, b = x, y"),
        (2, "b = s[i + 1 : i + n + 1]", "b = s[i : i + n]"),
    ],
)
def test_targets_are_shifted_once(tmp_path, shift, old, new):
    evidence = (Evidence("", value=shift, expected=1),)
    found = texts(tmp_path, "loss.label-shift", f"{old}\n", [1], run(), evidence=evidence)
    assert found[0] == f"{new}\n"


@pytest.mark.parametrize(
    ("fault", "old", "new"),
    [
        ("model.detached-graph", "l = torch.tensor(l.item(), requires_grad=True)\n", ""),
        (
            "model.detached-graph",
            "z = self.n(torch.as_tensor(c.tolist()))\n",
            "z = self.n(c)\n",
        ),
        (
            "model.detached-graph",
            "t = torch.tensor([r.amax(0).tolist() for r in c])\n"
            "m = torch.tensor([r.mean(0).tolist() for r in c], dtype=torch.float32)\n",
            "t = torch.stack([r.amax(0) for r in c])\nm = torch.stack([r.mean(0) for r in c])\n",
        ),
        (
            "model.causal-leak",
            "h = F.pad(x, (s // 2, s - s // 2))\n",
            "h = F.pad(x, (s, 0))\n",
        ),
        ("model.causal-leak", "h = F.pad(x, (k, k))\n", "h = F.pad(x, (2 * k, 0))\n"),
        (
            "model.mask-polarity",
            "b = keep * -1e4\n",
            "b = (1.0 - keep) * -1e4\n",
        ),
        ("model.mask-polarity", "b = (1.0 - gone) * -1e9\n", "b = gone * -1e9\n"),
        (
            "model.mask-dtype",
            "x = x + a(y, y, y, key_padding_mask=m)[0]\n",
            "x = x + a(y, y, y, key_padding_mask=m.bool())[0]\n",
        ),
        (
            "model.mask-dtype",
            "s = s.masked_fill(p, -1e9)\n",
            "s = s.masked_fill(p.bool(), -1e9)\n",
        ),
        (
            "model.over-masking",
            "y = a(q, k, k, key_padding_mask=m)\n",
            "y = a(q, k, k, key_padding_mask=m & ~m.all(-1, keepdim=True))\n",
        ),
        (
            "model.over-masking",
            "s = s.masked_fill(~m, float('-inf'))\n",
            "s = s.masked_fill(~(m | ~m.any(-1, keepdim=True)), float('-inf'))\n",
        ),
        (
            "model.over-masking",
            "y = F.scaled_dot_product_attention(q, k, v, attn_mask=m)\n",
            "y = F.scaled_dot_product_attention(q, k, v, attn_mask=m | ~m.any(-1, keepdim=True))\n",
        ),
        (
            "model.over-masking",
            "m = torch.triu(o, diagonal=0)\n",
            "m = torch.triu(o, diagonal=1)\n",
        ),
        ("model.mask-shape", "s = m[None, None, :, :]\n", "s = m[:, None, None, :]\n"),
        (
            "model.mask-shape",
            "s = s.masked_fill(~self.m, -1e9)\n",
            "s = s.masked_fill(~self.m[..., :s.size(-2), :s.size(-1)], -1e9)\n",
        ),
        (
            "model.mask-shape",
            "y = F.scaled_dot_product_attention(q, k, v, attn_mask=m)\n",
            "y = F.scaled_dot_product_attention(q, k, v, "
            "attn_mask=m[..., :q.size(-2), :k.size(-2)])\n",
        ),
        (
            "model.cross-sample-leak",
            "c = h - h.mean(dim=0)\nz = c / h.var(0)\n",
            "c = h - h.mean(dim=1)\nz = c / h.var(1)\n",
        ),
        (
            "loss.double-softmax",
            "l = F.cross_entropy(p, y)\n",
            "l = F.nll_loss(p.clamp_min(1e-7).log(), y)\n",
        ),
        (
            "loss.unstable-log",
            "l = a * torch.log(p) + b * torch.log(1 - p)\n",
            "l = a * torch.log(p.clamp_min(1e-7)) + b * torch.log((1 - p).clamp_min(1e-7))\n",
        ),
        (
            "loss.unstable-log",
            "a = torch.acos(c.clamp(-1, 1))\n",
            "a = torch.acos(c.clamp(-1 + 1e-6, 1 - 1e-6))\n",
        ),
        (
            "model.attention-scale",
            "y = F.scaled_dot_product_attention(q * s, k, v)\n",
            "y = F.scaled_dot_product_attention(q * s, k, v, scale=1.0)\n",
        ),
        (
            "model.attention-scale",
            "w = (q @ k.mT * q.size(-1) ** 0.5).softmax(-1)\n",
            "w = (q @ k.mT * q.size(-1) ** -0.5).softmax(-1)\n",
        ),
        (
            "loss.weighting",
            "l = F.cross_entropy(x, y, label_smoothing=0.9)\n",
            "l = F.cross_entropy(x, y, label_smoothing=0.1)\n",
        ),
        (
            "model.dead-units",
            "nn.init.constant_(b, -4.0)  # low\n",
            "nn.init.constant_(b, 0.0)  # low\n",
        ),
    ],
)
def test_forms(tmp_path, fault, old, new):
    assert texts(tmp_path, fault, old + "end = 1\n", [1], run())[0] == new + "end = 1\n"


def test_the_loss_for_probabilities_is_the_second_choice(tmp_path):
    text = "c = nn.BCEWithLogitsLoss()\np = torch.sigmoid(z)\nl = c(p, y)\n"
    found = texts(tmp_path, "loss.double-sigmoid", text, [2, 3], run())
    assert found == [
        text.replace("torch.sigmoid(z)", "z"),
        text.replace("BCEWithLogitsLoss", "BCELoss"),
    ]


def test_a_root_of_negative_numbers_is_clamped(tmp_path):
    title = "A root of a negative number makes the loss non-finite"
    (new,) = texts(tmp_path, "loss.unstable-log", "d = s.sqrt()\n", [1], run(), title=title)
    assert new == "d = s.clamp_min(1e-6).sqrt()\n"


def test_the_operand_with_a_last_dimension_of_one_loses_it(tmp_path):
    ran = run(op("mul", 4, [(48,), (48, 1)], (48, 48)))
    found = texts(tmp_path, "loss.silent-broadcast", "l = (e * w[i]).mean()\n", [1], ran)
    assert found[0] == "l = (e * w[i].squeeze(-1)).mean()\n"


def test_all_plain_lists_of_an_object_are_kept_in_the_model(tmp_path):
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = [nn.Parameter(torch.zeros(3)) for _ in range(2)]\n"
        "        self.b = tuple(nn.Linear(2, 2) for _ in range(2))\n"
        "        self.sizes = [1, 2]\n"
    )
    (new,) = texts(tmp_path, "model.unregistered-module", text, [4], run())
    assert "self.a = nn.ParameterList([nn.Parameter(" in new
    assert "self.b = nn.ModuleList(nn.Linear(2, 2) for" in new
    assert "self.sizes = [1, 2]\n" in new


def test_a_model_without_parameters_keeps_its_list(tmp_path):
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        parts = [nn.Linear(2, 2)]\n        self.parts = parts\n"
    )
    (new,) = texts(tmp_path, "model.no-parameters", text, [5], run())
    assert new == text.replace("self.parts = parts", "self.parts = nn.ModuleList(parts)")


def test_a_configuration_makes_a_decoder(tmp_path):
    text = (
        "from transformers import BertConfig, BertLMHeadModel\n"
        "config = BertConfig(vocab_size=8)\nnet = BertLMHeadModel(config)\n"
    )
    (new,) = texts(tmp_path, "model.causal-leak", text, [3], run())
    assert new == text.replace("vocab_size=8)", "vocab_size=8, is_decoder=True)")


def test_first_weights_before_a_relu_keep_the_size_of_what_passes(tmp_path):
    ran = run(modules=(Module("0", "ReLU", {}, 0, 0),))
    text = "nn.init.normal_(m.weight, std=0.6)\nend = 1\n"
    found = texts(tmp_path, "model.bad-init", text, [1], ran)
    assert found[0] == 'nn.init.kaiming_normal_(m.weight, nonlinearity="relu")\nend = 1\n'
    assert found[1] == "end = 1\n"


def padded(same_vocabulary: bool) -> Run:
    padding = PaddedTargets(0, 3, same_vocabulary, 4, 4, 0.3, 0, 1.0)
    facts = LossFacts(ignore_index=-100, padding=padding)
    value = Value(1, (4, 5), "float32")
    call = LossCall(0, "cross_entropy", Site("train.py", 4), "", value, None, 1.0, facts)
    return replace(run(), deep=(DeepStep(0, 0, losses=(call,)),))


def test_real_labels_are_not_what_rows_are_filled_with(tmp_path):
    text = "y = pad_sequence(tags, True)\nc = nn.CrossEntropyLoss()\nl = c(x, y)\n"
    found = texts(tmp_path, "loss.pad-not-ignored", text, [1, 3], padded(False))
    assert found[0] == text.replace("tags, True", "tags, True, padding_value=-100")
    assert found[1] == text.replace("Loss()", "Loss(ignore_index=0)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("l = net(ids, labels=fill(rows, PAD)).loss", "l = net(ids, labels=fill(rows, -100)).loss"),
        ('b = {"labels": y}', 'b = {"labels": y.masked_fill(y == 3, -100)}'),
    ],
)
def test_labels_for_the_loss_of_a_library_are_filled_with_what_it_ignores(tmp_path, old, new):
    text = f"PAD = 3\n{old}\n"
    found = texts(tmp_path, "loss.pad-not-ignored", text, [2], padded(True))
    assert found == [text.replace(old, new)]


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (5, "            h = torch.relu(layer(h))", "            h = h + torch.relu(layer(h))"),
        (8, "        return torch.relu(self.b(x))", "        return x + torch.relu(self.b(x))"),
    ],
)
def test_gradients_get_a_way_around_deep_layers(tmp_path, line, old, new):
    text = (
        "class Net(nn.Module):\n    def forward(self, x):\n        h = self.first(x)\n"
        "        for layer in self.layers:\n            h = torch.relu(layer(h))\n"
        "class Block(nn.Module):\n    def forward(self, x):\n        return torch.relu(self.b(x))\n"
    )
    found = texts(tmp_path, "model.vanishing-gradients", text, [line], run())
    assert found[0] == text.replace(old, new)


def test_a_column_is_dropped_at_the_loss_and_else_where_the_model_returns_it(tmp_path):
    text = "def forward(self, x):\n    return self.net(x)\n\nl = F.mse_loss(net(x), y)\n"
    scores, targets = Value(9, (80, 1), "float32"), Value(2, (80,), "float32")
    made = op("linear", 5, [(80, 8), (1, 8)], (80, 1))
    call = LossCall(1, "mse_loss", Site("train.py", 7), "", scores, targets, 1.0)
    ran = replace(run(), deep=(DeepStep(0, 0, (made,), losses=(call,)),))
    assert texts(tmp_path, "loss.silent-broadcast", text, [4], ran)[:2] == [
        text.replace("net(x), y", "net(x).squeeze(-1), y"),
        text.replace("return self.net(x)", "return self.net(x).squeeze(-1)"),
    ]


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("-p.gather(-1, y.unsqueeze(-1)).squeeze(-1)", "y"),
        ("-p.gather(-1, y[..., None])[..., 0]", "y"),
        ('F.cross_entropy(p, y.flatten(), reduction="none")', "y.flatten()"),
    ],
)
def test_losses_of_single_targets_are_averaged_over_real_ones(tmp_path, made, wanted):
    text = f"def f(p, y):\n    e = {made}\n    return e.mean()\n"
    found = texts(tmp_path, "loss.pad-not-ignored", text, [2], padded(True))
    assert found[0] == text.replace("e.mean()", f"e[{wanted} != 3].mean()")


def test_a_plain_class_that_holds_layers_becomes_a_module(tmp_path):
    text = (
        "class Part:\n    def __init__(self):\n        self.a = nn.Linear(2, 2)\n\n"
        "    def __call__(self, x):\n        return self.a(x)\n"
    )
    (new,) = texts(tmp_path, "model.unregistered-module", text, [3], run())
    assert new == (
        "class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Linear(2, 2)\n\n    def forward(self, x):\n        return self.a(x)\n"
    )
