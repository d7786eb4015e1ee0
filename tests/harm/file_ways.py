"""Ways to write that call Python's own functions on files."""
# ruff: noqa: SIM115

from __future__ import annotations

import os
from pathlib import Path

from way_list import SERVICES, way


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
