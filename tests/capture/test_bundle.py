"""Bundles are read back as they were written, and nothing else is read."""

from __future__ import annotations

import io
import json
import math
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
import torch
from tests.capture.made import forge, fuzz, write_small_bundle

from sawbones.capture import container
from sawbones.capture.bundle import read_bundle
from sawbones.capture.errors import CaptureError
from sawbones.capture.packing import Packer, unpack


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small_bundle(tmp_path / "step-000003.sawbones")


def test_a_bundle_is_read_back(small: Path) -> None:
    bundle = read_bundle(small)
    assert (bundle.step, bundle.script, bundle.argv) == (3, "train.py", ("--steps", "5"))
    assert bundle.failure.kind == "nonfinite loss"
    assert math.isnan(bundle.failure.loss or 0.0)
    assert bundle.sources() == {"train.py": b"import torch\n"}
    (arrival,) = bundle.batches()
    assert torch.equal(arrival["values"]["x"], torch.arange(6).reshape(2, 3))
    assert arrival["values"]["y"][1] is None
    assert bundle.weights()["mask"].tolist() == [True, False]


def test_every_kind_of_value_survives_packing() -> None:
    value = {
        "a": [1, 2.5, None, True, "x", math.inf],
        ("t", 1): (
            torch.tensor([1 + 2j]),
            torch.zeros(0, 3),
            torch.tensor(3.0, dtype=torch.bfloat16),
        ),
        3: {"deep": [b"\x00\xff", torch.tensor([1, 2], dtype=torch.int8).numpy()]},
    }
    packer = Packer()
    packed = json.loads(json.dumps(packer.pack(value), allow_nan=False))
    back = unpack(packed, packer.tensors)
    assert back["a"] == value["a"]
    assert torch.equal(back[("t", 1)][0], value[("t", 1)][0])
    assert back[("t", 1)][1].shape == (0, 3)
    assert back[("t", 1)][2].dtype is torch.bfloat16
    assert back[3]["deep"][0] == b"\x00\xff"
    assert back[3]["deep"][1].tolist() == [1, 2]


def test_objects_are_named_not_pickled() -> None:
    packer = Packer()
    packed = packer.pack({"model": torch.nn.Linear(1, 1)})
    assert packer.left_out == ["['model']: Linear"]
    assert unpack(packed, {})["model"].kind == "Linear"


def test_no_bundle_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no bundle"):
        read_bundle(tmp_path / "none.sawbones")
    with pytest.raises(CaptureError, match="is no file"):
        read_bundle(tmp_path)


def test_an_unfinished_bundle_leaves_nothing(tmp_path: Path) -> None:
    writer = container.Writer(tmp_path / "a.sawbones")
    writer.add("source/x.py", b"1")
    writer.abandon()
    assert list(tmp_path.iterdir()) == []


def test_a_flipped_bit_anywhere_is_seen(small: Path, tmp_path: Path) -> None:
    content = bytearray(small.read_bytes())
    for at in range(0, len(content), 13):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        other = tmp_path / "damaged.sawbones"
        other.write_bytes(damaged)
        with pytest.raises(CaptureError):
            read_bundle(other)


def test_a_cut_off_bundle_is_seen(small: Path, tmp_path: Path) -> None:
    content = small.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        other = tmp_path / "cut.sawbones"
        other.write_bytes(content[:size])
        with pytest.raises(CaptureError):
            read_bundle(other)


# Bundles whose maker lies: everything is sealed again after the change.


def test_a_forged_bundle_without_a_lie_is_read(small: Path, tmp_path: Path) -> None:
    assert read_bundle(forge(small, tmp_path / "same.sawbones", lambda parts: None)).step == 3


def test_names_that_lead_elsewhere_are_refused(small: Path, tmp_path: Path) -> None:
    for name in (
        "source/../../x.py",
        "/etc/x",
        "source//x",
        "source/C:x",
        "source\\..\\x",
        "other.bin",
        "source/\x00x",
        "source/" + "a" * 400,
    ):
        forged = forge(
            small, tmp_path / "f.sawbones", lambda parts, name=name: parts.update({name: b"x"})
        )
        with pytest.raises(CaptureError):
            read_bundle(forged)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.sawbones", "step-000003.sawbones"]


