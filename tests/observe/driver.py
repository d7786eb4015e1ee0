"""Runs a script bare, watched or diagnosed and prints every loss that was differentiated, bit for
bit, and the random streams.

Started by the tests as a process of its own: python driver.py MODE[,MODE...] RUN_FOLDER SCRIPT
[ARGS...] Several modes run one after the other in the same process, each from the same state, and
give one line each.
"""

import gc
import hashlib
import json
import random
import runpy
import sys
from pathlib import Path

import numpy
import torch

losses: list[str] = []


def record_losses() -> None:
    original = torch.autograd.backward

    def backward(tensors, *args, **kwargs):
        first = tensors[0] if isinstance(tensors, (tuple, list)) else tensors
        losses.append(float(first.detach().sum()).hex())
        return original(tensors, *args, **kwargs)

    torch.autograd.backward = backward


def streams() -> str:
    digest = hashlib.sha256(torch.get_rng_state().numpy().tobytes())
    digest.update(repr(random.getstate()).encode())
    digest.update(numpy.random.get_state()[1].tobytes())
    return digest.hexdigest()


def start_afresh() -> None:
    losses.clear()
    gc.collect()
    random.seed(0)  # streams that the script does not seed itself must be comparable too
    numpy.random.seed(0)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)


def run(mode: str, folder: str, script: str, args: list[str]) -> None:
    start_afresh()
    if mode == "bare":
        sys.argv = [script, *args]
        sys.path[0] = str(Path(script).resolve().parent)
        main = sys.modules["__main__"]
        try:
            runpy.run_path(script, run_name="__main__")
        finally:
            sys.modules["__main__"] = main
    else:
        from sawbones.observe import detail
        from sawbones.observe.launch import run_script
        from sawbones.observe.options import Options, diagnosing

        detail._ALWAYS, detail._FELT = (
            6,
            0.0,
        )  # brief steps after these, whatever watching takes here
        run_script(
            script, args, Path(folder) / mode, diagnosing() if mode == "diagnosed" else Options()
        )
    digest = hashlib.sha256("".join(losses).encode()).hexdigest()
    print(
        "\n"
        + json.dumps({"mode": mode, "losses": digest, "count": len(losses), "streams": streams()})
    )


if __name__ == "__main__":
    modes, folder, script, *args = sys.argv[1:]
    record_losses()
    for mode in modes.split(","):
        run(mode, folder, script, args)
