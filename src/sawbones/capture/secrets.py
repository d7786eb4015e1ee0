"""What looks like a secret does not enter a bundle."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

REDACTED = "[redacted]"
_NAME = re.compile(
    r"(?i)(key|token|secret|passw(or)?d|passphrase|pwd|auth|credential|cookie|session|private|signature|(?:^|[_-])pat(?:$|[_-])|dsn)"
)
_VALUE = re.compile(
    r"(?x) ^(hf_|sk-|pk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|eyJ|ya29\.|-----BEGIN)[\w.\-]*  |  ://[^/\s:@]+:[^/\s@]+@"
)
_PLAIN_NAMES = (
    "keys",
    "tokenizer",
    "num_tokens",
    "max_tokens",
    "monkey",
    "keyboard",
    "author",
    "keep",
    "tokens",
)
_KEPT = (
    "PYTHON",
    "OMP_",
    "MKL_",
    "KMP_",
    "CUDA",
    "CUBLAS",
    "TORCH",
    "PYTORCH",
    "NCCL",
    "GLOO",
    "HF_",
)
_KEPT_EXACT = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TOKENIZERS_PARALLELISM",
}


def is_secret_name(name: str) -> bool:
    plain = name.strip("-").lower().replace("-", "_")
    return (
        plain not in _PLAIN_NAMES
        and plain != "tokenizers_parallelism"
        and _NAME.search(plain) is not None
    )


def is_secret_value(value: str) -> bool:
    return _VALUE.search(value) is not None or _is_random(value)


def _is_random(value: str) -> bool:
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
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    is_hex = re.fullmatch(r"[0-9a-fA-F\-]+", value) is not None
    return (classes == 3 and entropy > 3.7) or (is_hex and len(value) >= 32 and entropy > 3.0)


def redact_arguments(argv: Sequence[str]) -> list[str]:
    kept: list[str] = []
    hide_next = False
    for argument in argv:
        name, equals, value = argument.partition("=")
        if hide_next and not argument.startswith("--"):
            kept.append(REDACTED)
        elif equals and (is_secret_name(name) or is_secret_value(value)):
            kept.append(f"{name}={REDACTED}")
        else:
            kept.append(REDACTED if is_secret_value(argument) else argument)
        hide_next = not equals and argument.startswith("-") and is_secret_name(argument)
    return kept


def kept_environment(environment: Mapping[str, str], sources: Iterable[bytes]) -> dict[str, str]:
    """Variables that steer the computation, and those that the user's own files name; secrets by
    name alone.
    """
    text = b"\n".join(sources)
    kept: dict[str, str] = {}
    for name, value in sorted(environment.items()):
        steers = name.startswith(_KEPT) or name in _KEPT_EXACT
        if steers or (
            len(name) > 3
            and name.isascii()
            and re.search(rb"['\"]" + re.escape(name.encode()) + rb"['\"]", text)
        ):
            secret = is_secret_name(name) or is_secret_value(value)
            kept[name] = REDACTED if secret else value[:2000]
    return kept