def test_links_and_compressed_parts_are_refused(small: Path, tmp_path: Path) -> None:
    def link(entry: zipfile.ZipInfo) -> None:
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16

    def squeeze(entry: zipfile.ZipInfo) -> None:
        entry.compress_type = zipfile.ZIP_DEFLATED

    for edit, what in ((link, "no plain file"), (squeeze, "compressed")):
        with pytest.raises(CaptureError, match=what):
            read_bundle(forge(small, tmp_path / "f.sawbones", lambda parts: None, edit))


def test_a_zip_bomb_is_refused_before_it_is_read(small: Path, tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b" " * (50 << 20))
        archive.comment = container._SEAL + b"0" * 64
    target = tmp_path / "bomb.sawbones"
    target.write_bytes(bomb.getvalue())
    container.seal(target)
    with pytest.raises(CaptureError, match="compressed"):
        read_bundle(target)


def test_deep_json_is_refused(small: Path, tmp_path: Path) -> None:
    for depth in (100, 100_000):
        nested = b"[" * depth + b"]" * depth
        forged = forge(
            small,
            tmp_path / "f.sawbones",
            lambda parts, nested=nested: parts.update({"state.json": nested}),
        )
        with pytest.raises(CaptureError, match="nested deeper"):
            read_bundle(forged)
    quoted = json.dumps({"text": '\\"[[[[' * 100}).encode()
    assert container._depth(quoted) == 1


def test_json_that_lies_is_refused(small: Path, tmp_path: Path) -> None:
    for text in (
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b"{",
        b"\xff\xfe",
        b"1" * 10_000,
        b"[]",
        b"null",
    ):
        forged = forge(
            small,
            tmp_path / "f.sawbones",
            lambda parts, text=text: parts.update({"environment.json": text}),
        )
        with pytest.raises(CaptureError):
            read_bundle(forged)


def test_environments_that_lie_are_refused(small: Path, tmp_path: Path) -> None:
    fine = {"script": "train.py", "argv": []}
    lies = (
        {"variables": []},
        {"settings": "x"},
        {"working_folder": 5},
        {"script": "/bin/x.py"},
        {"script": "../x.py"},
        {"argv": [1]},
    )
    for lie in lies:
        text = json.dumps({**fine, **lie}).encode()
        forged = forge(
            small,
            tmp_path / "f.sawbones",
            lambda parts, text=text: parts.update({"environment.json": text}),
        )
        with pytest.raises(CaptureError):
            read_bundle(forged)


def test_tensor_headers_that_lie_are_refused(small: Path, tmp_path: Path) -> None:
    def header(entry: object, data: bytes = b"\0" * 8) -> bytes:
        text = json.dumps({"t0": entry}).encode()
        return len(text).to_bytes(8, "little") + text + data

    fine = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    lies = [
        b"",
        b"\xff" * 8,
        header({**fine, "shape": [3]}),
        header({**fine, "shape": [-2]}),
        header({**fine, "dtype": "X"}),
        header({**fine, "data_offsets": [8, 16]}),
        header({**fine, "data_offsets": "x"}),
        header({**fine, "shape": [2, 1 << 62, 0, 5]}),
        header(fine, b"\0" * 9),
        header(5),
        header({**fine, "shape": [1] * 99}),
    ]
    for lie in lies:
        forged = forge(
            small,
            tmp_path / "f.sawbones",
            lambda parts, lie=lie: parts.update({"tensors.safetensors": lie}),
        )
        with pytest.raises(CaptureError):
            read_bundle(forged).tensors()


def test_references_to_tensors_that_are_not_there_are_refused(small: Path, tmp_path: Path) -> None:
    state = json.dumps({"arrivals": [{"$tensor": "t99"}]}).encode()
    with pytest.raises(CaptureError):
        read_bundle(
            forge(small, tmp_path / "f.sawbones", lambda parts: parts.update({"state.json": state}))
        ).batches()


def test_mutated_bundles_give_clean_errors(small: Path, tmp_path: Path) -> None:
    clean, refused = fuzz(small, tmp_path, count=300, seed=0)
    assert clean == 300
    assert refused > 250
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "mutated.sawbones",
        "step-000003.sawbones",
    ]


def test_bundles_of_another_format_name_the_version(tmp_path: Path) -> None:
    path = write_small_bundle(tmp_path / "a.sawbones", format=99, sawbones="9.9")
    with pytest.raises(CaptureError, match=r"pip install sawbones==9\.9"):
        read_bundle(path)


def test_reading_leaves_the_bundle_alone(small: Path, tmp_path: Path) -> None:
    before = small.read_bytes()
    shutil.copy(small, tmp_path / "copy.sawbones")
    read_bundle(small).tensors()
    assert small.read_bytes() == before
