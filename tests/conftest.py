"""For all tests: Ctrl-C works in children even when the tests were started in the background, no
hook is left behind, and what was left out is named at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

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
    "how-to pages": "make pages",
    "CUDA": "pytest -m gpu, on a machine with a CUDA device",
    "Chromium": "apt-get install chromium && pytest -m browser",
    "pyspark": "pip install -e '.[spark]', a Java runtime, and pytest tests/audits/test_spark.py",
    "tracker": "make trackers",
    "Zensical": "make docs && pytest tests/docs/test_site.py",
    "could not import": "pip install -c constraints.txt -e '.[dev]'",
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
    if ran and not any("_browser.py" in name for name in ran):
        lines.append("the tests in a browser. To run them: make browser")
    if ran and not any("test_spark.py" in name for name in ran):
        lines.append("the audits on Spark. To run them: make spark")
    if not os.environ.get("SAWBONES_FULL") and any("test_contract" in name for name in ran):
        lines.append(
            "the contract of most faults. To run it: "
            "SAWBONES_FULL=1 pytest tests/faults/test_contract.py -n 2"
        )
    if lines:
        terminalreporter.section("left out")
    for line in lines:
        terminalreporter.line(line)


CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=CHROMIUM_FLAGS)
        yield running
        running.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address and collects what must not happen: errors, and requests to anywhere but
    there.
    """
    contexts = []

    def opened(
        address: str, width: int = 1200, until: str = "body[data-drawn]", **settings: Any
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 844}, reduced_motion="reduce", **settings
        )
        contexts.append(context)
        page = context.new_page()
        page.trouble = []
        own = "/".join(address.split("/")[:3]) + "/" if address.startswith("http") else "file:"

        def console(message: Any) -> None:
            if message.type in ("error", "warning"):
                page.trouble.append(message.text)

        def request(asked: Any) -> None:
            if asked.url.startswith(("http", "ws")) and not asked.url.startswith(own):
                page.trouble.append(asked.url)

        def dialog(shown: Any) -> None:
            page.trouble.append("dialog " + shown.message)
            shown.dismiss()

        page.on("console", console)
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("request", request)
        page.on("dialog", dialog)
        page.goto(address)
        page.wait_for_selector(until, timeout=60_000)
        return page

    yield opened
    for context in contexts:
        context.close()
