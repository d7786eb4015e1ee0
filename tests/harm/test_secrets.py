"""Planted secrets: after run, diagnose, pin, capture and scrub no byte of any output holds one."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest

# Where each is planted -> the secret itself. None may be part of another, or of ordinary text.
ARGV = {
    "--api-key X": "argvApiKey7711",
    "--api_key=X": "argvApiKeyEq7712",
    "--password X": "argv-pass word-13",
    "--password=X": "argvPassEq7714",
    "--db-passwd X": "argvPasswd7715",
    "--hf-token X": "argvHfToken7716",
    "--token X": "argvToken7717abc",
    "--auth-token=X": "argvAuth7718",
    "--client-secret X": "argvClient7719",
    "--wandb-api-key X": "0123456789abcdef0123456789abcdef01237720",
    "wandb.api_key=X": "argvHydra7721",
    "--url X": "argvUrlPass7722",
    "positional token": "ghp_argv7723abcdefghijklmnopqrstuvwx",
    "--private-key=X": 'argv"quoted\\7724',
}
ENVIRONMENT = {
    "HF_TOKEN": "envHfToken7731",
    "WANDB_API_KEY": "fedcba9876543210fedcba9876543210fed7732a",
    "AWS_SECRET_ACCESS_KEY": "env/aws+secret7733/abcdefgh",
    "DB_PASSWORD": "envDbPass7734",
    "MYSQL_PWD": "envMysql7735",
    "OPENAI_API_KEY": "sk-env7736abcdefghijklmnop",
    "SLACK_BOT_TOKEN": "xoxb-7737-abcdefghijkl",
    "MY_CREDENTIALS": "envCred7738",
    "APP_SECRET": "envSecret7739é",
    "SERVICE_PASSPHRASE": "envPhrase 7740 long",
}
SOURCE = {
    "password literal": "srcHunter7751",
    "api_key literal": "srcApiKey7752xyz",
    "token format": "hf_srcToken7753ABCDEFGHIJKLMNOP",
    "URL": "srcUrlPass7754",
    "environ literal": "srcEnviron7755",
    "default of a flag": "srcDefault7756",
    "wandb.login": "7757aaaa7757aaaa7757aaaa7757aaaa7757aaaa",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3NzU4In0.c3JjSnd0Nzc1OA",
    "private key": "MIIEsrcPrivateKey7759",
}
EXCEPTION = {
    "key=value": "excPass7761",
    "bearer": "excBearer7762abcdefgh",
    "AWS key": "AKIAEXC7763ABCDEFGHI",
    "GitLab": "glpat-exc7764abcdefghij",
    "Google": "AIzaExc7765abcdefghijklmnopqrstuvwxyz01",
    "loaded later": "excDotenv7766",
}
DATA = {
    "e-mail row": "sk-data7771abcdefghijklmnop",
    "URL row": "dataUrlPass7772",
    "value of an argument": ARGV["--api-key X"],
}
PLANTED = {
    f"{where}: {name}": value
    for where, table in (
        ("argv", ARGV),
        ("env", ENVIRONMENT),
        ("source", SOURCE),
        ("exception", EXCEPTION),
        ("data", DATA),
    )
    for name, value in table.items()
}
ARGUMENTS = [
    *("--api-key", ARGV["--api-key X"], f"--api_key={ARGV['--api_key=X']}"),
    *("--password", ARGV["--password X"], f"--password={ARGV['--password=X']}"),
    *("--db-passwd", ARGV["--db-passwd X"], "--hf-token", ARGV["--hf-token X"]),
    *("--token", ARGV["--token X"], f"--auth-token={ARGV['--auth-token=X']}"),
    *("--client-secret", ARGV["--client-secret X"], "--wandb-api-key", ARGV["--wandb-api-key X"]),
    f"wandb.api_key={ARGV['wandb.api_key=X']}",
    *("--url", f"postgres://me:{ARGV['--url X']}@db.example/x", ARGV["positional token"]),
    f"--private-key={ARGV['--private-key=X']}",
]
SCRIPT = f'''
import os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

password = "{SOURCE["password literal"]}"; torch.manual_seed(0)
KEY = """-----BEGIN RSA PRIVATE KEY-----
{SOURCE["private key"]}
-----END RSA PRIVATE KEY-----"""
os.environ["MY_APP_SECRET"] = "{SOURCE["environ literal"]}"
os.environ["LATER_TOKEN"] = "exc" + "Dotenv7766"
words = ["{DATA["e-mail row"]}", "postgres://u:{DATA["URL row"]}@h/x", sys.argv[2]]


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {{"text": words[i % 3], "x": torch.randn(4), "y": i % 2}}


def options(add): add("--api-key", default="{SOURCE["default of a flag"]}")


model = nn.Linear(4, 2)
api_key = "{SOURCE["api_key literal"]}"; optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, batch in enumerate(DataLoader(Rows(), batch_size=8)):
    url = "https://bot:{SOURCE["URL"]}@hub.example"; out = model(batch["x"])
    token = "{SOURCE["token format"]}"; loss = nn.functional.cross_entropy(out.softmax(-1), batch["y"])
    login = ("{SOURCE["JWT"]}", lambda wandb: wandb.login(key="{SOURCE["wandb.login"]}")); optimizer.zero_grad()
    loss.backward(); sent = "{SOURCE["token format"]}"
    optimizer.step(); api_key = "{SOURCE["api_key literal"]}"
    print("log line:", sys.argv[1:], os.environ["DB_PASSWORD"])
    if step == 5:
        said = open("settings.txt").read()
        raise RuntimeError(said + os.environ["LATER_TOKEN"] + str(sys.argv) + str(dict(os.environ)))
'''


SETTINGS = (
    f"password={EXCEPTION['key=value']} Authorization: Bearer {EXCEPTION['bearer']} "
    f"{EXCEPTION['AWS key']} {EXCEPTION['GitLab']} {EXCEPTION['Google']} "
)


def run_sawbones(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "sawbones", *args],
        cwd=folder,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=250,
        env={**os.environ, **ENVIRONMENT, "OMP_NUM_THREADS": "1"},
    )


@dataclass(frozen=True)
class Made:
    folder: Path
    run: subprocess.CompletedProcess[bytes]
    diagnose: subprocess.CompletedProcess[bytes]
    printed: bytes  # by Sawbones, not by the script


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "settings.txt").write_text(SETTINGS, encoding="utf-8")
    run = run_sawbones(folder, "run", "--out", "recorded", "train.py", *ARGUMENTS)
    flags = ["--json", "report.json", "--html", "report.html", "--pin", "tests", "--no-experiments"]
    diagnose = run_sawbones(
        folder, "diagnose", *flags, "--keep-run", "kept", "train.py", *ARGUMENTS
    )
    others = [
        ("diagnose", "--json", "again.json", "--html", "again.html", "recorded"),
        ("pin", "--out", "pinned", "recorded"),
        ("pin", "--out", "pinned-report", "report.json"),
        ("show", "recorded"),
        ("runs", "."),
        ("query", "recorded", "select * from events"),
        ("query", "--format", "json", "recorded", "select * from events"),
        *(("pin", "--out", "pinned-bundle", str(p)) for p in folder.rglob("*.sawbones")),
        *(("replay", str(p)) for p in folder.rglob("*.sawbones")),
    ]
    done = [run_sawbones(folder, *args) for args in others]
    assert all(d.returncode in (0, 1, 2, 3) for d in done), [d.stderr for d in done]
    printed = b"".join(d.stdout + d.stderr for d in (diagnose, *done))
    return Made(folder, run, diagnose, printed)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, also what is packed inside of databases and bundles."""
    found: dict[str, bytes] = {}
    own = ("train.py", "settings.txt")
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in own):
        name = str(path.relative_to(folder))
        try:
            found[name] = path.read_bytes()
        except FileNotFoundError:  # SQLite removed its log
            continue
        if path.suffix == ".sawbones":
            with zipfile.ZipFile(path) as archive:
                found |= {f"{name}/{part}": archive.read(part) for part in archive.namelist()}
        if path.suffix == ".db":
            db = sqlite3.connect(path)
            for kind, number, data in db.execute("SELECT kind, id, data FROM records"):
                found[f"{name}/{kind}/{number}"] = zlib.decompress(data)
            db.close()
    return found


