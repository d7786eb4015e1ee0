"""Optimizers written by hand, right and wrong, on real steps: each mistake is named, and no rule of
somebody else's is accused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import sawbones
from sawbones.faults.optimizer.wrong_update.check import check
from sawbones.observe.options import Options
from sawbones.schema import Finding

Step = Callable[[nn.Parameter, dict, dict], None]


class Written(torch.optim.Optimizer):
    """Its rule is given as a function of parameter, state and group."""

    def __init__(self, params, rule: Step, **settings) -> None:
        super().__init__(params, settings)
        self.rule = rule

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                self.rule(p, state, group)


def _moments(p, s, b1=0.9, b2=0.999) -> None:
    s["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
    s["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)


def adam(p, s, g) -> None:
    _moments(p, s)
    p -= g["lr"] * (s["m"] / (1 - 0.9 ** s["t"])) / ((s["v"] / (1 - 0.999 ** s["t"])).sqrt() + 1e-8)


def adamw(p, s, g) -> None:
    p.mul_(1 - g["lr"] * g["weight_decay"])
    adam(p, s, g)


def amsgrad(p, s, g) -> None:
    _moments(p, s)
    s["most"] = torch.maximum(s.get("most", s["v"]), s["v"])
    p -= (
        g["lr"]
        * (s["m"] / (1 - 0.9 ** s["t"]))
        / ((s["most"] / (1 - 0.999 ** s["t"])).sqrt() + 1e-8)
    )


def lion(p, s, g) -> None:
    p -= g["lr"] * torch.sign(0.9 * s["m"] + 0.1 * p.grad)
    s["m"].lerp_(p.grad, 0.01)


def lamb(p, s, g) -> None:
    _moments(p, s)
    direction = s["m"] / (s["v"].sqrt() + 1e-6)
    p -= g["lr"] * p.norm() / (direction.norm() + 1e-9) * direction


def centralised(p, s, g) -> None:
    grad = p.grad - p.grad.mean() if p.dim() > 1 else p.grad
    s["m"].mul_(0.9).add_(grad)
    p -= g["lr"] * s["m"]


def clipped(p, s, g) -> None:
    grad = p.grad / max(1.0, float(p.grad.norm()) / 0.05)
    s["m"].mul_(0.9).add_(grad)
    p -= g["lr"] * s["m"]


def nesterov(p, s, g) -> None:
    s["m"].mul_(0.9).add_(p.grad)
    p -= g["lr"] * (p.grad + 0.9 * s["m"])


def adabelief(p, s, g) -> None:
    s["m"].lerp_(p.grad, 0.1)
    s["v"].mul_(0.999).add_((p.grad - s["m"]) ** 2 + 1e-12, alpha=0.001)
    p -= g["lr"] * (s["m"] / (1 - 0.9 ** s["t"])) / ((s["v"] / (1 - 0.999 ** s["t"])).sqrt() + 1e-8)


def rmsprop(p, s, g) -> None:
    s["v"].mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
    p -= g["lr"] * p.grad / (s["v"].sqrt() + 1e-8)


def adafactor(p, s, g) -> None:
    beta2 = 1 - s["t"] ** -0.8
    s["v"].mul_(beta2).add_(p.grad**2 + 1e-30, alpha=1 - beta2)
    direction = p.grad / s["v"].sqrt()
    p -= g["lr"] * direction / max(1.0, float(direction.pow(2).mean().sqrt()))


def says_uncorrected(p, s, g) -> None:
    _moments(p, s)
    p -= g["lr"] * s["m"] / (s["v"].sqrt() + 1e-8)


RIGHT = {
    "adam": (adam, {"betas": (0.9, 0.999)}),
    "adam without settings": (adam, {}),
    "adamw": (adamw, {"weight_decay": 0.1}),
    "amsgrad": (amsgrad, {"betas": (0.9, 0.999)}),
    "lion": (lion, {"betas": (0.9, 0.99)}),
    "lamb": (lamb, {"betas": (0.9, 0.999)}),
    "gradient centralisation": (centralised, {"momentum": 0.9}),
    "clipping inside": (clipped, {"momentum": 0.9}),
    "nesterov": (nesterov, {"momentum": 0.9}),
    "adabelief": (adabelief, {"betas": (0.9, 0.999)}),
    "rmsprop": (rmsprop, {"alpha": 0.99}),
    "adafactor": (adafactor, {}),
    "uncorrected and says so": (says_uncorrected, {"betas": (0.9, 0.999), "correct_bias": False}),
    "sgd": (lambda p, s, g: p.sub_(g["lr"] * p.grad), {}),
    "sgd with momentum zero": (lambda p, s, g: p.sub_(g["lr"] * p.grad), {"momentum": 0.0}),
    "ascent on purpose": (lambda p, s, g: p.add_(g["lr"] * p.grad), {"maximize": True}),
}


def uncorrected(p, s, g) -> None:
    _moments(p, s)
    p.addcdiv_(s["m"], s["v"].sqrt().add_(1e-8), value=-g["lr"])


def no_root(p, s, g) -> None:
    _moments(p, s)
    p -= g["lr"] * (s["m"] / (1 - 0.9 ** s["t"])) / ((s["v"] / (1 - 0.999 ** s["t"])) + 1e-8)


def written_back(p, s, g) -> None:
    _moments(p, s)
    s["m"].div_(1 - 0.9 ** s["t"])
    s["v"].div_(1 - 0.999 ** s["t"])
    p -= g["lr"] * s["m"] / (s["v"].sqrt() + 1e-8)


def standing_count(p, s, g) -> None:
    s["t"] = 1
    adam(p, s, g)


def swapped(p, s, g) -> None:
    _moments(p, s, 0.999, 0.9)
    p -= g["lr"] * (s["m"] / (1 - 0.999 ** s["t"])) / ((s["v"] / (1 - 0.9 ** s["t"])).sqrt() + 1e-8)


def twice(p, s, g) -> None:
    s["m"].mul_(0.9).add_(p.grad, alpha=g["lr"])
    p -= g["lr"] * s["m"]


def nothing_kept(p, s, g) -> None:
    buffer = torch.zeros_like(p)
    buffer.mul_(g["momentum"]).add_(p.grad)
    p -= g["lr"] * buffer


def grown(p, s, g) -> None:
    p.mul_(1 + g["lr"] * g["weight_decay"])
    adam(p, s, g)


def zero_divided(p, s, g) -> None:
    _moments(p, s)
    p -= g["lr"] * s["m"] / s["v"].sqrt()


def counted_from_zero(p, s, g) -> None:
    _moments(p, s)
    t = s["t"] - 1
    p -= (
        g["lr"]
        * (s["m"] / (1 - torch.tensor(0.9) ** t))
        / ((s["v"] / (1 - torch.tensor(0.999) ** t)).sqrt() + 1e-8)
    )


SHARED: dict = {}


def shared(p, s, g) -> None:
    buffer = SHARED.setdefault(p.shape, torch.zeros_like(p))
    buffer.mul_(0.9).add_(p.grad)
    p -= g["lr"] * buffer


COUNT = [0]


def one_counter(p, s, g) -> None:
    COUNT[0] += 1
    s["t"] = COUNT[0]
    adam(p, s, g)


def mixed(first: float, added: float) -> Step:
    """Adam with this rate in the first correction and this share of the square in the second
    moment.
    """

    def rule(p, s, g) -> None:
        s["m"].mul_(0.9).add_(p.grad, alpha=0.1)
        s["v"].mul_(0.999).addcmul_(p.grad, p.grad, value=added)
        p -= (
            g["lr"]
            * (s["m"] / (1 - first ** s["t"]))
            / ((s["v"] / (1 - 0.999 ** s["t"])).sqrt() + 1e-8)
        )

    return rule


def power_of_the_difference(p, s, g) -> None:
    _moments(p, s)
    m, v = s["m"] / (1 - 0.9) ** s["t"], s["v"] / (1 - 0.999) ** s["t"]
    p -= g["lr"] * m / (v.sqrt() + 1e-8)


def faded_away(p, s, g) -> None:
    """Right for twelve steps; then what it divides by is too small for float32."""
    adam(p, s, g)
    p.mul_(1 / torch.tensor(1e-3) ** s["t"] * torch.tensor(1e-3) ** s["t"])


WRONG = {
    "power of the difference": (
        power_of_the_difference,
        {"betas": (0.9, 0.999)},
        "(1 - beta) to the power of t",
    ),
    "NaN after twelve steps": (faded_away, {"betas": (0.9, 0.999)}, "NaN"),
    "first correction by beta2": (
        mixed(0.999, 0.001),
        {"betas": (0.9, 0.999)},
        "corrected by beta2",
    ),
    "square weighted by beta1": (
        mixed(0.9, 0.1),
        {"betas": (0.9, 0.999)},
        "adds (1 - beta1) of the square",
    ),
    "uncorrected": (uncorrected, {"betas": (0.9, 0.999)}, "not corrected"),
    "uncorrected without settings": (uncorrected, {}, "not corrected"),
    "no root": (no_root, {"betas": (0.9, 0.999)}, "root"),
    "correction written back": (written_back, {"betas": (0.9, 0.999)}, "written back"),
    "count stands still": (standing_count, {"betas": (0.9, 0.999)}, "always counts step 1"),
    "rates exchanged": (swapped, {"betas": (0.9, 0.999)}, "exchanged"),
    "rate twice": (twice, {"momentum": 0.9}, "twice"),
    "buffer forgotten": (nothing_kept, {"momentum": 0.9}, "not kept"),
    "growing": (grown, {"weight_decay": 0.5, "betas": (0.9, 0.999)}, "grow"),
    "climbing": (lambda p, s, g: p.add_(g["lr"] * p.grad), {}, "sign"),
    "0 / 0": (zero_divided, {"betas": (0.9, 0.999)}, "NaN"),
    "count from zero": (counted_from_zero, {"betas": (0.9, 0.999)}, "NaN"),
    "shared buffer": (shared, {"momentum": 0.9}, "share"),
    "one counter": (one_counter, {"betas": (0.9, 0.999)}, "counter"),
    "momentum times the gradient": (
        lambda p, s, g: p.sub_(g["lr"] * s["m"].add_(p.grad).mul_(0.8)),
        {"momentum": 0.8},
        "multiplied by the momentum",
    ),
}


def train(folder: Path, step: Callable[[list[nn.Parameter]], Callable[[], None]]) -> list[Finding]:
    torch.manual_seed(0)
    SHARED.clear()
    COUNT[0] = 0
    x = torch.randn(400, 8)
    y = torch.stack([x[:, 0] * 2, x[:, 1] - x[:, 2]], 1)
    model = nn.Sequential(
        nn.Linear(8, 16),
        nn.ReLU(),
        nn.Linear(16, 16),
        nn.ReLU(),
        nn.Linear(16, 16),
        nn.ReLU(),
        nn.Linear(16, 2),
    )
    with torch.no_grad():
        model[0].bias[:4] = -9.0  # units that never fire: their gradient is 0
    with sawbones.watch(
        model, out=folder, options=Options(deep_steps=(), deep_every=0, journal=True)
    ) as watched:
        update = step(list(model.parameters()))
        for i in range(16):
            rows = slice(25 * i, 25 * i + 25)
            model.zero_grad()
            nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
            update()
        run = watched.close()
    assert not run.off
    return list(check(run))


def with_rule(rule: Step, settings: dict) -> Callable[[list[nn.Parameter]], Callable[[], None]]:
    return lambda params: Written(params, rule, lr=settings.pop("lr", 0.01), **settings).step


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_or_unknown_rule_is_left_alone(name: str, tmp_path: Path) -> None:
    rule, settings = RIGHT[name]
    assert train(tmp_path / "run", with_rule(rule, dict(settings))) == []


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named(name: str, tmp_path: Path) -> None:
    rule, settings, says = WRONG[name]
    found = train(tmp_path / "run", with_rule(rule, dict(settings)))
    assert len(found) == 1
    assert says in found[0].title
    assert found[0].where[0].file.endswith("test_wrong_update.py")


def test_without_a_count_of_its_steps_a_missing_correction_may_be_meant(tmp_path: Path) -> None:
    def uncounted(p, s, g) -> None:
        s["t"] = 0
        uncorrected(p, s, g)

    statuses = [
        [f.status for f in train(tmp_path / str(n), with_rule(rule, {}))]
        for n, rule in enumerate((uncorrected, uncounted))
    ]
    assert statuses == [["proven"], ["suspected"]]


class Plain:
    """No torch.optim.Optimizer at all."""

    def __init__(self, params: list[nn.Parameter], corrected: bool) -> None:
        self.params, self.corrected, self.t = params, corrected, 0
        self.m, self.v = (
            [torch.zeros_like(p) for p in params],
            [torch.zeros_like(p) for p in params],
        )

    def step(self) -> None:
        self.t += 1
        for p, m, v in zip(self.params, self.m, self.v, strict=True):
            m.mul_(0.9).add_(p.grad, alpha=0.1)
            v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
            scale = math.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t) if self.corrected else 1.0
            p.data -= 0.002 * scale * m / (v.sqrt() + 1e-8)


@pytest.mark.parametrize("corrected", [True, False])
def test_an_update_without_an_optimizer_object_is_judged_too(
    corrected: bool, tmp_path: Path
) -> None:
    found = train(tmp_path / "run", lambda params: Plain(params, corrected).step)
    assert [f.title for f in found] == (
        [] if corrected else ["The update: the moments are not corrected for their start at zero"]
    )
    if found:
        assert "p.data -=" in found[0].where[0].code
