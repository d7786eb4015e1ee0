"""What patched mode cannot hold back. The same list stands in docs/how-to/isolation.md (tested)."""

from __future__ import annotations

UNGUARDED = {
    "native-code": (
        "libraries that open, delete or rename files from compiled code by an absolute path or one "
        "that leads out of the working folder (ctypes, pyarrow and pandas writers, OpenCV, HDF5). "
        "By a relative name they write into the copy."
    ),
    "native-connections": (
        "connections that compiled code makes (gRPC, database drivers, hf_xet, torch's own stores)."
    ),
    "raw-sockets": "connections through `_socket` instead of `socket`.",
    "fresh-built-ins": "a second copy of `posix` or `_io` that a script loads for itself.",
    "signals": "signals to other processes of the same user (`os.kill`).",
}
