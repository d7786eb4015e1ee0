"""A short training of a subject under the recorder, with a loop that has no faults of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from sawbones.observe.launch import Session, crashed
from sawbones.observe.options import diagnosing
from sawbones.schema import Ending, Run
from sawbones.store import read_run
from sawbones.triage.subject import Subject

MOST_EVALUATED = 8  # batches per evaluation


def seed_all(seed: int) -> None:
    from sawbones.observe.random_streams import seed_streams

    seed_streams(seed)


def endless(make: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """Batch after batch, epoch after epoch: from one loader as long as it can start again, else
    from a new one.
    """
    data = make()
    while True:
        count = 0
        for batch in data:
            count += 1
            yield batch
        if not count:
            return
        if iter(data) is data:  # a generator is used up
            data = make()


def train(subject: Subject, steps: int, evaluate: bool = True) -> list[float]:
    """zero_grad, forward, loss, backward, step, schedule; evaluations in the middle and at the
    end.
    """
    model = subject.model()
    optimizer = subject.optimizer(model.parameters())
    scheduler = subject.scheduler(optimizer) if subject.scheduler is not None else None
    losses = []
    model.train()
    for step, batch in enumerate(endless(subject.data)):
        optimizer.zero_grad()
        loss = subject.loss_of(model, batch)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(float(loss.detach()))
        if evaluate and step + 1 in (steps // 2, steps):
            _evaluate(subject, model)
            model.train()
        if step + 1 == steps:
            break
    return losses


def _evaluate(subject: Subject, model: Any) -> None:
    import torch

    if subject.evaluate is not None:
        subject.evaluate(model)
        return
    if subject.validation is None:
        return
    model.eval()
    total = 0.0
    with torch.no_grad():
        for number, batch in enumerate(subject.validation()):
            total += float(subject.loss_of(model, batch))
            if number + 1 == MOST_EVALUATED:
                break


def record(subject: Subject, steps: int, seed: int) -> tuple[Run, BaseException | None]:
    """The recording, and what ended it early."""
    with tempfile.TemporaryDirectory(prefix="sawbones-check-") as scratch:
        folder = Path(scratch) / "run"
        session = Session(
            folder, subject.name or "subject", (), diagnosing(quiet=True), os.getcwd(), 0
        )
        seed_all(seed)
        session.install()
        error: BaseException | None = None
        ending = Ending("finished", 0)
        try:
            train(subject, steps)
        except Exception as caught:
            error, ending = caught, crashed(caught, session)
        except BaseException:
            session.close(Ending("interrupted", 130))
            raise
        session.close(ending)
        return read_run(folder), error
