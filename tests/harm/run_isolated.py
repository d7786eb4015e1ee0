"""A process of its own, for another user perhaps: runs train.py of a folder as `diagnose` does.

`run_isolated.py HOME ARGS...` prints the mode, what was held back, and what the script said.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from sawbones.observe.options import Options
from sawbones.trials.bench import Bench, ChildFailed, Patient

if __name__ == "__main__":
    options = Options(deep_steps=(), deep_every=0, batch_samples=0)
    with Bench(Patient("train.py", tuple(sys.argv[2:]), Path(sys.argv[1])), 240) as bench:
        try:
            run = bench.execute(options)
            held = [asdict(row) for row in run.held_back]
        except ChildFailed:  # most ways need no torch, and then there is nothing to record
            held = []
        folder = str(bench.scratch.folder)
    said = bench.log_tail
    print(json.dumps([bench.isolation.mode, held, said, Path(folder).exists()]))
