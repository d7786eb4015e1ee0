"""Something that runs the user's code once more, in a copy of the process: what it prints or
changes in memory is gone with the copy.
"""

from __future__ import annotations

import os
import select
import signal
import tempfile
import warnings
from collections.abc import Callable
from typing import IO

import torch


def in_a_fork(act: Callable[[IO[bytes]], str], seconds: float) -> tuple[str, bytes]:
    """What `act` answers, and what it wrote into the file that it is given."""
    receive, send = os.pipe()
    with tempfile.TemporaryFile() as file:
        with warnings.catch_warnings():
            # other threads: the fork computes on its own one and ends
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                os.close(receive)
                os.write(send, _answer(act, file).encode())
            finally:
                os._exit(0)
        os.close(send)
        try:
            ready, _, _ = select.select([receive], [], [], seconds)
            late = f"repeating it took over {seconds:.0f} s"
            answer = os.read(receive, 4096).decode() if ready else late
        finally:
            os.close(receive)
            # it stays until it is waited for, so this is still the same process
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        file.seek(0)
        return answer or "the repeated call died", file.read()


def _answer(act: Callable[[IO[bytes]], str], file: IO[bytes]) -> str:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    torch.set_num_threads(1)  # threads of a pool do not survive a fork
    try:
        answer = act(file)
        file.flush()
    except Exception as error:
        answer = f"{type(error).__name__}: {str(error)[:200]}"
    return answer
