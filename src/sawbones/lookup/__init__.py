"""From what a person types to a page: a fault id, a symptom in their own words, or a search.

look_up("model.causal-leak")    the page of the fault
look_up("nan")                  the page of the symptom: causes, how they differ, commands
look_up("derivations")          a text to read: derivations, decision-tree, cheat-sheet, ...
look_up("two optimizers")       the pages that speak of it
"""

from __future__ import annotations

from sawbones.lookup.search import matching_symptoms, search, texts
from sawbones.lookup.symptom_page import symptom_page
from sawbones.pages import explain
from sawbones.schema import LAYERS, faults
from sawbones.schema.errors import SawbonesError
from sawbones.symptoms import all_symptoms

__all__ = ["NothingFound", "look_up", "search"]


class NothingFound(SawbonesError):
    """No fault, no symptom and no page that speaks of it."""


def look_up(words: str) -> str:
    """Markdown, or NothingFound."""
    asked = words.strip()
    if asked.lower() in faults() or asked.partition(".")[0] in LAYERS:  # an unknown id is refused
        return explain(asked.lower())
    by_name = {watched.symptom: watched for watched in all_symptoms()}
    exact = asked.lower().replace(" ", "-")
    if exact in texts():
        return texts()[exact]
    if exact in by_name:
        return symptom_page(by_name[exact])
    found = matching_symptoms(asked)
    if found:
        pages = "\n".join(symptom_page(watched) for watched in found)
        if len(found) == 1:
            return pages
        named = ", ".join(f"`{watched.symptom}`" for watched in found)
        return f"“{asked}” may be one of {len(found)} symptoms: {named}.\n\n{pages}"
    hits = search(asked)
    if not hits:
        listed = ", ".join(by_name)
        raise NothingFound(
            f"no page speaks of {asked!r}. Symptoms: {listed}. Faults: sawbones faults"
        )
    lines = [f"# Pages that speak of “{asked}”", ""]
    lines += [f"- `{hit.name}`: {hit.title}. {hit.excerpt}" for hit in hits]
    return "\n".join([*lines, "", f"Open one: `sawbones explain {hits[0].name}`", ""])
