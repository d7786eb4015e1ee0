"""Report -> SARIF 2.1.0, the format in which code hosts take findings and show them at their
lines.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from sawbones.masking import mask_all
from sawbones.report.masked import masked_in
from sawbones.schema import Finding, Report, Site, faults

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"proven": "error", "likely": "error", "suspected": "note"}


def to_sarif(report: Report, version: str, folder: str = "") -> str:
    """`folder`: where the report's paths begin, seen from the root of the repository."""
    masked = masked_in(report)
    report = mask_all(report)
    known = faults()
    named = sorted({f.fault for f in report.findings})
    rules = [
        {
            "id": fault,
            "name": "".join(part.capitalize() for part in fault.replace(".", "-").split("-")),
            "shortDescription": {"text": known[fault].cause if fault in known else fault},
            "help": {"text": f"sawbones explain {fault}"},
        }
        for fault in named
    ]
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "sawbones", "version": version, "rules": rules}},
        "results": [
            _result(finding, report, named.index(finding.fault), folder)
            for finding in report.findings
        ],
        "invocations": [
            {
                "executionSuccessful": report.verdict not in ("crashed", "inconclusive"),
                "toolExecutionNotifications": _notifications(report),
            }
        ],
        "properties": {"masked": masked},
    }
    return (
        json.dumps(
            {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False
        )
        + "\n"
    )


def _result(finding: Finding, report: Report, rule: int, folder: str) -> dict[str, Any]:
    told = [finding.title, *(evidence.text for evidence in finding.evidence)]
    told += [f"Fix: {finding.fix.summary}"] if finding.fix is not None else []
    places = finding.where or (Site(report.script, 1),)
    return {
        "ruleId": finding.fault,
        "ruleIndex": rule,
        "level": LEVELS.get(finding.status, "note"),
        "message": {"text": "\n".join(told)},
        "locations": [_location(places[0], folder)],
        "relatedLocations": [_location(site, folder) for site in places[1:]],
        "properties": {"status": finding.status, "confidence": finding.confidence},
    }


def _location(site: Site, folder: str) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(site.line, 1)}
    if site.code:
        region["snippet"] = {"text": site.code}
    path = PurePosixPath(folder) / site.file.replace("\\", "/")
    # Spaces and the like are not allowed in a URI; an absolute path stays one.
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(str(path), safe="/:")},
            "region": region,
        }
    }


def _notifications(report: Report) -> list[dict[str, Any]]:
    level = "error" if report.verdict in ("crashed", "inconclusive") else "note"
    told = [(level, note) for note in report.notes]
    told += [("error" if s.stands else "note", s.text) for s in report.symptoms]
    return [{"level": level, "message": {"text": text}} for level, text in told]
