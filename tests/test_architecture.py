"""Who may import whom, what loads without torch, and the names that others rely on."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import sawbones

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "sawbones"
MAX_LINES = 580  # widths went from 132 to 100 columns; to come down to 450 again
MAX_BENCHMARK_LINES = 640  # a benchmark is one table: its rows belong on one page

# The arrows of the design: a part may import itself, what stands beside it, and nothing else of
# ours.
MAY_IMPORT = {
    "schema": set(),
    "masking": set(),
    "trace": {"schema"},
    "stats": {"schema", "trace"},
    "store": {"schema", "masking"},
    "evidence": {"schema", "trace", "stats"},
    "faults": {"schema", "trace", "stats", "evidence"},
    "symptoms": {"schema", "trace", "stats", "evidence"},
    "audits": {"schema", "stats", "masking"},
    "audit": {"audits"},
    "oracles": {"schema"},
    "report": {"schema", "masking"},
    "trainer": set(),
    "lab": {"trainer"},
    "pages": {"schema", "faults", "audits"},
    "lookup": {"schema", "faults", "symptoms", "pages", "diagnosis"},
    "properties": set(),
    "observe": {"schema", "masking", "trace", "stats", "store", "properties", "__version__"},
    "isolation": {"schema", "observe"},
    "trials": {
        "schema",
        "masking",
        "trace",
        "stats",
        "evidence",
        "store",
        "observe",
        "isolation",
        "oracles",
        "properties",
    },
    "capture": {
        "schema",
        "masking",
        "stats",
        "store",
        "observe",
        "isolation",
        "trials",
        "__version__",
    },
    "watching": {"schema", "store", "observe", "capture", "live", "diagnosis"},
    "attach": {"schema"},
    "live": {"schema", "masking", "store", "observe", "diagnosis"},
    "testing": {
        "schema",
        "masking",
        "trace",
        "stats",
        "store",
        "observe",
        "properties",
        "trials",
        "faults",
        "capture",
    },
    "diagnosis": {
        "schema",
        "masking",
        "stats",
        "store",
        "observe",
        "capture",
        "isolation",
        "trials",
        "faults",
        "symptoms",
        "evidence",
        "report",
        "testing",
    },
    "fixing": {
        "schema",
        "stats",
        "store",
        "observe",
        "faults",
        "symptoms",
        "trials",
        "diagnosis",
    },
    "triage": {"schema", "store", "observe", "faults", "testing", "diagnosis", "fixing"},
    "parity": {"schema", "evidence"},
    "handover": {"schema", "masking", "report"},
    "practise": {
        "schema",
        "handover",
        "oracles",
        "stats",
        "observe",
        "faults",
        "symptoms",
        "trials",
        "fixing",
        "pages",
        "lookup",
        "scoring",
        "report",
    },
    "scoring": {"schema", "store", "diagnosis", "lab"},
    "page": {"schema", "masking", "stats", "store", "trials", "diagnosis", "report"},
    "integrations": {
        "schema",
        "masking",
        "store",
        "observe",
        "capture",
        "watching",
        "attach",
        "live",
        "trials",
        "diagnosis",
        "triage",
        "report",
        "__version__",
    },
    "__init__": {"schema", "store", "pages", "watching", "fixing", "triage", "audit"},
    "__main__": {"cli"},
}
WITHOUT_TORCH = {
    "schema",
    "masking",
    "trace",
    "stats",
    "evidence",
    "symptoms",
    "store",
    "faults",
    "audits",
    "audit",
    "oracles",
    "report",
    "pages",
    "__init__",
    "__main__",
    "scoring",
    "page",
}
# Third-party packages, where a part is held to a few.
ONLY = {
    "schema": {"numpy"},
    "masking": set(),
    "trace": set(),
    "stats": {"numpy"},
    "evidence": {"numpy"},
    "faults": {"numpy"},
    "symptoms": {"numpy"},
    "oracles": {"numpy"},
    "report": {"numpy", "rich"},
    "lab": {"numpy", "torch", "safetensors"},
}


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


_ROOM_FILES = {
    "lab.py": "lab",
    "trial.py": "trials",
    "fix.py": "fixing",
    "inject.py": "practise",
}


def _part(path: Path) -> str:
    """The folder it belongs to: a room's lab.py belongs to the lab, its trial.py to the trials, its
    fix.py to the fixing, its inject.py to the exercises.
    """
    parts = path.relative_to(SOURCE).parts
    if parts[0] == "faults" and path.name in _ROOM_FILES:
        return _ROOM_FILES[path.name]
    return parts[0] if len(parts) > 1 else path.stem


def _imports(path: Path) -> Iterator[str]:
    """Every module that the file imports anywhere in it, by its full name."""
    package = ("sawbones", *path.relative_to(SOURCE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (above, node.module)))
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_follow_the_arrows(path: Path) -> None:
    part = _part(path)
    if part == "cli":
        return  # the command line stands above everything
    assert part in MAY_IMPORT, (
        f"{part} is new: say in MAY_IMPORT what it may import, and in DESIGN where it stands"
    )
    ours = {name.split(".")[1] for name in _imports(path) if name.startswith("sawbones.")} - {part}
    assert ours <= MAY_IMPORT[part]
    foreign = (
        {name.split(".")[0] for name in _imports(path)}
        - set(sys.stdlib_module_names)
        - {"sawbones"}
    )
    if part in WITHOUT_TORCH:
        assert "torch" not in foreign
    assert foreign <= ONLY.get(part, foreign)


@pytest.mark.parametrize(
    "path",
    sorted([*SOURCE.glob("faults/*/*/check.py"), *SOURCE.glob("symptoms/[a-z]*.py")]),
    ids=lambda p: p.parent.name if p.stem == "check" else p.stem,
)
def test_no_check_knows_another_check_a_file_or_the_clock(path: Path) -> None:
    tops = {".".join(name.split(".")[:2]) for name in _imports(path)}
    assert not tops & {"sawbones.faults", "sawbones.symptoms"}
    assert not {t.split(".")[0] for t in tops} & {
        "os",
        "pathlib",
        "io",
        "time",
        "datetime",
        "random",
        "subprocess",
    }


def test_the_import_reader_sees_every_way_to_import(tmp_path: Path) -> None:
    file = SOURCE / "trainer" / "model.py"
    assert "sawbones.trainer.attention.Attention" in set(_imports(file))
    assert {"torch", "math"} <= {name.split(".")[0] for name in _imports(file)}


def _without_torch(code: str) -> subprocess.CompletedProcess[str]:
    blocked = "import sys; sys.modules['torch'] = None\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )


def test_importing_sawbones_imports_no_torch() -> None:
    code = (
        "import sys, sawbones; print(sorted(m for m in sys.modules if m in ('torch', 'numpy', "
        "'rich', 'typer')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_help_of_every_command_needs_no_torch() -> None:
    from sawbones.cli.main import COMMANDS

    code = f"""
