"""Ways to write by other processes, services, shared memory, native code and torch."""
# ruff: noqa: SIM115

from __future__ import annotations

import os
import sys

from file_ways import open_for_writing
from way_list import SERVICES, torch_way, way

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
def shell_append(inside, outside):
    import subprocess

    subprocess.run(f"echo changed >> {outside}/file.txt", shell=True, check=True)


@way
def program_copies_over(inside, outside):
    import subprocess

    subprocess.run(["cp", f"{inside}/large.bin", f"{outside}/file.txt"], check=True)


@way
def program_writes_inside(inside, outside):
    import subprocess

    subprocess.run(["cp", f"{inside}/file.txt", f"{inside}/large.bin"], check=True)


@way
def os_system(inside, outside):
    os.system(f"echo changed >> {outside}/file.txt")


@way
def os_popen(inside, outside):
    os.popen(f"echo changed >> {outside}/file.txt").read()


@way
def os_posix_spawn(inside, outside):
    pid = os.posix_spawn("/bin/rm", ["rm", f"{outside}/file.txt"], os.environ)
    os.waitpid(pid, 0)


@way
def fork_and_exec(inside, outside):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv("/bin/rm", ["rm", f"{outside}/file.txt"])
        finally:
            os._exit(1)
    os.waitpid(pid, 0)


@way
def another_python(inside, outside):
    import subprocess

    code = f"open({outside + '/file.txt'!r}, 'w').write('changed')"
    subprocess.run([sys.executable, "-c", code], check=True)


@way
def another_isolated_python(inside, outside):
    import subprocess

    code = f"open({outside + '/file.txt'!r}, 'w').write('changed')"
    subprocess.run([sys.executable, "-I", "-c", code], check=True)


@way
def thread(inside, outside):
    import threading

    worker = threading.Thread(target=open_for_writing, args=(inside, outside))
    worker.start()
    worker.join()


@way
def forked_worker(inside, outside):
    import multiprocessing

    worker = multiprocessing.get_context("fork").Process(
        target=open_for_writing, args=(inside, outside)
    )
    worker.start()
    worker.join()


def _write(path: str) -> None:
    open(path, "w").write("changed")


@way
def spawned_pool(inside, outside):
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.map(_write, [f"{outside}/file.txt"])


@way
def shared_memory_file(inside, outside):
    open(f"/dev/shm/{SERVICES['shared_memory']}", "wb").write(b"changed")


@way
def shared_memory_segment(inside, outside):
    from multiprocessing.shared_memory import SharedMemory

    segment = SharedMemory(name=str(SERVICES["shared_memory"]))
    segment.buf[:7] = b"changed"
    segment.close()


@way
def connect_to_a_service(inside, outside):
    import socket

    socket.create_connection(("127.0.0.1", int(SERVICES["port"])), 2).sendall(b"tcp")


@way
def connect_to_a_unix_socket(inside, outside):
    import socket

    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(SERVICES["unix"]))
        client.sendall(b"unix")


@way
def raw_socket(inside, outside):
    import _socket

    client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    client.connect(("127.0.0.1", int(SERVICES["port"])))
    client.sendall(b"raw")
    client.close()


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
def signal_to_another_process(inside, outside):
    import os
    import signal

    os.kill(int(SERVICES["process"]), signal.SIGUSR1)


@way
def isolated_io_module(inside, outside):
    import importlib.util

    spec = importlib.util.find_spec("posix")
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    fresh.unlink(f"{outside}/file.txt")


@way
def libc_shared_memory_removed(inside, outside):  # the last of those that need it
    import ctypes

    ctypes.CDLL(None).shm_unlink(f"/{SERVICES['shared_memory']}".encode())


@torch_way
def torch_save(inside, outside):
    import torch

    torch.save(torch.ones(2), f"{outside}/file.txt")


@torch_way
def torch_serialization_save(inside, outside):
    import torch

    torch.serialization.save(torch.ones(2), f"{outside}/file.txt")


@torch_way
def torch_old_format(inside, outside):
    import torch

    torch.save(torch.ones(2), f"{outside}/file.txt", _use_new_zipfile_serialization=False)


@torch_way
def torch_jit_save(inside, outside):
    import torch

    torch.jit.save(torch.jit.trace(torch.nn.Linear(1, 1), torch.ones(1)), f"{outside}/file.txt")


@torch_way
def torch_script_save(inside, outside):
    import torch

    torch.jit.trace(torch.nn.Linear(1, 1), torch.ones(1)).save(f"{outside}/file.txt")


@torch_way
def torch_from_file(inside, outside):
    import torch

    torch.from_file(f"{inside}/large.bin", shared=True, size=8, dtype=torch.uint8).fill_(7)


@torch_way
def torch_storage_from_file(inside, outside):
    import torch

    torch.UntypedStorage.from_file(f"{inside}/large.bin", True, 8).fill_(7)


@torch_way
def torch_trace_export(inside, outside):
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ones(2).sum()
    profile.export_chrome_trace(f"{outside}/trace.json")


@torch_way
def safetensors_save(inside, outside):
    import torch
    from safetensors.torch import save_file

    save_file({"x": torch.ones(2)}, f"{outside}/file.txt")
