"""One training step under a deep observer."""

from __future__ import annotations

import torch

from sawbones.observe.deep import DeepObserver
from sawbones.observe.sites import SiteFinder


def observe(model, make_loss, probe=False, backward=True):
    """The record of a step in which `make_loss` is called and its result goes backward."""
    roots = [model] if isinstance(model, torch.nn.Module) else list(model)
    observer = DeepObserver(0, 0, SiteFinder(), lambda: roots, probe)
    observer.start()
    try:
        loss = make_loss()
        observer.before_backward(loss)
        if backward:
            loss.backward()
    finally:
        record = observer.stop()
    assert "errors" not in record.probes, record.probes["errors"]
    return record
