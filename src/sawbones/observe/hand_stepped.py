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
    recorder.step += 1
    recorder.ahead = True
    try:
        recorder.start_deep()
    finally:
        recorder.ahead = False
        recorder.step -= 1
