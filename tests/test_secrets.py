"""Secrets are masked over the whole token, ordinary sentences are left alone."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharpwave.memory.records import Candidate
from sharpwave.memory.secrets import kinds_in, mask

A36 = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\nabcDEF123+/=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

SECRETS = [
    (f"My token is ghp_{A36}, keep it.", f"ghp_{A36}", "github_token"),
    (f"github_pat_11ABCDEFG0{A36}_x is mine", f"github_pat_11ABCDEFG0{A36}_x", "key"),
    ("The key id is AKIAIOSFODNN7EXAMPLE.", "AKIAIOSFODNN7EXAMPLE", "aws_access_key"),
    (
        "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "key",
    ),
    (f"Authorization: Bearer {JWT}", JWT, "jwt"),
    (f"here: {JWT}.", JWT, "jwt"),
    (f"Use this:\n{PEM}\nthanks", PEM, "private_key"),
    (PEM[:40], PEM[:40], "private_key"),
    ("The key is sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.", "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "key"),
    ("sk-proj-Ab12_Cd34-Ef56gh78ij90klmnop", "sk-proj-Ab12_Cd34-Ef56gh78ij90klmnop", "key"),
    ("sk_live_4eC39HqLyjWDarjtT1zdp7dc is live", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "key"),
    ("hf_abcdefghijklmnopqrstuvwxyz012345", "hf_abcdefghijklmnopqrstuvwxyz012345", "key"),
    ("AIzaSyA-1234567890abcdefghijklmnopqrstu", "AIzaSyA-1234567890abcdefghijklmnopqrstu", "key"),
    ("glpat-abcDEF123456ghiJKL78", "glpat-abcDEF123456ghiJKL78", "gitlab_token"),
    ("xoxb-123456789012-123456789012-abcdefABCDEF", "xoxb-123456789012-123456789012-abcdefABCDEF", "slack_token"),
    (
        "SG.aaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "SG.aaaaaaaaaaaaaaaaaaaaaa",
        "sendgrid_api_key",
    ),
    ("110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "telegram_bot_token"),
    (
        "//registry.example/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "key",
    ),
    ("postgres://ana:hunter2@db.example:5432/app", "hunter2", "basic_auth_credentials"),
    ("Card 4111 1111 1111 1111.", "4111 1111 1111 1111", "card"),
    ("4111-1111-1111-1111", "4111-1111-1111-1111", "card"),
    ("pay with 5500005555555559 exp 12/27", "5500005555555559", "card"),
    ("Visa 4111 1111 1111 1111 12/27 123", "4111 1111 1111 1111", "card"),
    ("Visa 4111 1111 1111 1111 123", "4111 1111 1111 1111", "card"),
    ("amex 3782 822463 10005", "3782 822463 10005", "card"),
    ("My database password is correct-horse-9 and more.", "correct-horse-9", "password"),
    ("my password is hunter2", "hunter2", "password"),
    ("My new password is sunshine.", "sunshine", "password"),
    ("My password is now Sommer2026!", "Sommer2026", "password"),
    ("My password is: tr0ub4dor&3", "tr0ub4dor&3", "password"),
    ("The password for the wifi is blue-Whale-42", "blue-Whale-42", "password"),
    ('The password is "open the door".', "open the door", "password"),
    ("login ana, password: qwertz", "qwertz", "password"),
    ("PWD=hunter2", "hunter2", "password"),
    ("DB_PASSWORD=s3cr3t!x", "s3cr3t!x", "password"),
    ("my PIN is 4921.", "4921", "password"),
    ("my pin code is 4921", "4921", "password"),
    ("PIN 4921 opens it", "4921", "password"),
    ("My passphrase is correct horse battery staple.", "correct horse battery staple", "password"),
    ("recovery phrase: abandon ability able about above", "abandon ability able about above", "password"),
    ("My API key is 9f8e7d6c5b4a3210.", "9f8e7d6c5b4a3210", "key"),
    ("API_KEY=9f8e7d6c5b4a3210", "9f8e7d6c5b4a3210", "key"),
    ('{"access_token": "9f8e7d6c5b4a3210"}', "9f8e7d6c5b4a3210", "key"),
    ("Mein Passwort ist Katze123.", "Katze123", "password"),
    ("Mi contraseña es gatito99", "gatito99", "password"),
    ("Mon mot de passe est chaton99", "chaton99", "password"),
    ("A minha senha é gatinho99", "gatinho99", "password"),
    ("La mia password è gattino99", "gattino99", "password"),
    ("Mijn wachtwoord is poesje99", "poesje99", "password"),
    ("Мой пароль: kotik99", "kotik99", "password"),
    ("我的密码是abc12345", "abc12345", "password"),
    ("パスワードは neko1234 です", "neko1234", "password"),
    ("비밀번호는 goyangi12", "goyangi12", "password"),
]

ORDINARY = """\
My passphrase is stored in a vault.
My passphrase is weak.
My recovery codes are on the fridge.
My password is stored in a vault.
My password is too long.
My password is weak.
My password was leaked.
My password is getting old.
My password is about twelve characters.
My password is ridiculous.
My password is the name of my dog.
My password is not secure.
I forgot my password.
The password reset link is broken.
I changed the password for the router.
The wifi password is on the router.
Mein Passwort ist sicher.
Mein Passwort ist zu lang.
Mi contraseña es segura.
Mon mot de passe est trop court.
Passwords: a history of bad ideas.
The secret is love.
The secret ingredient is cinnamon.
My secret santa is Oona.
The pin is bent.
I collect pin badges, 1200 of them.
The key is under the mat.
The key is to start early.
The API key is in the vault.
The access token is short-lived.
My token of appreciation is a cake.
The token is expired.
My order number is 1029384756102938.
Tracking number 1Z999AA10123456784.
My phone number is +49 30 12345678.
Call me on 555-0142.
Call +1 (415) 555-2671 after 5.
The ISBN is 978-3-16-148410-0.
ISBN 9780306406157
I was born on 1990-05-17.
The meeting is on 2026-03-02 at 09:00.
My IBAN ends in 3000.
My passport expires in 2031.
The serial is 4111 1111 1111 1112.
I ran 5000 4000 3000 2000 metres.
The commit is 3f786850e387550fdab836ed7e6dc881de23001b.
The id is 018f4c2e-7b1a-7c3d-9e5f-0123456789ab.
My IMEI is 490154203237518.
I moved from Oslo to Lisbon last month.
I'm allergic to shellfish.
My sister Mia lives in Rome.
I use sk-learn at work.
My handle is sk-some-long-kebab-case-name.
I like task-oriented-dialogue-systems.
I bake bread on Sundays.
We deploy on Fridays.
My flight is LH1234 at 18:45.
My licence plate is B-AB 1234.
The postcode is 10115.
My bank is in Berlin.
The wifi is slow.
I earn 4,200 euros a month.
The recipe needs 250 g of flour.
Visit https://example.org/a/b?c=d for more.
Mail me at ana@example.org.
ssh ana@host.example works
My card is blue.
My credit card is lost.
I paid by card, 41.10 euros.
I have 2 cats: Tom and Mia.
Basic auth is simple.
Er wohnt in München.
我住在上海。
""".splitlines()


@pytest.mark.parametrize(("said", "secret", "kind"), SECRETS)
def test_a_secret_is_masked_over_the_whole_token(said: str, secret: str, kind: str) -> None:
    masked, kinds = mask(said)
    assert secret not in masked
    assert f"[secret: {kind}]" in masked and kind in kinds
    assert masked.replace(f"[secret: {kind}]", "").strip() != masked.strip()
    for part in (secret[:8], secret[-8:]):
        assert part not in masked


@pytest.mark.parametrize("said", ORDINARY)
def test_an_ordinary_sentence_stays_as_it_is(said: str) -> None:
    assert mask(said) == (said, [])


def test_the_words_around_a_secret_stay() -> None:
    said = "My database password is correct-horse-9 and the key is sk-aaaaaaaaaaaaaaaaaaaaaaaa. Card 4111 1111 1111 1111. Bye."
    assert mask(said) == (
        "My database password is [secret: password] and the key is [secret: key]. Card [secret: card]. Bye.",
        ["password", "key", "card"],
    )
    assert kinds_in(mask(said)[0]) == ["password", "key", "card"]


def test_what_was_told_as_a_secret_is_masked_where_it_is_repeated() -> None:
    masked, kinds = mask(["My password is hunter2!", "Noted: hunter2.", "The hunters came."])
    assert masked == ["My password is [secret: password]!", "Noted: [secret: password].", "The hunters came."]
    assert kinds == ["password"]


def test_metadata_and_slots_named_after_a_secret_are_masked() -> None:
    masked, kinds = mask({"note": {"password": "sunshine", "tokens": 5}, "owner": "x"})
    assert masked == {"note": {"password": "[secret: password]", "tokens": 5}, "owner": "x"} and kinds == ["password"]
    said = Candidate(
        text="wifi", quote="q", message_id="sk-aaaaaaaaaaaaaaaaaaaaaaaa", attribute="wifi_password", value="sunshine"
    )
    safe, _ = mask(said)
    assert safe.value == "[secret: password]" and safe.message_id == said.message_id and safe.text == "wifi"


PIECES = (
    [said for said, _, _ in SECRETS]
    + ORDINARY
    + ["[secret: password]", '"', "password is ", "is", " ", "\n", ":", "ghp", "@"]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=6))
def test_masking_twice_changes_nothing(pieces: list[str]) -> None:
    once, _ = mask("".join(pieces))
    assert mask(once) == (once, [])


@pytest.mark.parametrize(
    "piece", ["I live in Lisbon and like tea. ", "see https://a.example/b:c ", "x", "4111 1", "sk-a-", "a\n"]
)
def test_long_texts_are_masked_in_seconds(piece: str) -> None:
    size = 5_000_000 if piece.startswith("I live") else 500_000
    started = time.process_time()
    mask(piece * (size // len(piece)))
    assert time.process_time() - started < 20
