"""Which values are secrets by their form: token formats, passwords in URLs, random-looking
words.
"""

from __future__ import annotations

import math
import re
from collections import Counter

# In JSON a line break in front of a token is the two characters \n, so a letter before it is no
# part of the same word.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_DIGIT = r"(?=[A-Za-z_\-]{0,100}[0-9])"

TOKEN_FORMAT = re.compile(
    _START
    + "(?:"
    + "|".join(
        (
            r"hf_[A-Za-z0-9]{20,}",
            rf"sk-{_DIGIT}[A-Za-z0-9_\-]{{20,}}",
            r"gh[pousr]_[A-Za-z0-9]{20,}",
            r"github_pat_[A-Za-z0-9_]{20,}",
            rf"glpat-{_DIGIT}[A-Za-z0-9_\-]{{16,}}",
            rf"xox[abeoprs]-{_DIGIT}[A-Za-z0-9\-]{{10,}}",
            r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
            r"AIza[A-Za-z0-9_\-]{30,}",
            r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*",
            r"ya29\.[A-Za-z0-9_\-]{16,}",
            r"npm_[A-Za-z0-9]{36}",
            r"pypi-[A-Za-z0-9_\-]{40,}",
            r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}",
        )
    )
    + ")"
)
TOKEN_MARKS = (
    *("hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox"),
    *("AKIA", "ASIA", "AIza", "eyJ", "ya29.", "npm_", "pypi-", "SG."),
)
# as an argument of its own a shorter one is enough
TOKEN_ARGUMENT = re.compile(
    r"(?:hf_|gh[pousr]_)[A-Za-z0-9]{6,}"  # not hf_trainer.py: a token has no second underscore
    rf"|(?:sk-|pk-){_DIGIT}\S*"
    r"|(?:github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|AIza|eyJ|ya29\.|-----BEGIN)\S*"
)
URL_PASSWORD = re.compile(r"(?<=://)([^\s/:@\"'<>]{0,200}):([^\s/@\"'<>]{1,500})(?=@)")
BEARER = re.compile(rf"\b(Bearer|Basic|token) {_DIGIT}([A-Za-z0-9._~+/\-]{{16,}}=*)")
PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?:\\[nr]|[A-Za-z0-9+/=\s])*"
    r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----)?"
)
WANDB_LOGIN = re.compile(r"(wandb\.login\([^)\n]{0,80}key\s*=\s*\\?[\"'])([0-9a-f]{40})")

_SECRET_NAME = (
    r"(?:password|passwd|passphrase|passcode|secret|credentials?|api[_\-]?key|access[_\-]?key|"
    r"secret[_\-]?key|private[_\-]?key|authtoken|(?:auth|access|api|hf|hub|bearer)[_\-]token)"
)
_NAMED = (
    rf"(?i)(?<![A-Za-z0-9])((?:[A-Za-z0-9_\-]{{0,40}}[_\-])?{_SECRET_NAME}(?![A-Za-z0-9_\-])"
    r"(?:\\?[\"'])?\]?"
)
# password="...", "password": "...", environ["API_KEY"] = "...", get("api_key", "..."),
# add_argument("--api-key", default="...")
NAMED_LITERAL = re.compile(
    _NAMED
    + r"\s*(?:=>|[=:,])\s*(?:default\s*=\s*)?[rbuRBU]?\\?[\"'])([^\s\"'\\]{6,4096})(?=\\?[\"'])"
)
NAMED_WORD = re.compile(_NAMED + r"\s*[=:]\s*)([^\s\"'\\,;()\[\]{}<>.&]{6,4096})(?![(\[.\w])")
# One of these stands in every text in which the two above can find something.
NAME_MARKS = (
    *("passw", "passphrase", "passcode", "secret", "credential", "apikey", "api_key", "api-key"),
    *("access", "private", "_token", "-token", "authtoken"),
)


def looks_like_credential(value: str) -> bool:
    """Letters and digits mixed, or a long word with signs between its letters; no path, no
    placeholder, no call.
    """
    if not 6 <= len(value) <= 4096 or re.search(r"[\s()\[\]{}<>]|://", value):
        return False
    if re.search(r"\.\w{1,5}$", value) or value.startswith(("/", "./", "../", "~", "$", "%")):
        return False
    if is_random(value):
        return True
    letters = re.search(r"[A-Za-z]", value) is not None
    if letters and re.search(r"[0-9]", value):
        return True
    return letters and len(value) >= 12 and entropy(value) >= 3 and "-" in value


def is_random(value: str) -> bool:
    """One long word of mixed letters and digits with nearly as many different characters as chance
    would give.
    """
    if (
        not 24 <= len(value) <= 4096
        or not re.fullmatch(r"[A-Za-z0-9+/=_\-.]+", value)
        or "/" in value.strip("/")[:20]
    ):
        return False
    classes = sum(bool(re.search(pattern, value)) for pattern in ("[a-z]", "[A-Z]", "[0-9]"))
    is_hex = re.fullmatch(r"[0-9a-fA-F\-]+", value) is not None
    return (classes == 3 and entropy(value) > 3.7) or (
        is_hex and len(value) >= 32 and entropy(value) > 3.0
    )


def entropy(value: str) -> float:
    """Bits per character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
