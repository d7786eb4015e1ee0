"""For all tests: Ctrl-C works in children even when the tests were started in the background, no
hook is left behind, and what was left out is named at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile

import pytest

# A shell starts background jobs with SIGINT ignored, and children inherit that across exec; a
# handler they do not.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The list of the user's own bundles is not for tests to write.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-of-tests-")


@pytest.fixture(scope="session", autouse=True)
def state_folder_is_removed():
    yield
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def no_global_hooks_are_left():
    yield
    masking = sys.modules.get("sawbones.masking.process")
    if masking is not None:
        masking.masker.cache_clear()  # what one test has masked is not said by the next
    module = sys.modules.get("torch.nn.modules.module")
    if module is not None:
        hooks = [
            vars(module)[name]
            for name in vars(module)
            if name.startswith("_global_") and "_hooks" in name
        ]
        left = [hook for found in hooks for hook in found.values()]
        for found in hooks:
            found.clear()
        assert not left, f"global module hooks left behind: {left}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("SAWBONES_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="one of the long ones"))


# What a skipped test says, and the command that runs it.
_LEFT_OUT = {
    "one of the long ones": "SAWBONES_LONG=1 pytest -m long -n 2",
    "CUDA": "pytest -m gpu, on a machine with a CUDA device",
    "Chromium": "apt-get install chromium && pytest -m browser",
    "pyspark": "pip install -e '.[spark]', a Java runtime, and pytest tests/audits/test_spark.py",
    "Java": "apt-get install default-jre-headless && pytest tests/audits/test_spark.py",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A test that was left out in silence counts as one that passed."""
    lines = []
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        command = next((how for word, how in _LEFT_OUT.items() if word in reason), "")
        lines.append(
            f"{count} skipped: {reason}" + (f". To run them: {command}" if command else "")
        )
    ran = {
        report.nodeid
        for name in ("passed", "failed")
        for report in terminalreporter.stats.get(name, ())
    }
    if not os.environ.get("SAWBONES_HARM") and any("tests/harm/" in name for name in ran):
        lines.append("most moments of the kills and interrupts. To run them all: make harm")
    if ran and not any("tests/harm/" in name for name in ran):
        lines.append("the harm suite. To run it: make harm")
    if not os.environ.get("SAWBONES_FULL") and any("test_contract" in name for name in ran):
        lines.append(
            "the contract of most faults. To run it: "
            "SAWBONES_FULL=1 pytest tests/faults/test_contract.py -n 2"
        )
    if lines:
        terminalreporter.section("left out")
    for line in lines:
        terminalreporter.line(line)
