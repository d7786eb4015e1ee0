"""Ways to write by other processes, services, shared memory and torch."""
# ruff: noqa: SIM115

from __future__ import annotations

import os
import sys

from file_ways import open_for_writing
from way_list import SERVICES, torch_way, way


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
