"""What patched mode cannot hold back on some machines, and only after `--allow native`.

The same list stands in docs/how-to/isolation.md (tested).
"""

from __future__ import annotations

from functools import cache

from sawbones.isolation import landlock, supervising

UNGUARDED = {
    "native-connections": (
        "without the supervisor: connections that compiled code makes (gRPC, database drivers, "
        "hf_xet, torch's own stores)."
    ),
    "native-attributes": (
        "without the supervisor: modes, owners and times of files outside, changed from compiled "
        "code (`ctypes`); their content is held back."
    ),
    "native-shared-memory": (
        "without the supervisor: segments in `/dev/shm`, System V memory and message queues that "
        "compiled code opens by itself."
    ),
    "native-code": (
        "without Landlock: files that compiled code writes, deletes or renames by an absolute path "
        "or one that leads out of the working folder (ctypes, pyarrow and pandas writers, OpenCV, "
        "HDF5), and a second copy of `posix` or `_io` that a script loads for itself. The "
        "supervisor, where there is one, refuses them, too, but code that changes a path while it "
        "is looked at gets by."
    ),
    "signals": (
        "with neither the supervisor nor Landlock's scopes (Linux 6.12): signals to other "
        "processes of the same user."
    ),
}
NEEDS_SUPERVISOR = "native-attributes"


def unguarded_here(network: bool) -> dict[str, str]:
    """What this machine cannot hold back, with the reason. `network`: allowed anyway."""
    found = {}
    reason = _no_supervisor()
    if reason:
        found = dict.fromkeys(list(UNGUARDED)[:3], reason)
        if network:
            del found["native-connections"]
        if not landlock.holds_signals():
            found["signals"] = reason
    if not landlock.holds_writes():
        found["native-code"] = "no Landlock"
    return found


@cache
def _no_supervisor() -> str:
    return supervising.refusal()
