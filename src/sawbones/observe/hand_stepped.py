"""Deep steps of loops that update their parameters by hand.

That such a step is over is seen when the next backward pass begins, and by then the forward pass
that a deep step is to follow has run. So the next one is begun as soon as a backward pass is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def look_ahead(recorder: Recorder) -> None:
    """A backward pass is over."""
    steps = recorder.steps
    bare = not recorder.census.roots()  # no module whose call would begin a deep step
    if steps.by_optimizer or not (steps.by_hand or bare):
        return
    if recorder.deep is not None and recorder.deep_backward_seen:
        recorder.stop_deep()
    if steps.in_transforms:
        return
    recorder.step += 1
    recorder.ahead = True
    try:
        recorder.start_deep()
    finally:
        recorder.ahead = False
        recorder.step -= 1


def transform_begins(recorder: Recorder) -> None:
    """A gradient of torch.func is about to be taken: forward and backward pass are both to come,
    and that the update before them is over is known.
    """
    recorder.steps.in_transforms = True
    recorder.steps.manual_step_check(None)
    recorder.ahead = True
    try:
        recorder.start_deep()
    finally:
        recorder.ahead = False
