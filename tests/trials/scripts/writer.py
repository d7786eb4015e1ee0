"""Writes, changes, renames and deletes files outside of its folder in every way that Python has,
and reads them back.
"""
# ruff: noqa: SIM115

import glob
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file, save_file

away = sys.argv[1]


def refused(act, kind):
    try:
        act()
    except kind:
        return True
    return False


with open(f"{away}/a.txt", "a") as file:
    file.write("more\n")
assert open(f"{away}/a.txt").read() == "keep\nmore\n"
with open("../away/a.txt", "a") as file:  # the same file, by a way that leaves the working folder
    file.write("last\n")
assert open(f"{away}/a.txt").read() == "keep\nmore\nlast\n"
with tempfile.NamedTemporaryFile("wb", dir=away, delete=False) as file:
    file.write(b"brief")
assert open(file.name).read() == "brief" and os.statvfs(os.path.dirname(file.name)).f_namemax > 0
os.remove(file.name)
os.remove(f"{away}/b.txt")
assert not os.path.exists(f"{away}/b.txt") and "b.txt" not in os.listdir(away)
assert refused(lambda: open(f"{away}/b.txt"), FileNotFoundError)
pathlib.Path(away, "b.txt").write_text("new")
assert pathlib.Path(away, "b.txt").read_text() == "new"
shutil.rmtree(f"{away}/sub")
assert not os.path.isdir(f"{away}/sub")
os.makedirs(f"{away}/sub/deep/er", exist_ok=True)
os.makedirs(f"{away}/sub/deep/er", exist_ok=True)
assert os.listdir(f"{away}/sub") == ["deep"]
assert refused(lambda: os.mkdir(f"{away}/sub"), FileExistsError)
assert refused(lambda: open(f"{away}/nowhere/x", "w"), FileNotFoundError)

torch.save({"x": torch.ones(3)}, f"{away}/model.pt")
assert torch.load(f"{away}/model.pt")["x"].sum() == 3
save_file({"x": torch.ones(2)}, f"{away}/model.safetensors")
assert load_file(f"{away}/model.safetensors")["x"].sum() == 2
np.save(f"{away}/n.npy", np.ones(2))
np.savez(f"{away}/n.npz", x=np.ones(2))
np.ones(3).tofile(f"{away}/raw.bin")
assert np.load(f"{away}/n.npy").sum() == 2
assert sorted(os.path.basename(p) for p in glob.glob(f"{away}/*.np*")) == ["n.npy", "n.npz"]
assert {p.name for p in pathlib.Path(away).iterdir()} == {entry.name for entry in os.scandir(away)}

os.rename(f"{away}/a.txt", f"{away}/z.txt")
assert not os.path.exists(f"{away}/a.txt") and open(f"{away}/z.txt").read().startswith("keep")
shutil.copy(f"{away}/z.txt", f"{away}/y.txt")
shutil.move(f"{away}/y.txt", f"{away}/x.txt")
database = sqlite3.connect(f"{away}/db.sqlite")
database.execute("create table t(a)")
database.commit()
database.close()
number = os.open(f"{away}/os.txt", os.O_CREAT | os.O_WRONLY)
os.write(number, b"x")
os.close(number)
pathlib.Path(away, "t.txt").touch()
os.chmod(f"{away}/t.txt", 0o600)
os.symlink("/etc/hostname", f"{away}/link")
os.link(f"{away}/c.txt", f"{away}/hard.txt")
with open(f"{away}/hard.txt", "w") as file:
    file.write("changed")
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "q").write_text("q")

# Large files of the working folder are links to the user's own.
with open("large-1.bin", "r+b") as file:
    file.write(b"Z")
assert open("large-1.bin", "rb").read(1) == b"Z"
os.remove("large-2.bin")
pathlib.Path("large-2.bin").write_text("own")
os.truncate("large-3.bin", 0)
assert os.path.getsize("large-3.bin") == 0
pathlib.Path("linked", "new.txt").write_text("through a linked folder")
assert pathlib.Path("linked", "new.txt").read_text().startswith("through")
os.remove("linked/c.txt")

# Its own small files and its own source.
pathlib.Path("result.txt").write_text("overwritten")
os.remove("notes.txt")
os.remove(__file__)
print("done")
