"""What a script can see of `sawbones run` and not of `python`: all of it, each with its reason.

The page docs/how-to/host-differences.md shows the same list; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    what: str
    why: str


ALLOWED = (
    Difference(
        "`sys.meta_path` has one more finder until torch is imported; under `diagnose` another one, "
        "until the training begins",
        "they tell when torch is there, and that a library is imported, whose lines are no data of "
        "the script's; the script sets environment variables before that",
    ),
    Difference(
        "`sys.modules` holds `sawbones` and modules of the standard library",
        "they are imported in this process; a file of the script's with such a name still wins",
    ),
    Difference(
        "functions of torch that are watched are wrapped (`Optimizer.zero_grad`, losses, …)",
        "that is how a run is recorded; names, signatures and results stay",
    ),
    Difference(
        "on a deep step, hooks on all modules and a function mode stand from the model's call on",
        "that is how operators are seen; they are gone at the backward pass, or with `--no-deep`",
    ),
    Difference(
        "parameters that are trained have weak references: `torch.utils.swap_tensors` refuses them",
        "so they are known without being kept alive",
    ),
    Difference(
        "the call stack is some ten frames deeper, so recursion ends that much earlier",
        "the script runs inside of our own `main`",
    ),
    Difference(
        "a traceback that the script formats itself may hold frames of Sawbones, and a warning of "
        "torch's compiled code, on a deep step, name a line of ours",
        "our wrappers are on the way; the traceback of an uncaught exception is without them",
    ),
    Difference(
        "a signal that comes while our own code runs is handled a moment later; while a recording is "
        "closed, Ctrl-C changes nothing",
        "an exception of a handler would otherwise end our code half way",
    ),
    Difference(
        "SIGTERM that the script leaves to the system waits for the operator that runs",
        "the recording is closed first; the process then dies of the same signal",
    ),
    Difference(
        "batches in flight stay in memory, up to `--capture-limit`, as tensors of our own",
        "a failing step is captured with them; `--no-capture` switches it off",
    ),
    Difference(
        "two more native threads, and under torch.distributed two more with names `sawbones-…`",
        "they write the recording, see where training waits, and compare ranks",
    ),
    Difference(
        "several threads that train at the same time are not recorded; once one is left, it is",
        "reading the gradients of one while another changes them would crash the process",
    ),
    Difference(
        "a module or script that does not exist ends with status 2 and a line of ours",
        "nothing was started",
    ),
    Difference(
        "the text of the error for a source file in an unknown encoding",
        "we read the file ourselves; the kind of error and the status are the same",
    ),
    Difference(
        "`-c` and a script on the standard input are not accepted",
        "a recording names the file that it is of",
    ),
    Difference(
        "lines that begin with `sawbones:` on the error stream the process was started with",
        "`--quiet` leaves the summary and the live warnings out",
    ),
)
