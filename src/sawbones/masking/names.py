"""Which names of flags, environment variables and literals say that their value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache

_SECRET_WORDS = {
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "apikey",
    "authtoken",
    "accesstoken",
}
# `key` and `token` say nothing by themselves: they are words of attention and of text.
_KEY_OWNERS = {
    *("api", "access", "secret", "private", "auth", "signing", "encryption", "license"),
    *("service", "account", "storage", "master", "subscription", "deploy", "app", "client"),
    *("wandb", "hf", "openai", "anthropic", "comet", "neptune", "aws", "azure", "gcp"),
}
_TOKEN_OWNERS = {
    *("auth", "access", "api", "bearer", "refresh", "session", "secret", "jwt", "oauth"),
    *("hf", "hub", "huggingface", "wandb", "github", "gitlab", "gh", "slack", "bot"),
    *("user", "id", "service", "personal", "write", "read"),
}
_WEAK_LAST_WORDS = {"key", "token", "auth", "cookie", "dsn", "pat", "pwd", "signature"}


@lru_cache(4096)
def words_of(name: str) -> tuple[str, ...]:
    """`--wandb.apiKey` -> ("wandb", "api", "key")."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return tuple(word.lower() for word in re.split(r"[^A-Za-z0-9]+", spaced) if word)


def is_secret_name(name: str) -> bool:
    """Whatever value it has is a secret."""
    words = words_of(name)
    if not words:
        return False
    before, last = (words[-2] if len(words) > 1 else ""), words[-1]
    if last in _SECRET_WORDS or (last == "pwd" and before):
        return True
    return (last == "key" and before in _KEY_OWNERS) or (
        last == "token" and before in _TOKEN_OWNERS
    )


def is_secret_flag(name: str) -> bool:
    """A flag called --token, --pwd or --pat alone takes a secret; a variable of that name need not
    hold one.
    """
    return is_secret_name(name) or words_of(name) in (("token",), ("pwd",), ("pat",))


def may_be_secret_name(name: str) -> bool:
    """A secret where the value looks like one."""
    words = words_of(name)
    return bool(words) and (
        words[-1] in _WEAK_LAST_WORDS or any(word in _SECRET_WORDS for word in words)
    )
