"""Secret values are masked wherever they recur; names, and everything that is no secret, stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.masking import MASK, Masker
from sawbones.masking.names import is_secret_flag, is_secret_name
from sawbones.masking.shown import shown, shown_line
from sawbones.masking.wording import masked_text

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name",
    ["API_KEY", "--auth-token", "db_password", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "wandb.apiKey"],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["--max-tokens", "tokenizer", "lr", "key", "token", "--pad-token", "path", "author", "query"],
)
def test_plain_names(name: str) -> None:
    assert not is_secret_name(name)
    assert is_secret_flag(name) == (name == "token")


def test_no_line_of_the_corpus_is_masked() -> None:
    """Hundreds of these files assign to `key`, `query` and `token`."""
    files = [
        *(p for p in (ROOT / "tests" / "corpus").rglob("*") if p.is_file()),
        *(ROOT / "src" / "sawbones" / "faults").glob("*/*/lab.py"),
    ]
    assert len(files) > 1700
    masker = Masker()
    changed = []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        changed += [(path.name, line) for line in text.split("\n") if masker.mask(line) != line]
        assert masker.mask(text) == text, path
    assert changed == []


ARGUMENTS = [
    (["--api-key", "shortie"], ["--api-key", MASK]),
    (["--api-key=q"], [f"--api-key={MASK}"]),
    (["--password", "pass word"], ["--password", MASK]),
    (
        ["--wandb-key", "abc", "--lr", "1", "-x=sk-1"],
        ["--wandb-key", MASK, "--lr", "1", f"-x={MASK}"],
    ),
    (["--token", "hunter2hunter2"], ["--token", MASK]),
    (["wandb.api_key=abc123def"], [f"wandb.api_key={MASK}"]),
    (["--db", "postgres://me:secretpw@host/x"], ["--db", f"postgres://me:{MASK}@host/x"]),
    (["d41d8cd98f00b204e9800998ecf8427e"], [MASK]),
    (["hf_abcDEF123"], [MASK]),
    (
        ["--pad-token", "[PAD]", "--sort-key", "user_id"],
        ["--pad-token", "[PAD]", "--sort-key", "user_id"],
    ),
    (["--max-tokens", "512", "--out", "runs/gpt-2024-01-01"], None),
    (["hf_shift_ill.py", "--from", "hf_bert_base", "--pipe", "sk-learn"], None),
    (["--model", "facebook/opt-125m", "--data", "/data/train.bin", "a" * 40], None),
]


@pytest.mark.parametrize(("given", "expected"), ARGUMENTS, ids=lambda v: str(v)[:40])
def test_arguments(given: list[str], expected: list[str] | None) -> None:
    assert Masker().mask_arguments(given) == (given if expected is None else expected)


def test_a_known_value_is_masked_in_every_form_it_is_written_in() -> None:
    masker = Masker()
    masker.learn('pa"ss\\w/örd 7', "argv --password")
    import base64
    import html
    import json
    from urllib.parse import quote

    value = 'pa"ss\\w/örd 7'
    for text in (
        value,
        json.dumps({"x": [value]}),
        json.dumps({"x": value}, ensure_ascii=False),
        repr(value),
        f"https://host/?p={quote(value, safe='')}",
        html.escape(value),
        base64.b64encode(value.encode()).decode(),
        value.encode().hex(),
    ):
        assert MASK in masker.mask(text), text
    assert masker.counts == {"argv --password": 1}


def test_ordinary_and_short_values_do_not_recur() -> None:
    masker = Masker()
    masker.learn_arguments(["--password", "abc", "--api-key", "true", "--secret", "100000"])
    assert masker.mask("abc true 100000") == "abc true 100000"


def test_the_environment_gives_values_not_names(tmp_path: Path) -> None:
    masker = Masker()
    masker.learn_environment(
        {
            "HF_TOKEN": "verysecretvalue",
            "SORT_KEY": "user_id",
            "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path),
            "PWD": "/home/me/project",
            "TOKENIZERS_PARALLELISM": "false",
        }
    )
    text = f"HF_TOKEN verysecretvalue user_id {tmp_path} /home/me/project false"
    assert masker.mask(text) == text.replace("verysecretvalue", MASK)


TEXTS = [
    "sk-proj-abcdef1234567890abcdef",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghij_klmnopqrstuv",
    "glpat-abcdefghij1234567890",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF-123",
    "ya29.a0AfH6SMBabcdefghijk",
]


@pytest.mark.parametrize("token", TEXTS, ids=lambda t: t[:8])
@pytest.mark.parametrize("around", ["{}", "login({!r})", '{{"a": "line\\n{}"}}', "bad token {}."])
def test_token_formats(token: str, around: str) -> None:
    assert token[6:-3] not in Masker().mask(around.format(token))


@pytest.mark.parametrize(
    "text",
    [
        'password = "hunter2!"',
        "{'api_key': 'abc123def'}",
        'os.environ["WANDB_API_KEY"] = "0123456789abcdef0123456789abcdef01234567"',
        'p.add_argument("--api-key", default="q1w2e3r4t5")',
        'wandb.login(key="0123456789abcdef0123456789abcdef01234567")',
        "RuntimeError: login failed: password=hunter2x rejected",
        "Authorization: Bearer abcdefgh12345678ijkl",
    ],
)
def test_values_beside_secret_names(text: str) -> None:
    masked = Masker().mask(text)
    assert MASK in masked
    assert not any(part in masked for part in ("hunter2", "abc123", "q1w2e3", "45678"))


def test_a_private_key_is_masked_over_lines_and_line_numbers_stay() -> None:
    body = "\n".join(["MIIEpAIBAAKCAQEA7bq"] * 3)
    text = f'K = """-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"""\nlast'
    masked = Masker().mask(text)
    assert "MIIE" not in masked
    assert masked.count("\n") == text.count("\n")


def test_masking_twice_changes_nothing_more() -> None:
    masker = Masker()
    masker.learn_arguments(["--password", "hunter2x"])
    once = masker.mask("postgres://u:hunter2x@h password='hunter2x' --password=hunter2x")
    assert masker.mask(once) == once
    assert masker.mask_arguments(["--password", MASK]) == ["--password", MASK]


def test_text_cannot_steer_a_terminal() -> None:
    hostile = "a\x1b]0;title\x07b\x9b31mc\u202ed\u2066e\rf\x00g\tz"
    seen = shown(hostile)
    assert not any(char in seen for char in "\x1b\x07\x9b\u202e\u2066\r\x00\t")
    assert [c for c in seen if c.isalpha()][-1] == "z"
    assert shown("two\nlines é 漢") == "two\nlines é 漢"
    assert shown_line("two\n  lines") == "two lines"


def test_the_line_that_says_what_was_masked() -> None:
    counts = {"argv --api-key": 1, "env HF_TOKEN": 1, "token format": 1}
    assert masked_text(counts) == "3 values (argv --api-key, env HF_TOKEN, 1 token format)"
    assert masked_text({}) == ""
