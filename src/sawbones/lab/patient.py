"""A patient: the flags of a lab script, its seeds, and the record of one run where --out asks for
it.
"""

from __future__ import annotations

import argparse
import atexit
import json
import math
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from sawbones.trainer.determinism import seed_everything


class Patient:
    """Without --out nothing is written and no hook is placed: the script is then as plain as a
    user's.

    metrics.jsonl has one line per batch: the loss, the mean of the absolute gradient of every
    parameter, and mean and standard deviation of what the first and the last layer put out.
    checkpoint.safetensors holds the weights at the end.
    """

    def __init__(self, broken: bool = True, out: Path | None = None, seed: int = 0) -> None:
        self.broken = broken
        self.out = out
        self.seed = seed
        self._modules: list[nn.Module] = []
        self._activations: list[Tensor] = []
        self._lines: list[str] = []
        self._losses: list[float] = []
        self._gone = False
        if out is not None:
            atexit.register(
                self.discharge
            )  # a fault that crashes the script leaves its record behind too

    def watch(self, *modules: nn.Module) -> None:
        self._modules = list(modules)
        if self.out is not None:
            leaves = (
                m
                for top in modules
                for m in top.modules()
                if not any(m.children()) and any(True for _ in m.parameters())
            )
            for leaf in leaves:
                leaf.register_forward_hook(self._keep)

    def _keep(self, module: nn.Module, given: Any, output: Any) -> None:
        if isinstance(output, Tensor) and torch.is_grad_enabled():
            self._activations = [*self._activations[:1], output.detach()]

    def record(self, loss: Tensor) -> None:
        """Once per batch, when the gradients are there."""
        self._losses.append(float(loss.detach()))
        if self.out is None:
            return
        named = [(name, p) for module in self._modules for name, p in module.named_parameters()]
        line: dict[str, Any] = {"batch": len(self._lines), "loss": _plain(self._losses[-1])}
        line["gradient_means"] = {
            name: _plain(float(p.grad.abs().mean())) for name, p in named if p.grad is not None
        }
        for name, kept in zip(
            ("first_layer", "last_layer"),
            self._activations[:1] + self._activations[-1:],
            strict=False,
        ):
            line[name] = {
                "mean": _plain(float(kept.float().mean())),
                "std": _plain(float(kept.float().std())),
            }
        self._activations = []
        self._lines.append(json.dumps(line))

    def discharge(self) -> None:
        """The end of the run: what the loss did and, with --out, the files."""
        if self._gone:
            return
        self._gone = True
        tenth = max(1, len(self._losses) // 10)
        first, last = sum(self._losses[:tenth]) / tenth, sum(self._losses[-tenth:]) / tenth
        print(f"{len(self._losses)} batches, loss {first:.4g} -> {last:.4g}")
        if self.out is None:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "metrics.jsonl").write_text(
            "".join(line + "\n" for line in self._lines), encoding="utf-8"
        )
        weights = {
            f"{i}.{name}" if len(self._modules) > 1 else name: tensor.detach().clone().contiguous()
            for i, module in enumerate(self._modules)
            for name, tensor in module.state_dict().items()
        }
        save_file(weights, self.out / "checkpoint.safetensors")


def _plain(value: float) -> float | str:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else str(value)


def admit() -> Patient:
    """Read the flags, seed every stream, and use one thread: sums then have one order and every run
    gives the same bits.
    """
    p = argparse.ArgumentParser(description="A patient of the lab: broken, or healthy by one flag.")
    p.add_argument("--healthy", action="store_true", help="the twin without the fault")
    p.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write metrics.jsonl and checkpoint.safetensors there",
    )
    p.add_argument("--seed", type=int, default=0, metavar="N")
    given = p.parse_args()
    seed_everything(given.seed)
    torch.set_num_threads(1)
    # Of several ranks the first one keeps the record.
    out = given.out if os.environ.get("RANK", "0") == "0" else None
    return Patient(not given.healthy, out, given.seed)
