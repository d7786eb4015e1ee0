"""Ways in which a script can change something of the user's, each on decoys of its own.

Run as a script: `ways_to_write.py OUTSIDE NAMES SERVICES` in a folder that holds one folder of
decoys per way. Every way writes to decoys in the working folder or in OUTSIDE, or to a service, and
says "did", or "held back" with the error.
"""
# ruff: noqa: SIM115

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

SERVICES: dict[str, object] = {}
WAYS: dict[str, Callable[[str, str], object]] = {}
NEEDS_TORCH: set[str] = set()
# Not held back in patched mode, with the entry of the documentation that says so.
UNGUARDED_WAYS = {
    "libc_unlink": "native-code",
    "libc_write": "native-code",
    "raw_socket": "raw-sockets",
    "isolated_io_module": "fresh-built-ins",
}


def way(function: Callable[[str, str], object]) -> Callable[[str, str], object]:
    """`function(inside, outside)`: its two folders, the first one relative."""
    WAYS[function.__name__] = function
    return function


def torch_way(function: Callable[[str, str], object]) -> Callable[[str, str], object]:
    NEEDS_TORCH.add(function.__name__)
    return way(function)


@way
def open_for_writing(inside, outside):
    open(f"{outside}/file.txt", "w").write("changed")


@way
def open_to_append_inside(inside, outside):
    open(f"{inside}/file.txt", "a").write("changed")


@way
def open_to_update_a_large_file(inside, outside):
    with open(f"{inside}/large.bin", "r+b") as file:
        file.write(b"changed")


@way
def open_by_absolute_path_of_the_folder(inside, outside):
    open(f"{SERVICES['home']}/{inside}/file.txt", "w").write("changed")


@way
def open_through_proc_root(inside, outside):
    open(f"/proc/self/root{outside}/file.txt", "w").write("changed")


@way
def reopen_a_descriptor(inside, outside):
    number = os.open(f"{outside}/file.txt", os.O_RDONLY)
    open(f"/proc/self/fd/{number}", "w").write("changed")


@way
def parent_folder(inside, outside):
    open(f"../outside/{os.path.basename(outside)}/file.txt", "w").write("changed")


@way
def linked_folder(inside, outside):
    open(f"{inside}/linked/file.txt", "w").write("changed")


@way
def change_folder_first(inside, outside):
    here = os.getcwd()
    os.chdir(outside)
    try:
        open("file.txt", "w").write("changed")
    finally:
        os.chdir(here)


@way
def io_open(inside, outside):
    import io

    io.open(f"{outside}/file.txt", "w").write("changed")  # noqa: UP020


@way
def io_fileio(inside, outside):
    import io

    io.FileIO(f"{outside}/file.txt", "w").write(b"changed")


@way
def codecs_open(inside, outside):
    import codecs

    codecs.open(f"{outside}/file.txt", "w", "utf-8").write("changed")


@way
def os_open(inside, outside):
    number = os.open(f"{outside}/file.txt", os.O_WRONLY)
    os.write(number, b"changed")


