"""The system calls that the supervisor looks at: their numbers, and where their paths stand.

Only calls that change something outside of the process and are rare in a training loop. Reading,
writing to what is open already, sending on a connection and mapping memory are not among them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

# The numbers of x86_64 and aarch64; None where an architecture has only the newer call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "open": (2, None),
    "creat": (85, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "truncate": (76, 45),
    "unlink": (87, None),
    "rmdir": (84, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "ioctl": (16, 29),
    "connect": (42, 203),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "io_uring_setup": (425, 425),
    "seccomp": (317, 277),
}
_MACHINES = {"x86_64": 0, "aarch64": 1}
AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW = 0x100, 0x400


@dataclass(frozen=True)
class Place:
    """Which arguments of a call name a file. Without `path` it is the open file `folder`; a null
    pointer or an empty path means the same.
    """

    path: int | None = None
    folder: int | None = None
    follows: bool = True  # a link at the end of the path
    flags: int | None = None  # the argument that may say otherwise


NETWORK = ("connect", "sendto", "sendmsg", "sendmmsg")
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
KEYED = ("shmget", "semget", "msgget")
QUEUES = ("mq_open", "mq_unlink")
# A mode, an owner, times, attributes: no open file is needed, so Landlock does not see them.
ATTRIBUTES = {
    "chmod": Place(0),
    "fchmod": Place(folder=0),
    "fchmodat": Place(1, 0),
    "fchmodat2": Place(1, 0, flags=3),
    "chown": Place(0),
    "fchown": Place(folder=0),
    "lchown": Place(0, follows=False),
    "fchownat": Place(1, 0, flags=4),
    "utime": Place(0),
    "utimes": Place(0),
    "futimesat": Place(1, 0),
    "utimensat": Place(1, 0, flags=3),
    "setxattr": Place(0),
    "lsetxattr": Place(0, follows=False),
    "fsetxattr": Place(folder=0),
    "removexattr": Place(0),
    "lremovexattr": Place(0, follows=False),
    "fremovexattr": Place(folder=0),
    "setxattrat": Place(1, 0, flags=2),
    "removexattrat": Place(1, 0, flags=2),
    "file_setattr": Place(1, 0, flags=4),
    "ioctl": Place(folder=0),
    "truncate": Place(0),  # a size; Landlock knows it from Linux 6.2 on only
}
# What makes a name, and what needs one that is there.
MAKES = {
    "open": Place(0),
    "creat": Place(0),
    "openat": Place(1, 0),
    "openat2": Place(1, 0),
    "symlink": Place(1, follows=False),
    "symlinkat": Place(2, 1, follows=False),
    "mkdir": Place(0, follows=False),
    "mkdirat": Place(1, 0, follows=False),
    "mknod": Place(0, follows=False),
    "mknodat": Place(1, 0, follows=False),
}
REMOVES = {
    "unlink": Place(0, follows=False),
    "rmdir": Place(0, follows=False),
    "unlinkat": Place(1, 0, follows=False),
}
MOVES = {
    "rename": (Place(0, follows=False), Place(1, follows=False)),
    "renameat": (Place(1, 0, follows=False), Place(3, 2, follows=False)),
    "renameat2": (Place(1, 0, follows=False), Place(3, 2, follows=False)),
    "link": (Place(0, follows=False), Place(1, follows=False)),
    "linkat": (Place(1, 0, follows=False, flags=4), Place(3, 2, follows=False)),
}


def is_known_machine() -> bool:
    return os.uname().machine in _MACHINES


def number_of(name: str) -> int | None:
    """None where this machine has no such call."""
    return _NUMBERS[name][_MACHINES[os.uname().machine]]


def names() -> dict[int, str]:
    """Of this machine's calls, by number."""
    found = {number_of(name): name for name in _NUMBERS}
    return {number: name for number, name in found.items() if number is not None}