from sawbones.cli.main import main
for args in [["--help"], *([name, "--help"] for name in {list(COMMANDS)!r})]:
    try:
        main(args)
    except SystemExit as end:
        assert not end.code, (args, end.code)
"""
    done = _without_torch(code)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_reading_checks_and_reports_needs_no_torch() -> None:
    done = _without_torch(
        "import sawbones.report.html, sawbones.report.terminal, sawbones.store, "
        "sawbones.faults as c; c.all_checks()"
    )
    assert done.returncode == 0, done.stderr


def test_public_names() -> None:
    pinned = {
        "Finding",
        "Report",
        "Run",
        "SawbonesError",
        "Subject",
        "__version__",
        "audit",
        "check",
        "diagnose",
        "explain",
        "read_run",
        "watch",
    }
    assert set(sawbones.__all__) == pinned
    assert len(pinned) <= 12
    assert all(getattr(sawbones, name) is not None for name in pinned)


FLAGS = {
    "diagnose": "--allow --baseline --capture-limit --first --format --from --good --html --json --junit --keep-run --loss "
    "--no-capture --no-data --no-experiments --no-source "
    "--nproc-per-node --only --output --pin --plan --quiet --sarif --seconds --steps --summary --to --validation --write-baseline",
    "fix": "--allow --apply --check --html --json --only --quiet --seconds --steps --unsafe",
    "profile": "--json --seconds --steps --top",
    "try": "--expect --hash --json --list --nproc-per-node --seconds --steps",
    "mcp": "--folder --writes",
    "attach": "--json --seconds --stacks",
    "run": (
        "--capture-limit --no-capture --no-data --no-deep --no-source --nproc-per-node "
        "--on-finding --out --page --quiet --stop-on --to"
    ),
    "page": "--port",
    "compare": "",
    "clean": "--keep-sick --older --yes",
    "replay": "--approximate --deep --device --dtype --seconds --trust",
    "shrink": "--out --seconds --trust",
    "audit": "",
    "audit leaks": "--engine --fitted --group --html --ignore --json --label "
    "--memory-limit --no-model "
    "--quiet --redact --show-data --test "
    "--text --threshold --time --train --valid",
    "audit shift": "--by --current --engine --false-alarms --html --ignore --json --label "
    "--memory-limit --prediction --quiet --redact --reference "
    "--segment --show-data --state --threshold --time",
    "audit tokens": "--answer --checkpoint-tokenizer --data --engine --html --json --max-length "
    "--memory-limit --quiet --redact "
    "--show-data --test --text --threshold --tokenizer --vocab-size",
    "audit data": (
        "--engine --html --ignore --json --label --memory-limit --quiet --redact "
        "--show-data --threshold --train"
    ),
    "parity": "--batch --inputs --json --quiet --tolerance --write",
    "show": "",
    "runs": "",
    "scrub": "--value",
    "query": "--format",
    "explain": "",
    "pin": "--only --out --verify",
    "check": (
        "--format --hard --json --junit --keep-going --layer --only --quiet --sarif --seed --skip "
        "--soft --steps --summary"
    ),
    "export": "--out --to",
    "report": "--markdown --no-rerun --package --script --show-data",
    "help": "",
    "completion": "",
    "faults": "",
    "practise": "",
    "practise begin": "--folder --into --layer --level --minutes --seed",
    "practise hint": "--folder",
    "practise answer": (
        "--because --claim --command --fault --fix --folder --grammar --html --line --report --test"
    ),
    "practise score": "",
    "practise write": "--folder --grade --list --seed",
    "practise classic": "--folder",
    "practise drill": "--count --seed --show",
    "lab": "",
    "lab list": "",
    "lab run": "--healthy --out --seed",
    "lab bench": "--jobs --no-experiments --only --out",
    "train": "--accumulate --amp --arch --batch-size --clip --d-model --deterministic --device "
    "--disable-amp --disable-augment "
    "--disable-dropout --dropout --dtype --eval-every --heads --json --label-smoothing "
    "--layers --lr --min-delta --num-eval "
    "--num-train --out --overfit-batch --patience --positions --resume --save-every "
    "--seed --steps --stop-after --task --tokenizer "
    "--verify --warmup --weight-decay --workers --write",
}


@pytest.mark.parametrize("command", FLAGS)
def test_commands_and_flags(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from sawbones.cli.main import main

    with suppress(SystemExit):
        main([*command.split(), "--help"])
    shown = re.findall(r"^ +(--[a-z-]+)", capsys.readouterr().out, flags=re.MULTILINE)
    assert sorted(set(shown) - {"--help"}) == FLAGS[command].split()


def test_no_command_is_left_out_of_the_pinned_ones() -> None:
    from sawbones.cli.main import COMMANDS

    assert set(COMMANDS) == {command.split()[0] for command in FLAGS}


def _own_files() -> list[Path]:
    folders = ("src", "tests", "benchmarks", "docs", "examples")
    found = [p for folder in folders for p in (ROOT / folder).rglob("*.py")]
    return [p for p in found if "corpus" not in p.relative_to(ROOT).parts]


def test_no_file_outgrows_a_page() -> None:
    lengths = {
        str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines())
        for p in _own_files()
    }
    allowed = {
        name: MAX_BENCHMARK_LINES if name.startswith("benchmarks") else MAX_LINES
        for name in lengths
    }
    assert {name: n for name, n in lengths.items() if n > allowed[name]} == {}


def test_no_junk_drawers() -> None:
    banned = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core", "manager"}
    named = {part for p in _own_files() for part in (*p.relative_to(ROOT).parts[:-1], p.stem)}
    assert not {name for name in named if set(name.split("_")) & banned}


def test_one_class_is_a_function_mode() -> None:
    """Whoever wants to hear of operators subscribes to the stream."""
    found = []
    for path in _files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(
                "TorchFunctionMode" in ast.unparse(base) for base in node.bases
            ):
                found.append(f"{path.relative_to(SOURCE)}: {node.name}")
    assert found == ["observe/operators.py: OperatorStream"]
