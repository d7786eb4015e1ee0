"""Runs a script bare, watched or diagnosed, then prints every loss that was differentiated, bit for bit, and the random streams.

Started by the tests as a process of its own: python driver.py MODE RUN_FOLDER SCRIPT [ARGS...]
"""

import hashlib
import json
import random
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


def main() -> None:
    mode, folder, script, *args = sys.argv[1:]
    random.seed(0)  # streams that the script does not seed itself must be comparable too
    numpy.random.seed(0)
    record_losses()
    if mode == "bare":
        import runpy

        sys.argv = [script, *args]
        sys.path[0] = str(Path(script).resolve().parent)
        runpy.run_path(script, run_name="__main__")
    else:
        from sawbones.observe.launch import run_script
        from sawbones.observe.options import Options, diagnosing

        run_script(script, args, Path(folder), diagnosing() if mode == "diagnosed" else Options())
    digest = hashlib.sha256("".join(losses).encode()).hexdigest()
    print(json.dumps({"losses": digest, "count": len(losses), "streams": streams()}))


main()
