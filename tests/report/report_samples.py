"""200 steps of a small decoder trained in fp16, with two faults, one suspicion and three NaN
losses.
"""

from __future__ import annotations

import difflib
import math

import numpy as np

from sawbones.schema import (
    NO_GRADIENT,
    NOT_MEASURED,
    Attention,
    CouldNotLook,
    DeepStep,
    Ending,
    Event,
    Evidence,
    Finding,
    Fix,
    Influence,
    Report,
    Run,
    Site,
    Tensor,
    Verdict,
)

NUM_STEPS = 200
NAN_STEPS = (137, 138, 139)

SOURCE = '''"""Train a small decoder on pairs of sentences."""

import torch
from torch import nn
from torch.nn import functional as F

from corpus import loader


class Decoder(nn.Module):
    def __init__(self, vocab: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, batch_first=True) for _ in range(6))
        self.head = nn.Linear(width, vocab)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    scaler = torch.amp.GradScaler("cuda")
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=20)
    for ids in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
'''
LINES = SOURCE.splitlines()


def site(text: str, function: str = "train") -> Site:
    line = next(number for number, code in enumerate(LINES, start=1) if text in code)
    return Site("train.py", line, function, LINES[line - 1].strip())


def patch(old: str, new: str) -> str:
    lines = (SOURCE.splitlines(True), SOURCE.replace(old, new, 1).splitlines(True))
    assert lines[0] != lines[1], old
    return "".join(difflib.unified_diff(*lines, "a/train.py", "b/train.py"))


def sample_report() -> Report:
    leak = Finding(
        fault="model.causal-leak",
        status="proven",
        confidence=0.98,
        title="The model reads the tokens it is asked to predict: its attention has no causal mask",
        where=(site("x = layer(x)", "forward"), site("logits = model(")),
        evidence=(
            Evidence(
                "Share of an output's influence that comes from later positions",
                "influence",
                (0, 1, 100),
                0.47,
                0.0,
            ),
            Evidence(
                "Attention mass on keys after the query, mean of 6 layers",
                "attention",
                (0, 1, 100),
                0.486,
                0.0,
            ),
            Evidence(
                "Training loss is far under the entropy of the data",
                "loss",
                tuple(range(150, 200)),
                0.031,
                2.1,
            ),
        ),
        fix=Fix(
            "Pass a causal mask to every layer.",
            patch=patch("layer(x)", "layer(x, src_mask=causal_mask(x), is_causal=True)"),
            level="verified",
            measured={
                "result": "the fault is gone; nothing new fired",
                "before": {"loss": 0.031, "steps": 200},
                "after": {"loss": 2.14, "steps": 200},
            },
        ),
        experiment="causality",
        params={"source": "embedding:0"},
        verdict=Verdict(
            "causality",
            "confirmed",
            (
                "Changing token 9 changes the outputs at positions 0 to 8; with a causal mask "
                "it changes none of them."
            ),
            baseline=0.47,
            with_remedy=0.0,
            seconds=3.4,
            details={"positions": [0, 8], "largest": 0.47, "curves": _side_by_side()},
            title="Change every token from the middle on, on a copy of the model",
        ),
        test=(
            "def test_no_output_depends_on_later_tokens():\n    assert "
            "influence(model).future == 0\n"
        ),
    )
    clip = Finding(
        fault="loop.clip-before-unscale",
        status="likely",
        confidence=0.86,
        title="Gradients are clipped while they still carry the loss scale",
        where=(site("clip_grad_norm_"),),
        evidence=(
            Evidence(
                "Norm that was clipped to 1.0, divided by the loss scale of the same step",
                "events",
                (20, 60, 100),
                65536.0,
                1.0,
            ),
            Evidence("Loss is not a number", "loss", NAN_STEPS, math.nan, 2.3),
            Evidence("Gradient norm when the loss first broke", "grad_norm", (137,), math.inf, 1.8),
        ),
        fix=Fix(
            "Unscale before clipping.",
            patch=patch(
                "        nn.utils.clip_grad_norm_(",
                "        scaler.unscale_(optimizer)\n        nn.utils.clip_grad_norm_(",
            ),
            level="unsafe",
        ),
        experiment="unscale-first",
    )
    decay = Finding(
        fault="optimizer.decay-on-norm-bias",
        status="suspected",
        confidence=0.4,
        title="Weight decay also pulls on norm weights and biases",
        evidence=(
            Evidence("Norm and bias tensors in groups with decay", "optimizer", (), 26.0, 0.0),
        ),
        fix=Fix("Put norm weights and biases in a group with weight_decay=0."),
    )
    refuted = Finding(
        fault="optimizer.lr-too-high",
        status="suspected",
        confidence=0.3,
        title="Loss breaks after a jump of the update ratio",
        verdict=Verdict(
            "lr-tenth", "refuted", "The loss still breaks at step 137.", math.nan, math.nan, 8.1
        ),
    )
    return Report(
        verdict="sick",
        script="train.py",
        steps=NUM_STEPS,
        seconds=92.6,
        findings=(leak, clip, decay),
        refuted=(refuted,),
        could_not_look=(
            CouldNotLook("loss.pad-not-ignored", "no padding was found in the inputs"),
            CouldNotLook("pipeline.padding-side", "no padding was found in the inputs"),
            CouldNotLook("pipeline.padding-waste", "no padding was found in the inputs"),
            CouldNotLook("loop.eval-mode", "the script has no evaluation phase"),
        ),
        looked=(
            "data.labels-misaligned",
            "loss.label-shift",
            "loss.double-softmax",
            "loop.no-zero-grad",
            "loss.reduction-sum",
        ),
        environment={
            "python": "3.12.4",
            "torch": "2.13.0",
            "device": {"name": "NVIDIA H200", "count": 1, "memory_gb": 139.7},
            "flags": ["cudnn.benchmark", "tf32"],
        },
        notes=("Experiments stopped after 60 s; unscale-first was not run.",),
    )


