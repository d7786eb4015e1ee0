"""Report <-> JSON: the contract that scripts and CI read.

JSON has no NaN and no Infinity, and a report about a broken run is full of them. They are written
as the strings "nan", "inf" and "-inf", and read back as numbers wherever a number belongs (and in
the free mappings `params` and `details`, which hold measurements; `environment` holds text and is
left as it is).
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from sawbones.masking import mask_json
from sawbones.report.masked import masked_in
from sawbones.schema import (
    AgainstGood,
    Cleared,
    CouldNotLook,
    CouldNotSee,
    Difference,
    Evidence,
    Explanation,
    Finding,
    Fix,
    Ignored,
    Report,
    Site,
    Size,
    Symptom,
    Verdict,
)
from sawbones.schema.errors import SawbonesError

SCHEMA_VERSION = 2
EXIT_CODES = {"healthy": 0, "sick": 1, "unexplained": 1, "crashed": 3, "inconclusive": 4}
NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class ReportNotReadable(SawbonesError):
    """A JSON document that does not follow the report contract."""


def exit_code(report: Report) -> int:
    if report.verdict not in EXIT_CODES:
        raise ReportNotReadable(f"verdict {report.verdict!r} is none of {', '.join(EXIT_CODES)}")
    return EXIT_CODES[report.verdict]


def report_schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        (files("sawbones.schema") / "report_schema.json").read_text(encoding="utf-8")
    )
    return loaded


def to_json(report: Report) -> dict[str, Any]:
    text = json.dumps(_document(report), ensure_ascii=False, allow_nan=False)
    document: dict[str, Any] = json.loads(mask_json(text))
    return {**document, "masked": masked_in(report)}


def _document(report: Report) -> dict[str, Any]:
    return {
        "schema": SCHEMA_VERSION,
        "verdict": report.verdict,
        "script": report.script,
        "steps": report.steps,
        "seconds": _plain(report.seconds),
        "symptoms": [_symptom_to_json(symptom) for symptom in report.symptoms],
        "cleared": [_plain(cleared) for cleared in report.cleared],
        "could_not_see": [_plain(item) for item in report.could_not_see],
        "progress": report.progress,
        "findings": [_finding_to_json(finding) for finding in report.findings],
        "ignored": [
            {**_finding_to_json(item.finding), "ignored_by": item.by} for item in report.ignored
        ],
        "against_good": _plain(report.against_good),
        "refuted": [_finding_to_json(finding) for finding in report.refuted],
        "could_not_look": [
            {"fault": blind.fault, "why": blind.why} for blind in report.could_not_look
        ],
        "looked": list(report.looked),
        "environment": _plain(report.environment),
        "notes": list(report.notes),
    }


def write_json(report: Report, path: str | os.PathLike[str]) -> None:
    # allow_nan=False: a NaN that slipped past _plain must fail here, not in the reader's parser.
    text = json.dumps(to_json(report), indent=2, ensure_ascii=False, allow_nan=False)
    # A name read from a foreign file system may hold lone surrogates, which UTF-8 refuses.
    Path(path).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def from_json(document: Mapping[str, Any]) -> Report:
    version = document.get("schema")
    if version != SCHEMA_VERSION:
        raise ReportNotReadable(
            f"report has schema {version!r}, this Sawbones reads {SCHEMA_VERSION}"
        )
    try:
        return Report(
            verdict=document["verdict"],
            script=document["script"],
            steps=document["steps"],
            seconds=_float(document["seconds"]),
            findings=tuple(_finding_from_json(finding) for finding in document["findings"]),
            refuted=tuple(_finding_from_json(finding) for finding in document["refuted"]),
            could_not_look=tuple(
                CouldNotLook(blind["fault"], blind["why"]) for blind in document["could_not_look"]
            ),
            looked=tuple(document.get("looked", ())),
            environment=dict(document["environment"]),
            notes=tuple(document.get("notes", ())),
            symptoms=tuple(_symptom_from_json(symptom) for symptom in document["symptoms"]),
            cleared=tuple(
                Cleared(cleared["layer"], cleared["by"], cleared["result"])
                for cleared in document["cleared"]
            ),
            could_not_see=tuple(
                CouldNotSee(item["symptom"], item["why"])
                for item in document.get("could_not_see", ())
            ),
            progress=document.get("progress", ""),
            masked=dict(document.get("masked", {})),
            against_good=_against_good(document.get("against_good")),
            ignored=tuple(
                Ignored(_finding_from_json(finding), finding["ignored_by"])
                for finding in document.get("ignored", ())
            ),
        )
    except KeyError as error:
        raise ReportNotReadable(
            f"report has no {error.args[0]!r}; the contract asks for it"
        ) from error
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        raise ReportNotReadable(f"report does not follow the contract: {error}") from error


def _against_good(document: Mapping[str, Any] | None) -> AgainstGood | None:
    if document is None:
        return None
    found = (
        Difference(d["what"], d["layer"], d["text"], d["step"], _site_from_json(d["site"]))
        for d in document["differences"]
    )
    return AgainstGood(document["run"], tuple(found))


def _site_from_json(site: Mapping[str, Any] | None) -> Site | None:
    if site is None:
        return None
    return Site(site["file"], site["line"], site.get("function", ""), site.get("code", ""))


def _symptom_to_json(symptom: Symptom) -> dict[str, Any]:
    fields: dict[str, Any] = _plain(symptom)
    return {"symptom": fields.pop("symptom"), "class": fields.pop("cls"), **fields}


def _symptom_from_json(document: Mapping[str, Any]) -> Symptom:
    return Symptom(
        symptom=document["symptom"],
        cls=document["class"],
        text=document["text"],
        value=_number(document.get("value")),
        expected=_number(document.get("expected")),
        steps=tuple(document.get("steps", ())),
        explained_by=document.get("explained_by"),
    )


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    return {
        "fault": finding.fault,
        "status": finding.status,
        "confidence": _plain(finding.confidence),
        "confidence_n": finding.confidence_n,
        "title": finding.title,
        "where": [_plain(site) for site in finding.where],
        "evidence": [_plain(evidence) for evidence in finding.evidence],
        "experiment": _verdict_to_json(finding.verdict),
        "fix": _plain(finding.fix),
        "test": finding.test,
        "decided_by": finding.experiment,
        "params": _plain(finding.params),
        "explanation": _plain(finding.explanation),
    }


def _verdict_to_json(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    fields: dict[str, Any] = _plain(verdict)
    return {"name": fields.pop("experiment"), **fields}


def _finding_from_json(document: Mapping[str, Any]) -> Finding:
    fix, verdict = document["fix"], document["experiment"]
    return Finding(
        fault=document["fault"],
        status=document["status"],
        confidence=_float(document["confidence"]),
        confidence_n=int(document.get("confidence_n", 0)),
        title=document["title"],
        where=tuple(
            Site(site["file"], site["line"], site.get("function", ""), site.get("code", ""))
            for site in document["where"]
        ),
        evidence=tuple(_evidence_from_json(evidence) for evidence in document["evidence"]),
        fix=None if fix is None else _fix_from_json(fix),
        experiment=document.get("decided_by"),
        params=_revive(document.get("params", {})),
        verdict=None if verdict is None else _verdict_from_json(verdict),
        test=document["test"],
        explanation=_explanation_from_json(document.get("explanation")),
    )


def _explanation_from_json(document: Mapping[str, Any] | None) -> Explanation | None:
    if document is None:
        return None
    return Explanation(
        document["expected"],
        document["got"],
        document.get("because", ""),
        tuple(
            Size(row["name"], row["size"], row.get("source", ""))
            for row in document.get("sizes", ())
        ),
    )


def _evidence_from_json(document: Mapping[str, Any]) -> Evidence:
    return Evidence(
        text=document["text"],
        signal=document.get("signal", ""),
        steps=tuple(document.get("steps", ())),
        value=_number(document.get("value")),
        expected=_number(document.get("expected")),
        kind=str(document.get("kind", "")),
        strength=str(document.get("strength", "")),
        interval=tuple(document["interval"]) if document.get("interval") else None,
        n=document.get("n"),
    )


def _fix_from_json(document: Mapping[str, Any]) -> Fix:
    replace = document.get("replace")
    return Fix(
        summary=document["summary"],
        replace=None if replace is None else (replace[0], replace[1]),
        patch=document["patch"],
        level=document["level"],
        measured=_revive(document["measured"]),
    )


def _verdict_from_json(document: Mapping[str, Any]) -> Verdict:
    return Verdict(
        experiment=document["name"],
        outcome=document["outcome"],
        result=document["result"],
        baseline=_number(document.get("baseline")),
        with_remedy=_number(document.get("with_remedy")),
        seconds=_float(document.get("seconds", 0.0)),
        details=_revive(document.get("details", {})),
        title=str(document.get("title", "")),
    )


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it; what it can't hold becomes its text, so that a report is always
    written.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=repr)
    return str(value)


def _number(value: Any) -> float | None:
    return None if value is None else _float(value)


def _float(value: Any) -> float:
    if isinstance(value, str):
        if value not in NONFINITE:
            raise ReportNotReadable(f"{value!r} stands where a number, nan, inf or -inf belongs")
        return NONFINITE[value]
    return float(value)


def _revive(value: Any) -> Any:
    if isinstance(value, str):
        return NONFINITE.get(value, value)
    if isinstance(value, Mapping):
        return {key: _revive(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_revive(item) for item in value]
    return value
