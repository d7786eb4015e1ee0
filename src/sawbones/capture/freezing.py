"""Switching capture on: in the process of `sawbones run` and `sawbones.watch`, and in the child
that `diagnose` watches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sawbones.observe.launch import Session

# Here and not in freezer.py, which needs torch: the help of the command line must not.
RUN_LIMIT_MB = 256
DIAGNOSE_LIMIT_MB = 2048


def attach(session: Session, **settings: Any) -> None:
    """The freezer is there as soon as torch is."""
    session.on_ready.append(lambda recorder: install(recorder, session, **settings))


def install(recorder: Any, session: Session, **settings: Any) -> Any:
    from sawbones.capture.freezer import Freezer, Settings

    where = Settings(
        root=session.root,
        script=session.script,
        argv=tuple(session.argv),
        working_folder=session.root,
    )
    recorder.capture = Freezer(recorder, replace(where, **settings))
    return recorder.capture
