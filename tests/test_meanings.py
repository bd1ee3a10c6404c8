"""Which words say the same, and which statement says nothing new."""

import pytest

from sharpwave.memory.meanings import synonyms, telling, unsaid
from sharpwave.memory.phrases import stems


@pytest.mark.parametrize(
    ("new", "known"),
    [
        ("Nokia is my employer", "I work for Nokia"),
        ("my apartment is in Bergen", "I live in a flat in Bergen"),
        ("my kid goes there", "my son goes there"),
        ("im alergic to nuts", "I am allergic to nuts"),
        ("sigo trabajando en Iberia", "trabajo en Iberia"),
        ("Finnair is my airline", "I always fly with Finnair"),
    ],
)
def test_other_words_for_what_is_known_say_nothing_new(new: str, known: str) -> None:
    assert not unsaid(stems(new), stems(known))


@pytest.mark.parametrize(
    ("new", "known", "left"),
    [
        ("my son lives in York", "my kid lives in York", "son"),
        ("I work in Leeds", "I live in Leeds", "work"),
        ("I take one sugar", "I take two sugars", "one"),
    ],
)
def test_a_narrower_word_another_verb_and_another_number_are_new(new: str, known: str, left: str) -> None:
    assert unsaid(stems(new), stems(known)) == stems(left)


def test_names_are_never_taken_for_slips_of_the_pen() -> None:
    assert unsaid(stems("Marta"), stems("Marla"), stems("Marta Marla")) == stems("Marta")
    assert not synonyms("marta", "marla")


def test_words_that_only_say_that_it_is_so_tell_nothing() -> None:
    assert not telling(stems("still the same as before"))