def _side_by_side() -> list[dict]:
    """The loss with the mask stops where the data's entropy is; at step 30 one was not finite."""
    steps = list(range(0, NUM_STEPS, 2))
    cured = [round(2.1 + 3.5 * math.exp(-step / 25), 4) for step in steps]
    cured[15] = None
    as_is = [round(0.03 + 5.6 * math.exp(-step / 28), 4) for step in steps]
    return [
        {"name": "as it is", "steps": steps, "losses": as_is},
        {"name": "with causal mask", "steps": steps, "losses": cured},
    ]


def sample_run() -> Run:
    return Run(
        script="train.py",
        argv=("train.py", "--width", "64"),
        folder="runs/train",
        environment={"python": "3.12.4", "torch": "2.13.0"},
        ending=Ending("finished", 0),
        seconds=38.2,
        events=_events(),
        steps=_steps(),
        tensors=_tensors(),
        tensor_steps=np.arange(NUM_STEPS, dtype=np.int64),
        statistics={"grad_l2": _gradients()},
        deep=(_deep(0), _deep(100)),
        signals={"loss": "", "events": "", "influence": ""},
        # Of the 31 ms between forward and loss of every step 6.5 were ours.
        own_ms=tuple((12 * step + 3, 6.5) for step in range(NUM_STEPS)),
    )