@way
def os_open_beside_a_descriptor(inside, outside):
    folder = os.open(outside, os.O_RDONLY)
    number = os.open("file.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=folder)
    os.write(number, b"changed")


@way
def os_truncate(inside, outside):
    os.truncate(f"{inside}/large.bin", 3)


@way
def os_remove(inside, outside):
    os.remove(f"{outside}/file.txt")


@way
def posix_unlink(inside, outside):
    import posix

    posix.unlink(f"{outside}/file.txt")


@way
def os_rename(inside, outside):
    os.rename(f"{outside}/file.txt", f"{outside}/renamed.txt")


@way
def os_replace(inside, outside):
    Path(inside, "new.txt").write_text("changed")
    os.replace(f"{inside}/new.txt", f"{outside}/file.txt")


@way
def write_through_a_hard_link(inside, outside):
    os.link(f"{outside}/file.txt", f"{inside}/hard.txt")
    open(f"{inside}/hard.txt", "w").write("changed")


@way
def write_through_a_new_link(inside, outside):
    os.symlink(f"{outside}/file.txt", f"{inside}/soft.txt")
    open(f"{inside}/soft.txt", "w").write("changed")


@way
def os_chmod(inside, outside):
    os.chmod(f"{outside}/file.txt", 0o600)


@way
def os_utime(inside, outside):
    os.utime(f"{outside}/file.txt", (1, 1))


@way
def os_setxattr(inside, outside):
    os.setxattr(f"{outside}/file.txt", "user.mark", b"changed")
    os.utime(f"{outside}/file.txt", (1, 1))


@way
def os_mkdir(inside, outside):
    os.mkdir(f"{outside}/new")


@way
def os_rmdir(inside, outside):
    os.rmdir(f"{outside}/empty")


@way
def os_mkfifo(inside, outside):
    os.mkfifo(f"{outside}/pipe")


@way
def copy_file_range(inside, outside):
    source = os.open(f"{inside}/large.bin", os.O_RDONLY)
    target = os.open(f"{outside}/file.txt", os.O_WRONLY)
    os.copy_file_range(source, target, 100)


@way
def shutil_rmtree(inside, outside):
    import shutil

    shutil.rmtree(f"{outside}/sub")


@way
def shutil_copy(inside, outside):
    import shutil

    shutil.copy(f"{inside}/large.bin", f"{outside}/file.txt")


@way
def shutil_move(inside, outside):
    import shutil

    shutil.move(f"{outside}/sub", f"{outside}/moved")


@way
def pathlib_write(inside, outside):
    Path(outside, "file.txt").write_text("changed")


@way
def pathlib_unlink(inside, outside):
    Path(inside, "file.txt").unlink()


@way
def gzip_open(inside, outside):
    import gzip

    gzip.open(f"{outside}/file.txt", "wb").write(b"changed")


@way
def bz2_open(inside, outside):
    import bz2

    with bz2.open(f"{outside}/file.txt", "wb") as file:
        file.write(b"changed")


@way
def lzma_open(inside, outside):
    import lzma

    with lzma.open(f"{outside}/file.txt", "wb") as file:
        file.write(b"changed")


@way
def zip_archive(inside, outside):
    import zipfile

    with zipfile.ZipFile(f"{outside}/file.txt", "w") as file:
        file.writestr("a", "changed")


@way
def tar_archive(inside, outside):
    import tarfile

    with tarfile.open(f"{outside}/file.txt", "w") as file:
        file.add(f"{inside}/file.txt")


@way
def shelve_database(inside, outside):
    import shelve

    with shelve.open(f"{outside}/shelf") as shelf:
        shelf["a"] = 1


@way
def logging_handler(inside, outside):
    import logging

    handler = logging.FileHandler(f"{outside}/file.txt")
    handler.emit(logging.makeLogRecord({"msg": "changed"}))
    handler.close()


@way
def fileinput_in_place(inside, outside):
    import fileinput

    with fileinput.input(f"{outside}/file.txt", inplace=True) as lines:
        for line in lines:
            print(line.upper())


@way
def temporary_file_beside(inside, outside):
    import tempfile

    with tempfile.NamedTemporaryFile("w", dir=outside, delete=False) as file:
        file.write("changed")


@way
def memory_map(inside, outside):
    import mmap

    with open(f"{inside}/large.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:7] = b"changed"


@way
def numpy_memmap(inside, outside):
    import numpy as np

    array = np.memmap(f"{inside}/large.bin", dtype=np.uint8, mode="r+")
    array[:] = 1
    array.flush()


@way
def numpy_save(inside, outside):
    import numpy as np

    np.save(f"{outside}/array.npy", np.ones(3))


@way
def numpy_tofile(inside, outside):
    import numpy as np

    np.ones(3).tofile(f"{outside}/file.txt")


@way
def sqlite_database(inside, outside):
    import sqlite3

    with sqlite3.connect(f"{outside}/table.db") as database:
        database.execute("insert into t values (1)")
    database.close()


@way
def sqlite_address(inside, outside):
    import sqlite3

    with sqlite3.connect(f"file:{outside}/table.db?mode=rw", uri=True) as database:
        database.execute("insert into t values (1)")
    database.close()


@way
def sqlite_attach(inside, outside):
    import sqlite3

    with sqlite3.connect(":memory:") as database:
        database.execute(f"attach '{outside}/table.db' as other")
        database.execute("insert into other.t values (1)")
    database.close()


@way
def sqlite_vacuum_into(inside, outside):
    import sqlite3

    database = sqlite3.connect(":memory:")
    database.execute(f"vacuum into '{outside}/vacuumed.db'")
    database.close()


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
def isolated_io_module(inside, outside):
    import importlib.util

    spec = importlib.util.find_spec("posix")
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    fresh.unlink(f"{outside}/file.txt")


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


def main() -> None:
    outside, names = sys.argv[1], sys.argv[2].split(",")
    SERVICES.update(json.loads(sys.argv[3]))
    for name in names:
        try:
            WAYS[name](name, f"{outside}/{name}")
            print(f"{name}: did", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}".replace("\n", " "), flush=True)
    print("all tried", flush=True)


if __name__ == "__main__":
    main()
