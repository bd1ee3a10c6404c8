"""Secrets: found in what is about to be written, and masked over the whole token by a marker that says what it was.

Patterns of known services come from detect-secrets' plugins, one expression at a time: its scan of a line and its global
settings flag plain words and are not safe between threads, its entropy plugins would take names for keys, and what its
plugins return may be a part of the token, so a finding is widened to the whole of it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

T = TypeVar("T")
Put = Callable[[str, str], str]
Span = tuple[int, int, str]

MARKER = "[secret: {kind}]"
_MARKER = re.compile(r"\[secret: (\w+)\]")

IDENTIFIERS = frozenset(
    "id owner thread message_id call_id learned_from target proposed_target derived_from depends_on superseded_by".split()
)
"""Fields of records that are never masked: something is found by them."""

REPEATED = 6
"""Least characters of a secret that is also masked where it is repeated without saying what it is."""

_GAP = r"[ \u00a0-]?"
# By issuer and length (ISO/IEC 7812-1): other long numbers are order numbers, ISBNs and serials.
_CARD = re.compile(
    rf"""(?<![\d+])(?=((?:4\d{{3}}|5[1-5]\d\d|2[2-7]\d\d|35\d\d|6(?:011|[245]\d\d))(?:{_GAP}\d){{12}}(?:(?:{_GAP}\d){{3}})??(?!\d)
      |3[47]\d\d(?:{_GAP}\d){{11}}(?!\d)|3[0689]\d\d(?:{_GAP}\d){{10}}(?!\d)))""",
    re.VERBOSE,
)
_KEY = re.compile(
    r"""\b(?:sk|pk|rk)[-_](?=[\w-]{0,60}?(?:[A-Za-z0-9]{16}|[A-Za-z]\d[A-Za-z]))[\w-]{16,}
    |\b(?:hf|gsk|xai|r8|npm|glpat|shpat|dop_v1|github_pat)_\w{16,}|\bgh[pousr]_\w{30,}|\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}
    |(?<=_authToken=)[\w-]{16,}|(?<=[Bb]earer )[\w.~+/-]{20,}=*""",
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_JWT = re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?")
_IS = r"(?:is|was|are|ist|war|es|est|é|è|era|er|är|to|is)"
_VALUE = r"""(?:["'“„‘`](?P<quoted>[^"'“”‘’`\n]{3,100})["'”“’`]|(?P<value>[^\s"'“”„‘’`,;，。；]{3,200}))"""
_PASSWORD = re.compile(
    rf"""(?<!\[secret:\ )(?<![^\W_])(?:password|passwd|pwd|passcode|passwort|kennwort|contraseña|mot\ de\ passe|senha|wachtwoord
      |lösenord|passord|hasło|пароль)
    (?:\ (?:for|to|of|on|at|für|de|du|da|do|pour|van)\ [^\n.,;:=]{{1,40}}?)?
    (?:\s{{1,3}}{_IS}\b\s{{0,3}}(?:now\s|still\s|jetzt\s)?:?|\s{{0,3}}(?:[:=]|->|—))\s{{0,3}}{_VALUE}""",
    re.IGNORECASE | re.VERBOSE,
)
_PASSWORD_UNSPACED = re.compile(
    rf"(?:密码|密碼|パスワード|暗証番号|비밀번호)\s{{0,3}}(?:是|为|為|は|는|:|：)\s{{0,3}}{_VALUE}"
)
_PIN = re.compile(
    rf"""(?<![^\W_])(?:(?i:pin)(?:[ -](?i:code|number|nummer))?(?:\ (?:for|to|of|für)\ [^\n.,;:=]{{1,40}}?)?\s{{0,3}}
      (?:{_IS}\b|[:=])\s{{0,3}}|PIN\s)(?P<value>\d{{4,12}})(?!\d)""",
    re.VERBOSE,
)
_PHRASE = re.compile(
    rf"""(?<!\[secret:\ )\b(?:passphrase|(?:seed|recovery|mnemonic)\ phrase|(?:recovery|backup)\ codes?)\s{{0,3}}(?:{_IS}\b|[:=]):?
    \s{{0,3}}["'“]?(?P<value>[^\n"'“”.;!?]{{3,300}})""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMED_KEY = re.compile(
    rf"""(?<!\[secret:\ )(?<![^\W_])(?:api[ _-]?key|secret[ _-](?:access[ _-])?key|client[ _-]secret|access[ _-]key
      |(?:access|auth|api|bearer|refresh)[ _-]?token|license[ _-]key)
    (?:\ (?:for|to|of|on)\ [^\n.,;:=]{{1,40}}?)?(?:\s{{1,3}}{_IS}\b:?|["']?\s{{0,3}}(?:[:=]|->))\s{{0,3}}{_VALUE}""",
    re.IGNORECASE | re.VERBOSE,
)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:password|passwd|pwd|passcode|passphrase|pin|secret|api_?key|secret_?key|token)$", re.IGNORECASE
)
# What people say about a password instead of saying it.
_NOT_A_SECRET = frozenset(
    """a an the in on at my our your his her their not too very also secret safe strong weak easy hard stored saved kept written
    lost gone wrong right correct incorrect required invalid valid changed reset always never something different same longer
    shorter long short old new unknown forgotten hidden hashed leaked stolen it that this what where how none missing blank empty
    fine okay no one just only still now about under with by from for to of in and or but so public private case sensitive
    secure insecure important mandatory optional bad good random simple complex confidential twelve eight ten tomorrow today
    sicher falsch richtig geheim vergessen stark schwach segura secreta incorrecta correcta fuerte olvidada sûr fort faible
    oublié secret trop muy muito zu sehr nicht kein eine ein der die das la le el un une unha uma no não""".split()
)
_SPOKEN_OF = re.compile(r"(?:ing|ed|ous|able|ible|ful|less|ten|ish)$")
_LONG = re.compile(r"\S{16}")
_TOKEN = re.compile(r"[^\s\"'“”‘’`,;()<>\[\]{}]")


