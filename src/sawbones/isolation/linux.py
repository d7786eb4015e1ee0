"""The system calls that make a private room for a process: namespaces, mounts, capabilities.

Standard library only, and no thread may run yet: a process with several threads cannot enter a user
namespace.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_NETWORK = 0x00020000, 0x08000000, 0x10000000, 0x40000000
READ_ONLY, NO_SET_USER, NO_DEVICES, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 0x1000, 0x4000, 0x40000
_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE, _ATTR_READ_ONLY = -100, 0x8000, 1
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITY_VERSION_3 = 0x20080522
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_LAST_CAPABILITY = 63
# What root may still do: to its own files, users and processes. Not: mounts, devices, networks.
_KEPT = (0, 1, 2, 3, 4, 5, 6, 7, 10, 14, 15, 23)

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int = 0, data: str = "") -> None:
    done = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind is not None else None,
        ctypes.c_ulong(flags),
        os.fsencode(data) if data else None,
    )
    _checked(done, f"mount {kind or 'bind'} on {target}")


def make_read_only(target: str) -> None:
    """The mount and all below it."""
    attributes = struct.pack("=QQQQ", _ATTR_READ_ONLY, 0, 0, 0)
    done = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.c_char_p(attributes),
        ctypes.c_size_t(len(attributes)),
    )
    _checked(done, f"read-only {target}")


def change_root(new_root: str) -> None:
    """`new_root` becomes /, and the old one is out of reach for good."""
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, f"pivot_root: unknown on {os.uname().machine}")
    os.chdir(new_root)
    _checked(_libc.syscall(ctypes.c_long(number), b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", _DETACH), "umount of the old root")
    os.chdir("/")


def enter_user_namespace(flags: int) -> None:
    """A user namespace in which this user stays who they are; root keeps all users and groups.

    The maps are written by a helper process that stays outside: only from there may root map more
    than itself.
    """
    uid, gid = os.getuid(), os.getgid()
    to_helper, from_helper = os.pipe(), os.pipe()
    target = os.getpid()
    helper = os.fork()
    if helper == 0:
        os.close(to_helper[1])
        os.read(to_helper[0], 1)
        try:
            _write_maps(target, uid, gid)
        except OSError as error:
            os.write(from_helper[1], str(error.errno or 1).encode())
        else:
            os.write(from_helper[1], b"0")
        os._exit(0)
    try:
        unshare(NEW_USER | flags)
    finally:
        os.write(to_helper[1], b"g")
        answer = int(os.read(from_helper[0], 16) or b"1")
        os.waitpid(helper, 0)
        for end in (*to_helper, *from_helper):
            os.close(end)
    if answer:
        raise OSError(answer, f"user map: {os.strerror(answer)}")


def _write_maps(target: int, uid: int, gid: int) -> None:
    process = Path(f"/proc/{target}")
    if uid == 0:
        try:
            for name in ("uid_map", "gid_map"):
                # What this namespace has itself, one to one.
                rows = Path(f"/proc/self/{name}").read_text().split("\n")
                spans = [row.split() for row in rows if row.strip()]
                same = "".join(f"{span[0]} {span[0]} {span[2]}\n" for span in spans)
                (process / name).write_text(same)
            return
        except PermissionError:
            pass  # a container's root without CAP_SETUID
    (process / "setgroups").write_text("deny")
    (process / "uid_map").write_text(f"{uid} {uid} 1\n")
    (process / "gid_map").write_text(f"{gid} {gid} 1\n")


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | _IFF_UP))


def drop_capabilities() -> None:
    """Nothing that could undo the room, in this process or in what it starts."""
    kept = _KEPT if os.getuid() == 0 else ()
    for number in range(_LAST_CAPABILITY + 1):
        if number not in kept:
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # unknown numbers are refused: fine
    mask = sum(1 << number for number in kept) & _permitted()
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    data = struct.pack("=6I", mask, mask, 0, 0, 0, 0)
    _checked(_libc.capset(header, data), "capset")
    no_new_privileges()


def _permitted() -> int:
    """Root of a container lacks some, and must not ask for them."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("CapPrm:"):
            return int(line.split()[1], 16)
    return 0


def no_new_privileges() -> None:
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
