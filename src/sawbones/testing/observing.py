"""observe: a script as it is, in a child process and a scratch copy of its folder, and what the
recorder saw of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sawbones.observe.options import Options, diagnosing
from sawbones.schema import Run
from sawbones.trials.bench import Bench, Patient
from sawbones.trials.twin import compare


def observe(
    script: str | Path,
    *argv: str,
    steps: int | None = None,
    root: str | Path | None = None,
    ranks: int = 1,
    twice: bool = False,
    seconds: float = 600.0,
) -> Run:
    """Run a script for so many optimizer steps (or to its end) and return the recording.

    `root` is the folder it is started in, the current one by default; nothing in it is written to.
    `ranks` starts it under torchrun. With `twice` it runs a second time from the same start, for
    assert_deterministic.
    """
    folder = Path(root) if root is not None else Path.cwd()
    if not (folder / script).is_file():
        raise FileNotFoundError(
            f"no script {script} in {folder}. Name the folder that it is started in: "
            "observe(..., root=FOLDER)"
        )
    with Bench(Patient(str(script), argv, folder, ranks), seconds) as bench:
        run = bench.execute(diagnosing(max_steps=steps))
        if twice:
            limit = min(run.num_steps, steps or run.num_steps) or None
            second = bench.execute(
                Options(
                    deep_steps=(), deep_every=0, max_steps=limit, full_every=10, batch_samples=0
                )
            )
            run = replace(run, twin_run=compare(run, second))
    return run