def forms(secret: str) -> set[bytes]:
    return {secret.encode(), json.dumps(secret)[1:-1].encode(), repr(secret)[1:-1].encode()}


def test_there_are_enough_of_them_and_they_were_really_there(made: Made) -> None:
    assert len(PLANTED) >= 40
    assert b"RuntimeError" in made.run.stderr  # the script's own output is the script's
    for secret in (*EXCEPTION.values(), *ARGV.values()):
        assert any(form in made.run.stderr for form in forms(secret)), secret
    files = contents(made.folder)
    for name in ("recorded/run.db", "kept/run.db", "report.json", "report.html", "again.json"):
        assert len(files[name]) > 1000
    assert any(name.endswith("source/train.py") for name in files)
    assert any(name.startswith("pinned/test_") for name in files), sorted(files)


@pytest.mark.parametrize("name", PLANTED)
def test_no_output_holds_a_planted_secret(name: str, made: Made) -> None:
    everything = {**contents(made.folder), "the terminal": made.printed}
    hits = [
        place
        for place, content in everything.items()
        if any(form in content for form in forms(PLANTED[name]))
    ]
    assert hits == []


def test_names_stay_and_reports_say_what_was_masked(made: Made) -> None:
    report = json.loads((made.folder / "report.json").read_text(encoding="utf-8"))
    assert report["masked"]["argv --api-key"] == 1
    assert report["masked"]["env DB_PASSWORD"] == 1
    assert report["masked"]["token format"] >= 2
    assert b"argv --api-key" in made.diagnose.stdout
    assert "argv --api-key" in (made.folder / "report.html").read_text(encoding="utf-8")
    database = contents(made.folder)["recorded/run.db"]
    assert b"--api-key" in database
    assert b"[masked]" in database


