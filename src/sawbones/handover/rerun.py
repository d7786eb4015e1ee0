"""Runs the script beside this file again and compares what it differentiates with expected.csv.

    python rerun.py

Every number on which backward() is called is written to rerun.csv, with the optimizer step it belongs
to. It ends after as many steps or seconds as rerun.json says, whichever is first. Exit status: 0 the same
numbers (the same error, the same standstill), 1 not, 2 a file that it needs is not here. No package is needed
beside those that the script itself takes: requirements.txt.
"""

from __future__ import annotations

import csv
import faulthandler
import json
import math
import os
import runpy
import sys
import threading
import time
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

HERE = os.path.dirname(os.path.abspath(__file__))


GRACE_SECONDS = 20.0  # for the step that runs when the time is over


class Enough(BaseException):
    pass


def missing(settings: dict[str, Any]) -> list[str]:
    return [name for name in settings["needs"] if not os.path.exists(name)]


def watch(settings: dict[str, Any]) -> None:
    """Ends a script that stands still, with the lines at which its threads stand."""

    def end() -> None:
        faulthandler.dump_traceback(all_threads=True)
        said = "as recorded" if settings["hangs"] else "expected: that it goes on"
        print(
            f"no step ended it within {settings['seconds']} s, it stands still: {said}", flush=True
        )
        os._exit(0 if settings["hangs"] else 1)

    timer = threading.Timer(settings["seconds"] + GRACE_SECONDS, end)
    timer.daemon = True
    timer.start()


def rerun(settings: dict[str, Any]) -> tuple[list[list[Any]], str]:
    rows: list[list[Any]] = []
    began, step = time.monotonic(), [0]
    backward: Any = torch.Tensor.backward

    def logged(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.numel() == 1:
            rows.append([step[0], repr(float(self.detach()))])
        return backward(self, *args, **kwargs)

    def counted(optimizer: Any, args: Any, kwargs: Any) -> None:
        step[0] += 1
        if step[0] >= settings["steps"] or time.monotonic() - began > settings["seconds"]:
            raise Enough

    torch.Tensor.backward = logged  # type: ignore[method-assign]
    hook = register_optimizer_step_post_hook(counted)
    sys.argv = [settings["script"], *settings["arguments"]]
    sys.path.insert(0, os.path.dirname(os.path.abspath(settings["script"])))
    error = ""
    try:
        runpy.run_path(settings["script"], run_name="__main__")
    except (Enough, SystemExit):
        pass
    except Exception as raised:
        error = type(raised).__name__
        print(f"{error}: {raised}")
    finally:
        torch.Tensor.backward = backward  # type: ignore[method-assign]
        hook.remove()
    return rows, error


def compare(rows: list[list[Any]], error: str, settings: dict[str, Any]) -> tuple[str, int]:
    if os.environ.get("RANK", "0") != "0":
        return "compared by rank 0", 0
    with open(os.path.join(HERE, "rerun.csv"), "w", newline="") as file:
        csv.writer(file).writerows([["step", "value"], *rows])
    expected = os.path.join(HERE, "expected.csv")
    if not os.path.exists(expected):
        return "nothing to compare with: expected.csv is not there", 0
    with open(expected, newline="") as file:
        wanted = list(csv.reader(file))[1:]
    found = [[str(step), value] for step, value in rows]
    if not settings["repeats"]:
        same = found == wanted
        return "the same values" if same else "other values each time, as where it was recorded", 0
    for number, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            return f"value {number}: {one[1]} at step {one[0]}, expected {other[1]}", 1
    if len(found) != len(wanted):
        return f"{len(found)} values, expected {len(wanted)}", 1
    return f"the same {len(found)} values" + (f" and the same {error}" if error else ""), 0


def course(rows: list[list[Any]]) -> str:
    """How the values ran, for somebody who waits for the symptom."""
    values = [float(value) for _, value in rows]
    if not values:
        return "backward() was never called"
    ill = [step for (step, _), value in zip(rows, values, strict=True) if not math.isfinite(value)]
    known = [value for value in values if math.isfinite(value)]
    said = f"from {values[0]:.4g} to {values[-1]:.4g}"
    if known:
        said += f", between {min(known):.4g} and {max(known):.4g}"
    return said + (f"; not finite from step {ill[0]} on" if ill else "")


def main() -> None:
    os.chdir(HERE)
    with open("rerun.json") as file:
        settings = json.load(file)
    gone = missing(settings)
    if gone:
        print(f"needed and not here: {', '.join(gone)}. What they are: README.md")
        sys.exit(2)
    watch(settings)
    rows, error = rerun(settings)
    said, status = compare(rows, error, settings)
    if error != settings["error"]:
        said, status = f"{error or 'no error'}, expected {settings['error'] or 'none'}", 1
    for symptom in settings["symptoms"]:
        print(f"recorded as: {symptom}")
    print(f"what backward() was called on: {course(rows)}")
    print(said)
    sys.exit(status)


if __name__ == "__main__":
    main()
