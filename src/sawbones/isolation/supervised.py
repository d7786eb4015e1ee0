"""Patched mode: a process that puts itself under the supervisor before it runs anything.

Started as `python -m sawbones.isolation.supervised CHANNEL SKIPPED MODULE ARGS...`: installs the
filter, tells the bench through the open socket CHANNEL where it listens, waits until the bench has
it, and goes on as `python -m MODULE ARGS...`. SKIPPED: calls that are allowed, by commas.
"""

from __future__ import annotations

import os
import runpy
import sys

from sawbones.isolation import seccomp

GO_ON = b"g"
UNSUPERVISED = 96  # the exit status: nothing has been run
TRY = "try"  # as MODULE
NOWHERE = "/sawbones/asks/whether/this/is/refused"


def main() -> None:
    channel, skipped, module = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    try:
        listener = seccomp.listen(word for word in skipped.split(",") if word)
    except OSError as error:
        os.write(channel, f"seccomp: {error.strerror}".encode())
        os._exit(UNSUPERVISED)
    os.write(channel, str(listener).encode())
    answer = os.read(channel, 1)
    # Held here, too, it would stay open when the supervisor is gone, and calls would wait for ever.
    os.close(listener)
    os.close(channel)
    if answer != GO_ON:
        os._exit(UNSUPERVISED)
    if module == TRY:
        _exit_after_a_try()
    sys.argv = sys.argv[3:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _exit_after_a_try() -> None:
    """A supervisor that can read what we ask refuses this before the kernel finds no such file."""
    try:
        os.chmod(NOWHERE, 0o600)
    except PermissionError:
        os._exit(0)
    except OSError:
        pass
    os._exit(UNSUPERVISED)


if __name__ == "__main__":
    main()
