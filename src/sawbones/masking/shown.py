"""Text that came from a file or from the user's program, as a terminal or a page may show it."""

from __future__ import annotations

import unicodedata

from sawbones.masking.process import mask

# Overrides and isolates: what is read is not what stands there.
_BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x2028, 0x2029}


def shown(text: object) -> str:
    """Secrets masked, and nothing in it that moves a cursor, sets a title, rings a bell or turns
    the direction of reading.
    """
    masked = mask(str(text).expandtabs(4))
    if masked.isascii() and masked.replace("\n", "").isprintable():
        return masked
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if char != "\n" and _steers(char) else char for char in masked
    )


def shown_line(text: object) -> str:
    return shown(" ".join(str(text).split()))


def _steers(char: str) -> bool:
    return ord(char) in _BIDI or unicodedata.category(char) in ("Cc", "Cs")