def _steps() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    step = np.arange(NUM_STEPS, dtype=float)
    loss = 0.03 + 5.6 * np.exp(-step / 28) * (1 + 0.05 * rng.standard_normal(NUM_STEPS))
    grad_norm = (0.4 + 3 * np.exp(-step / 40)) * np.exp(0.15 * rng.standard_normal(NUM_STEPS))
    for broken in NAN_STEPS:
        loss[broken], grad_norm[broken] = math.nan, math.inf
    param_norm = 41 + 0.02 * step
    update_norm = np.full(NUM_STEPS, NOT_MEASURED)
    update_norm[::5] = 0.05 * np.exp(0.1 * rng.standard_normal(NUM_STEPS // 5))
    return {
        "step": step,
        "optimizer": np.zeros(NUM_STEPS),
        "time": 0.18 * step,
        "loss": loss,
        "grad_norm": grad_norm,
        "param_norm": param_norm,
        "update_norm": update_norm,
        "lr": 1e-3 * np.minimum(1, 0.01 + step / 20),
        "scale": 65536.0 / 2.0 ** np.searchsorted(NAN_STEPS, step, side="right"),
        "skipped": np.isin(step, NAN_STEPS).astype(float),
    }


def _tensors() -> tuple[Tensor, ...]:
    names = ["tokens.weight"]
    for layer in range(6):
        parts = (
            "self_attn.in_proj_weight",
            "self_attn.out_proj.weight",
            "linear1.weight",
            "linear2.weight",
            "norm1.weight",
        )
        names += [f"layers.{layer}.{part}" for part in parts]
    names += ["head.weight", "unused.weight"]
    return tuple(
        Tensor(index, name, (64, 64), "float32", True, "Linear", 0, 0, 0.01)
        for index, name in enumerate(names)
    )


def _gradients() -> np.ndarray:
    rng = np.random.default_rng(11)
    tensors = _tensors()
    depth = np.linspace(-2.4, -0.4, len(tensors))
    decay = -0.6 * np.linspace(0, 1, NUM_STEPS)[:, None]
    values = 10 ** (depth[None, :] + decay + 0.12 * rng.standard_normal((NUM_STEPS, len(tensors))))
    values[NAN_STEPS[0] : NAN_STEPS[-1] + 1, 12:] = math.nan
    values[:, -1] = NO_GRADIENT
    values[40:80, 1] = 0.0
    return values.astype(np.float32)


def _events() -> tuple[Event, ...]:
    order = (
        (
            "batch",
            "for ids in loader",
            9.0,
            {"wait_ms": 8.6, "tensors": [{"path": "", "shape": [32, 65], "dtype": "int64"}]},
        ),
        ("zero_grad", "optimizer.zero_grad()", 0.4, {"target": "optimizer", "set_to_none": True}),
        (
            "forward",
            "logits = model(",
            31.0,
            {"module": "", "training": True, "autocast": "float16", "top": True},
        ),
        ("loss", "loss = F.cross_entropy", 1.5, {"fn": "cross_entropy", "reduction": "mean"}),
        ("scale", "scaler.scale(loss)", 0.1, {"scale": 65536.0}),
        ("backward", "scaler.scale(loss)", 62.0, {"scaled": True, "fresh": True}),
        (
            "clip",
            "clip_grad_norm_",
            3.0,
            {"fn": "clip_grad_norm_", "max_norm": 1.0, "norm": 88211.3},
        ),
        ("unscale", "scaler.step(", 2.0, {"scale": 65536.0}),
        ("scaler_step", "scaler.step(", 0.2, {"skipped": False}),
        ("step", "scaler.step(", 14.0, {"cls": "AdamW", "lr": [0.001]}),
        (
            "scaler_update",
            "scaler.update()",
            0.3,
            {"scale_before": 65536.0, "scale_after": 65536.0},
        ),
        ("schedule", "schedule.step()", 0.2, {"cls": "LinearLR", "lr_after": [0.001]}),
    )
    events = []
    for step in range(NUM_STEPS):
        time = 0.18 * step
        for kind, code, milliseconds, data in order:
            events.append(Event(len(events), kind, step, step, "train", time, site(code), 0, data))
            time += milliseconds / 1000
    return tuple(events)


def _deep(step: int) -> DeepStep:
    size = 24
    positions = np.arange(size)
    influence = np.exp(-np.abs(positions[:, None] - positions[None, :]) / 3) + 0.05
    influence /= influence.sum(axis=1, keepdims=True)
    attention = tuple(
        Attention(
            site=site("x = layer(x)", "forward"),
            module=f"layers.{layer}.self_attn",
            kind="mha",
            heads=4,
            queries=64,
            keys=64,
            head_dim=16,
            entropy=0.98 - 0.07 * layer,
            future_mass=0.49 - 0.003 * layer,
            self_mass=0.03 + 0.02 * layer,
            pad_mass=None,
            masked_rows=0,
            score_std=0.41,
            expected_score_std=0.4,
        )
        for layer in range(6)
    )
    return DeepStep(
        step=step,
        microstep=step,
        attention=attention,
        influence=(
            Influence(
                source="embedding:0",
                source_shape=(32, size),
                output_shape=(32, size, 512),
                site=site("x = self.tokens(ids)", "forward"),
                batch_dim=0,
                time_dim=1,
                future=0.47,
                past=0.46,
                self=0.07,
                other_examples=0.0,
                padding=None,
                probes=8,
                map=tuple(tuple(float(value) for value in row) for row in influence[::3]),
                rows=tuple(range(0, size, 3)),
            ),
        ),
    )
