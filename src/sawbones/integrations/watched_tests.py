"""`pytest --sawbones`: every test that trains is recorded.

A test that fails gets what the checks say of its training: the step, the line and the fix. It is
run once more with other random numbers, and where it passes then it is called flaky by seed, with
what differs first. A test that passes with a likely or proven finding gives a warning.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from sawbones.diagnosis import diagnose_run
from sawbones.integrations.pytest_plugin import SawbonesWarning, report_text
from sawbones.schema import Run
from sawbones.schema.one_off import Difference
from sawbones.trials.twin import compare

RECORDED = pytest.StashKey[Run]()
NOUNS = {
    "batch_order": "the order of the samples",
    "batch_values": "the values of a batch",
    "loss": "the loss",
    "ending": "how the training ends",
}


class WatchedTests:
    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sawbones-tests-"))
        self._count = 0

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator]
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if RECORDED in item.stash:  # of the time before
            del item.stash[RECORDED]
        if "torch" not in sys.modules:  # what imports no torch trains nothing
            return (yield)
        from sawbones.watching import watch

        self._count += 1
        watched = watch(out=self._folder / str(self._count), quiet=True)
        try:
            with watched:
                result = yield
        finally:
            if watched.step:
                item.stash[RECORDED] = watched.close()
        if watched.step:
            self._warn(item)
        return result

    def _warn(self, item: pytest.Item) -> None:
        for finding in diagnose_run(item.stash[RECORDED]).report.findings:
            if finding.status != "suspected":
                where = f" at {finding.where[0]}" if finding.where else ""
                fix = f". {finding.fix.summary}" if finding.fix else ""
                text = f"{finding.fault} ({finding.status}){where}: {finding.title}{fix}"
                item.warn(SawbonesWarning(text))

    @pytest.hookimpl(tryfirst=True)  # type: ignore[untyped-decorator]
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = next((r for r in reports if r.when == "call" and r.failed), None)
        first = item.stash.get(RECORDED, None)
        if failed is not None and first is not None:
            # Its notes name the command that would decide; a test is not what it could run.
            text = report_text(replace(diagnose_run(first).report, notes=()))
            failed.sections.append(("Sawbones: the training of this test", text))
            flaky = self._again(item, nextitem, first)
            if flaky:
                failed.sections.append(("Sawbones: flaky by seed", flaky))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _again(self, item: pytest.Item, nextitem: pytest.Item | None, first: Run) -> str:
        """The generators have moved on since: only a seed of its own gives the same numbers."""
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        second = item.stash.get(RECORDED, None)
        if second is None or not all(report.passed for report in reports):
            return ""
        found = compare(first, second)
        seeded = f"seeds: {', '.join(found.seeded)}" if found.seeded else "it sets no seed"
        lines = [
            "it failed, and passed when it was run again with other random numbers "
            f"({seeded}): its outcome depends on them. Set one: torch.manual_seed(0)",
        ]
        if found.differs is not None:
            lines.append(f"first difference: {_told(found.differs)}")
        return "\n".join(lines)


def _told(found: Difference) -> str:
    values = f" ({found.first} against {found.second})" if found.first is not None else ""
    where = f", {found.site}" if found.site is not None else ""
    return f"{NOUNS[found.what]} at step {found.step}{values}{where}"
