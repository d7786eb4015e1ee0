"""Ways to write, connect and signal from compiled code, past everything that Python knows."""

from __future__ import annotations

import os

from way_list import SERVICES, way

# Not held back in patched mode on some machines, with the entry of the documentation that says so.
UNGUARDED_WAYS = {
    "libc_chmod": "native-attributes",
    "libc_chown": "native-attributes",
    "libc_utimes": "native-attributes",
    "libc_times_of_an_open_file": "native-attributes",
    "libc_truncate": "native-attributes",
    "libc_connect": "native-connections",
    "libc_connect_ipv6": "native-connections",
    "libc_connect_unix": "native-connections",
    "libc_datagram": "native-connections",
    "libc_datagram_message": "native-connections",
    "libc_shared_memory": "native-shared-memory",
    "libc_shared_memory_removed": "native-shared-memory",
    "libc_unlink": "native-code",
    "libc_write": "native-code",
    "arrow_file": "native-code",
    "isolated_io_module": "native-code",
    "signal_to_another_process": "signals",
    "libc_kill": "signals",
}


@way
def libc_unlink(inside, outside):
    import ctypes

    ctypes.CDLL(None).unlink(f"{outside}/file.txt".encode())


@way
def libc_write(inside, outside):
    import ctypes

    libc = ctypes.CDLL(None)
    number = libc.open(f"{outside}/file.txt".encode(), os.O_WRONLY)
    libc.write(number, b"changed", 7)
    libc.close(number)


@way
def libc_chmod(inside, outside):
    import ctypes

    ctypes.CDLL(None).chmod(f"{outside}/file.txt".encode(), 0o600)


@way
def libc_chown(inside, outside):
    import ctypes

    ctypes.CDLL(None).chown(f"{outside}/file.txt".encode(), os.getuid(), os.getgid())


@way
def libc_utimes(inside, outside):
    import ctypes

    ctypes.CDLL(None).utimes(f"{outside}/file.txt".encode(), None)


@way
def libc_times_of_an_open_file(inside, outside):
    import ctypes

    libc = ctypes.CDLL(None)
    number = libc.open(f"{outside}/file.txt".encode(), os.O_RDONLY)
    libc.futimens(number, None)
    libc.close(number)


@way
def libc_truncate(inside, outside):
    import ctypes

    ctypes.CDLL(None).truncate(f"{outside}/file.txt".encode(), ctypes.c_long(3))


def _ipv4(port: object) -> bytes:
    import struct

    return struct.pack("=H", 2) + struct.pack("!H4B8x", int(port), 127, 0, 0, 1)


def _libc_sends(family: int, address: bytes, text: bytes) -> None:
    import ctypes

    libc = ctypes.CDLL(None)
    number = libc.socket(family, 1, 0)
    libc.connect(number, address, len(address))
    libc.send(number, text, len(text), 0x4000)  # without a signal where nobody is there
    libc.close(number)


@way
def libc_connect(inside, outside):
    _libc_sends(2, _ipv4(SERVICES["port"]), b"libc")


@way
def libc_connect_ipv6(inside, outside):
    import struct

    address = struct.pack("=H", 10) + struct.pack("!HI15xBI", int(SERVICES["port6"]), 0, 1, 0)
    _libc_sends(10, address, b"libc6")


@way
def libc_connect_unix(inside, outside):
    import struct

    path = str(SERVICES["unix"]).encode() + b"\0"
    _libc_sends(1, struct.pack("=H", 1) + path, b"libc-unix")


@way
def libc_datagram(inside, outside):
    import ctypes

    libc = ctypes.CDLL(None)
    number = libc.socket(2, 2, 0)
    libc.sendto(number, b"libc-udp", 8, 0, _ipv4(SERVICES["datagrams"]), 16)
    libc.close(number)


@way
def libc_datagram_message(inside, outside):
    import ctypes
    import struct

    libc = ctypes.CDLL(None)
    number = libc.socket(2, 2, 0)
    text = ctypes.create_string_buffer(b"libc-message", 12)
    address = ctypes.create_string_buffer(_ipv4(SERVICES["datagrams"]), 16)
    spans = ctypes.create_string_buffer(struct.pack("@PN", ctypes.addressof(text), 12))
    fields = (ctypes.addressof(address), 16, ctypes.addressof(spans), 1, 0, 0, 0)
    libc.sendmsg(number, struct.pack("@PIPNPNi", *fields), 0)
    libc.close(number)


@way
def libc_kill(inside, outside):
    import ctypes
    import signal

    ctypes.CDLL(None).kill(int(SERVICES["process"]), int(signal.SIGUSR1))


@way
def libc_shared_memory(inside, outside):
    import ctypes

    libc = ctypes.CDLL(None)
    number = libc.shm_open(f"/{SERVICES['shared_memory']}".encode(), os.O_RDWR, 0o600)
    libc.write(number, b"by libc", 7)
    libc.close(number)


@way
def arrow_file(inside, outside):
    import pyarrow

    with pyarrow.OSFile(f"{outside}/file.txt", "wb") as file:
        file.write(b"changed")


@way
def libc_shared_memory_removed(inside, outside):
    import ctypes

    ctypes.CDLL(None).shm_unlink(f"/{SERVICES['other_memory']}".encode())