def mask(value: T) -> tuple[T, list[str]]:
    """Return `value` with the secrets in its texts masked, and the kinds that were found, each once, in order.

    Masking twice changes nothing. What is told as a secret in one text is masked in all of them.

    Args:
        value: a text, a record, or lists, tuples and dicts of them. Fields in `IDENTIFIERS` stay as they are.
    """
    told: dict[str, str] = {}

    def note(text: str, name: str) -> str:
        told.update((text[start:end], kind) for start, end, kind in _found(text, name, {}))
        return text

    _mapped(value, note)
    if not told:
        return value, []
    repeated = {secret: kind for secret, kind in told.items() if len(secret) >= REPEATED}

    def put(text: str, name: str) -> str:
        while spans := _found(text, name, repeated):  # what stands beside a marker may read as a secret only now
            for start, end, kind in reversed(spans):
                told.setdefault(text[start:end], kind)
                text = text[:start] + MARKER.format(kind=kind) + text[end:]
        return text

    return _mapped(value, put), list(dict.fromkeys(told.values()))


def kinds_in(text: str) -> list[str]:
    """Return the kinds of secrets that have been masked in a text, each once, in order."""
    return list(dict.fromkeys(_MARKER.findall(text)))


def _mapped(value: Any, put: Put, name: str = "") -> Any:
    """Return `value` with `put(text, its name)` in the place of each text; the value itself where nothing changes."""
    if isinstance(value, str):
        return put(value, name)
    if isinstance(value, BaseModel):
        slot = getattr(value, "attribute", None) or ""
        named = {
            field: slot if field == "value" else "" for field in type(value).model_fields if field not in IDENTIFIERS
        }
        changed = {field: _mapped(getattr(value, field), put, called) for field, called in named.items()}
        changed = {field: part for field, part in changed.items() if part is not getattr(value, field)}
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, dict):
        parts = {key: _mapped(part, put, str(key)) for key, part in value.items()}
        return value if all(part is value[key] for key, part in parts.items()) else parts
    if isinstance(value, list | tuple):
        items = [_mapped(part, put, name) for part in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    return value


def _found(text: str, name: str, repeated: Mapping[str, str]) -> list[Span]:
    """Return where secrets stand in a text, in order and apart; nothing within a marker."""
    if _SECRET_NAME.search(name) and text.strip() and not _MARKER.search(text):
        return [(0, len(text), _told_kind(name))]
    spans = _merged(sorted([*_spans(text), *_again(text, repeated)]))
    taken = [marker.span() for marker in _MARKER.finditer(text)] if spans else []
    return [span for span in spans if not any(start < span[1] and span[0] < end for start, end in taken)]


def _again(text: str, repeated: Mapping[str, str]) -> Iterator[Span]:
    for secret, kind in repeated.items():
        for found in re.finditer(rf"(?<!\w){re.escape(secret)}(?!\w)", text):
            yield found.start(), found.end(), kind


def _spans(text: str) -> Sequence[Span]:
    return _spans_of_short(text) if len(text) <= _SHORT else tuple(_all_spans(text))


_SHORT = 2000


@lru_cache(maxsize=1024)
def _spans_of_short(text: str) -> Sequence[Span]:  # a turn is looked at several times on its way
    return tuple(_all_spans(text))


def _all_spans(text: str) -> Iterator[Span]:
    for found in _PRIVATE_KEY.finditer(text):
        yield found.start(), found.end(), "private_key"
    for found in _CARD.finditer(text):
        if _is_card(found[1]):
            yield found.start(1), found.end(1), "card"
    yield from _told(text)
    if "://" in text or _LONG.search(text):
        for pattern, kind in ((_KEY, "key"), (_JWT, "jwt")):
            for found in pattern.finditer(text):
                yield found.start(), found.end(), kind
        yield from _services(text)


def _told(text: str) -> Iterator[Span]:
    """Yield what somebody says to be a password, pin or key."""
    for found in (*_PASSWORD.finditer(text), *_PASSWORD_UNSPACED.finditer(text)):
        if found["quoted"]:
            yield *found.span("quoted"), "password"
        elif _is_password(value := found["value"].rstrip(".!?。"), text[found.end() :]):
            yield found.start("value"), found.start("value") + len(value), "password"
    for found in _PIN.finditer(text):
        yield *found.span("value"), "password"
    for found in _PHRASE.finditer(text):
        words = found["value"].casefold().split()
        if 3 * sum(word in _NOT_A_SECRET for word in words) < len(words):
            yield found.start("value"), found.start("value") + len(found["value"].rstrip()), "password"
    for found in _NAMED_KEY.finditer(text):
        part = "quoted" if found["quoted"] else "value"
        value = found[part].rstrip(".!?")
        if len(value) >= 8 and any(c.isdigit() for c in value):
            yield found.start(part), found.start(part) + len(value), "key"


def _is_password(value: str, rest: str) -> bool:
    """Whether a word said after "the password is" is one: it is no plain word, or it ends the clause and describes nothing."""
    if len(value) < 3 or value.casefold() in _NOT_A_SECRET:
        return False
    if not value.replace("-", "").isalpha() or value[1:] != value[1:].lower():
        return True
    ends = re.match(r"\s*(?:$|[,.;!?)\n]|\s(?:and|but|und|y|et|e)\s)", rest) is not None
    return ends and not _SPOKEN_OF.search(value.casefold())


def _told_kind(named: str) -> str:
    return "key" if re.search(r"key|token|secret", named, re.IGNORECASE) else "password"


def _services(text: str) -> Iterator[Span]:
    for plugin in _plugins():
        for pattern in plugin.denylist:
            for found in pattern.finditer(text):
                part = 1 if found.lastindex and plugin.secret_type in _IN_CONTEXT else 0
                yield *_whole(text, found.start(part), found.end(part)), _kind(plugin.secret_type)


_IN_CONTEXT = ("AWS Access Key", "Basic Auth Credentials")
"""Those whose expressions hold more than the secret, which is their group."""


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a finding to the token around it; a password inside an address stays between its ':' and '@'."""
    if start and text[start - 1] == ":" and text[end : end + 1] == "@":
        return start, end
    while start and _TOKEN.match(text[start - 1]) and text[start - 1] not in "=:":
        start -= 1
    while end < len(text) and _TOKEN.match(text[end]):
        end += 1
    return start, end - (text[end - 1] in ".!?:")


def _kind(secret_type: str) -> str:
    return re.sub(r"\W+", "_", secret_type.lower()).strip("_")


def _merged(spans: Sequence[Span]) -> list[Span]:
    kept: list[Span] = []
    for start, end, kind in spans:
        if kept and start < kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]), kept[-1][2])
        else:
            kept.append((start, end, kind))
    return kept


def _is_card(number: str) -> bool:
    """Whether the digits pass the Luhn check (ISO/IEC 7812-1)."""
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [d if i % 2 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits), 1)]
    return sum(doubled) % 10 == 0


@cache
def _plugins() -> tuple[Any, ...]:
    from detect_secrets.plugins import (
        aws,
        azure_storage_key,
        basic_auth,
        discord,
        github_token,
        gitlab_token,
        mailchimp,
        pypi_token,
        sendgrid,
        slack,
        square_oauth,
        stripe,
        telegram_token,
        twilio,
    )

    return (
        aws.AWSKeyDetector(),
        azure_storage_key.AzureStorageKeyDetector(),
        basic_auth.BasicAuthDetector(),
        discord.DiscordBotTokenDetector(),
        github_token.GitHubTokenDetector(),
        gitlab_token.GitLabTokenDetector(),
        mailchimp.MailchimpDetector(),
        pypi_token.PypiTokenDetector(),
        sendgrid.SendGridDetector(),
        slack.SlackDetector(),
        square_oauth.SquareOAuthDetector(),
        stripe.StripeDetector(),
        telegram_token.TelegramBotTokenDetector(),
        twilio.TwilioKeyDetector(),
    )
