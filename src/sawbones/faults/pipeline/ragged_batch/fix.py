"""Pad the samples to one length where they are joined."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.crashes import died_at
from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import is_library_call, operand
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change, Decide


def fix(case: Case) -> Iterator[Change | Decide]:
    found = died_at(case)
    if found is not None:
        source, line = found
        for call in source.calls_at(line, "stack"):
            rows = operand(source, call)
            if rows is None or not is_library_call(source, call):
                continue
            pad, imports = spelled(source, "torch.nn.utils.rnn.pad_sequence")
            text = f"{pad}({source.text_of(rows)}, batch_first=True)"
            yield Change(
                f"Pad the samples to one length: {text}.",
                (*imports, replace(source, call, text)),
                unsafe="what is padded with 0 has to be left out of the loss",
            )
    yield Decide(
        "Decide what makes the samples one size: cutting loses the end of long ones; padding "
        "keeps all of them, costs time, and needs a mask in model and loss; batches of equal "
        "lengths need neither, and are less mixed."
    )
