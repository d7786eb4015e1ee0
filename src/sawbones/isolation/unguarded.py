"""What patched mode cannot hold back. The same list stands in docs/how-to/isolation.md (tested)."""

from __future__ import annotations

UNGUARDED = {
    "native-connections": (
        "connections that compiled code makes (gRPC, database drivers, hf_xet, torch's own stores)."
    ),
    "native-attributes": (
        "modes, owners and times of files outside, changed from compiled code (`ctypes`); their "
        "content is held back."
    ),
    "native-shared-memory": "segments in `/dev/shm` that compiled code opens by itself.",
    "native-code": (
        "without Landlock only (Linux before 5.13, or a container that refuses it): files that "
        "compiled code writes, deletes or renames by an absolute path or one that leads out of the "
        "working folder (ctypes, pyarrow and pandas writers, OpenCV, HDF5), and a second copy of "
        "`posix` or `_io` that a script loads for itself."
    ),
    "signals": (
        "without Landlock's scopes only (Linux before 6.12): signals to other processes of the "
        "same user."
    ),
}
