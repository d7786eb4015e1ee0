"""Direct measurements of a subject's pieces, each for one fault, in the order of their layers and
cheapest first.

A probe returns nothing when all is well and raises AssertionError with the numbers otherwise.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sawbones.testing import (
    assert_all_parameters_optimized,
    assert_batch_independent,
    assert_decay_groups,
    assert_decoupled_decay,
    assert_deterministic,
    assert_every_parameter_gets_gradient,
    assert_finite,
    assert_modules_registered,
    assert_overfits_one_batch,
    assert_resumes_exactly,
)
from sawbones.triage.recording import endless, seed_all, train
from sawbones.triage.subject import Subject

FEW_BATCHES = 4
REPEATED_STEPS = 6
OVERFIT_STEPS = 150
OVERFIT_SECONDS = 60.0  # for all of it; a slow model takes fewer steps
FEWEST_STEPS = 20


class CannotTell(Exception):
    """What a probe would have to know and does not."""


@dataclass
class Bench:
    """The pieces, made once for all probes that do not train them."""

    subject: Subject
    seed: int
    batches: list[Any] = field(default_factory=list)
    model: Any = None
    optimizer: Any = None

    def batch(self) -> Any:
        return self.few()[0]

    def few(self) -> list[Any]:
        if not self.batches:
            seed_all(self.seed)
            self.batches = list(islice(self.subject.data(), FEW_BATCHES))
            if not self.batches:
                raise AssertionError("data() gives no batch; expected at least one")
        return self.batches

    def fresh(self) -> Any:
        seed_all(self.seed)
        return self.subject.model()

    def built(self) -> Any:
        if self.model is None:
            self.model = self.fresh()
            self.optimizer = self.subject.optimizer(self.model.parameters())
        return self.model


@dataclass(frozen=True)
class Probe:
    fault: str
    status: str  # of the finding when it fails
    title: str
    act: Callable[[Bench], None]

    @property
    def layer(self) -> str:
        return self.fault.split(".")[0]


def _finite_inputs(bench: Bench) -> None:
    for number, batch in enumerate(bench.few()):
        assert_finite(
            batch if isinstance(batch, (dict, list, tuple)) else [batch], f"batch {number}"
        )


def _registered(bench: Bench) -> None:
    assert_modules_registered(bench.built())


def _independent(bench: Bench) -> None:
    """Only where the first dimension of an input is surely the batch: the outputs have it too."""
    import torch

    batch, subject = bench.batch(), bench.subject
    tensors = (
        [batch]
        if isinstance(batch, torch.Tensor)
        else list(batch.values() if isinstance(batch, dict) else batch)
    )
    sizes = {t.shape[0] for t in tensors if isinstance(t, torch.Tensor) and t.dim()}
    with torch.no_grad():
        output = subject.outputs(bench.fresh().eval(), batch)
    if (
        len(sizes) != 1
        or not isinstance(output, torch.Tensor)
        or not output.dim()
        or output.shape[0] != min(sizes)
        or min(sizes) < 2
    ):
        raise CannotTell("which dimension of the outputs is the batch")
    if output.dim() > 1 and output.shape[-1] == output.shape[0]:
        raise CannotTell("whether the outputs compare every example with every other on purpose")
    try:
        assert_batch_independent(bench.fresh(), batch, forward=subject.outputs)
    except (TypeError, ValueError) as error:
        raise CannotTell(str(error)) from error


def _gradients(bench: Bench) -> None:
    model = bench.fresh().train()
    frozen = tuple(name for name, p in model.named_parameters() if not p.requires_grad)
    assert_every_parameter_gets_gradient(model, bench.batch(), bench.subject.loss_of, frozen=frozen)


def _finite_loss(bench: Bench) -> None:
    import torch

    with torch.no_grad():
        value = bench.subject.loss_of(bench.fresh().train(), bench.batch())
    if getattr(value, "numel", lambda: 1)() != 1:
        raise AssertionError(
            f"loss(outputs, batch) gives a tensor of shape {tuple(value.shape)}; expected a scalar"
        )
    assert_finite(float(value), "the loss before training")


def _optimized(bench: Bench) -> None:
    assert_all_parameters_optimized(bench.built(), bench.optimizer)


def _decay(bench: Bench) -> None:
    bench.built()
    assert_decoupled_decay(bench.optimizer)


def _decay_groups(bench: Bench) -> None:
    assert_decay_groups(bench.built(), bench.optimizer)


def _deterministic(bench: Bench) -> None:
    def again() -> list[float]:
        seed_all(bench.seed)
        return train(bench.subject, REPEATED_STEPS, evaluate=False)

    assert_deterministic(again)


def _resumes(bench: Bench) -> None:
    """Model, optimizer and random state through state_dict(): what a model keeps elsewhere is lost,
    and the losses show it.
    """
    import torch

    seed_all(bench.seed)
    batches = list(islice(endless(bench.subject.data), REPEATED_STEPS))

    def build() -> tuple[Any, Any]:
        seed_all(bench.seed)
        model = bench.subject.model().train()
        return model, bench.subject.optimizer(model.parameters())

    def steps(state: tuple[Any, Any], first: int, last: int) -> list[float]:
        model, optimizer = state
        losses = []
        for batch in batches[first:last]:
            optimizer.zero_grad()
            loss = bench.subject.loss_of(model, batch)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        return losses

    def save(state: tuple[Any, Any]) -> Any:
        kept = copy.deepcopy([part.state_dict() for part in state])
        return kept, torch.get_rng_state()

    def load(state: tuple[Any, Any], checkpoint: Any) -> None:
        for part, kept in zip(state, checkpoint[0], strict=True):
            part.load_state_dict(kept)
        torch.set_rng_state(checkpoint[1])

    assert_resumes_exactly(build, steps, save, load, steps=len(batches), at=len(batches) // 2)


def _overfits(bench: Bench) -> None:
    _overfit(bench, 1.0)


def _overfit(bench: Bench, factor: float) -> None:
    seed_all(bench.seed)
    model = bench.subject.model()
    optimizer = bench.subject.optimizer(model.parameters())
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * factor
    # Noise in the model (dropout) keeps a small loss from a third of the first; half of it is proof
    # enough that it learns.
    began = time.monotonic()
    start = _first_loss(bench, model)
    step_seconds = 3 * (time.monotonic() - began)  # forward and backward, roughly
    steps = max(FEWEST_STEPS, min(OVERFIT_STEPS, int(OVERFIT_SECONDS / max(step_seconds, 1e-6))))
    below = start / 2 if start > 0 else start - 0.5 * abs(start) - 1e-3
    assert_overfits_one_batch(
        model, bench.batch(), bench.subject.loss_of, optimizer, steps=steps, below=below
    )


def _first_loss(bench: Bench, model: Any) -> float:
    import torch

    with torch.no_grad(), torch.random.fork_rng():
        value = float(bench.subject.loss_of(model.train(), bench.batch()))
    return value if math.isfinite(value) else 1.0


def reason_for_no_progress(bench: Bench) -> tuple[str, str] | None:
    """(fault, what was tried) when another learning rate learns the batch that the given one does
    not.
    """
    ends = time.monotonic() + OVERFIT_SECONDS
    for factor in (0.1, 10.0, 0.01, 100.0, 1e3, 1e4, 1e5):
        try:
            _overfit(bench, factor)
        except AssertionError:
            if time.monotonic() > ends:
                return None
            continue
        fault = "optimizer.lr-too-high" if factor < 1 else "optimizer.lr-too-low"
        return fault, f"with the learning rate times {factor:g} the same batch is learned"
    return None


PROBES = (
    Probe(
        "data.nonfinite-input", "proven", "A batch holds values that are not finite", _finite_inputs
    ),
    Probe("model.unregistered-module", "proven", "A module is not part of the model", _registered),
    Probe(
        "model.cross-sample-leak",
        "likely",
        "Examples of a batch influence each other",
        _independent,
    ),
    Probe("model.detached-graph", "likely", "Trainable parameters get no gradient", _gradients),
    Probe(
        "loss.unstable-log",
        "likely",
        "The loss is not a finite number before training",
        _finite_loss,
    ),
    Probe(
        "optimizer.missing-params",
        "proven",
        "The optimizer does not hold what the model trains",
        _optimized,
    ),
    Probe(
        "optimizer.coupled-l2",
        "suspected",
        "Weight decay goes through an adaptive gradient",
        _decay,
    ),
    Probe(
        "optimizer.decay-on-norm-bias",
        "suspected",
        "Weight decay also acts on gains and biases",
        _decay_groups,
    ),
    Probe("loop.nondeterminism", "likely", "Two trainings from one seed differ", _deterministic),
    Probe(
        "loop.resume-incomplete",
        "likely",
        "state_dict() does not hold the whole state of the training",
        _resumes,
    ),
    Probe("loss.wrong-loss", "likely", "One repeated batch can't be learned", _overfits),
)