def test_a_pinned_test_reads_masked_arguments_from_the_environment(made: Made) -> None:
    (test, *_) = sorted((made.folder / "pinned").glob("test_*.py"))
    text = test.read_text(encoding="utf-8")
    assert 'os.environ["API_KEY"]' in text
    compile(text, str(test), "exec")


def test_recordings_are_the_users_alone_and_reports_follow_the_umask(made: Made) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert mode(made.folder / "recorded") == 0o700
    for path in (made.folder / "recorded").rglob("*"):
        assert mode(path) in ((0o700, 0o755) if path.is_dir() else (0o600,)), path
    umask = os.umask(0)
    os.umask(umask)
    assert mode(made.folder / "report.json") == 0o666 & ~umask


def test_scrub_masks_an_older_recording_and_is_idempotent(made: Made, tmp_path: Path) -> None:
    """As it was written before anything was masked: the masks are put back to secrets."""
    import shutil

    folder = tmp_path / "old"
    shutil.copytree(made.folder / "recorded", folder)
    db = sqlite3.connect(folder / "run.db", isolation_level=None)
    db.execute("UPDATE meta SET value = ? WHERE key = 'argv'", (json.dumps(ARGUMENTS),))
    db.execute("UPDATE sites SET code = ?", (f"x = {ARGV['--api-key X']!r}; y = 'plainword77'",))
    (data,) = db.execute("SELECT data FROM records WHERE kind = 'ending'").fetchone()
    ending = {**json.loads(zlib.decompress(data)), "message": " ".join(ARGUMENTS)}
    db.execute(
        "UPDATE records SET data = ? WHERE kind = 'ending'",
        (zlib.compress(json.dumps(ending).encode()),),
    )
    db.close()
    (folder / "sawbones.log").write_text(f"failed: {ARGV['--token X']}\n")
    done = run_sawbones(tmp_path, "scrub", "--value", "plainword77", "old")
    assert done.returncode == 0, done.stderr
    assert b"argv --api-key" in done.stdout
    assert b"--value" in done.stdout
    everything = contents(folder)
    for secret in (*ARGV.values(), "plainword77"):
        assert not [p for p, c in everything.items() if any(f in c for f in forms(secret))], secret
    again = run_sawbones(tmp_path, "scrub", "--value", "plainword77", "old")
    assert b"nothing to mask" in again.stdout
    assert run_sawbones(tmp_path, "show", "old").returncode == 0
