"""What sounds like a change or an end of what is known, and is none: everything that was known stays as it is."""

from collections.abc import Iterator

import pytest
from talking import say

from sharpwave.graphs import build_agent
from sharpwave.memory import MemoryStore
from sharpwave.memory.embed import LocalEmbeddings

PAIRS = [
    ("I have two kids", "I dropped the kids at school"),
    ("I play the violin", "I dropped the violin off at the luthier"),
    ("I have a dog called Rex", "Rex is off his food"),
    ("I work at the hospital", "I'm off work today"),
    ("I work at Delta", "the office is closed until Monday"),
    ("I take the bus to work", "the bus was cancelled again"),
    ("I love pizza", "no more pizza for me tonight, I'm stuffed"),
    ("I play chess with Omar on Fridays", "Omar can't make it this Friday"),
    ("I drink coffee every morning", "I've had to switch the coffee machine off"),
    ("My sister lives in Oslo", "my sister moved the sofa to the garage"),
    ("I live in Leeds", "we've moved the piano into the hall"),
    ("I drive a Volvo", "the Volvo is back from the garage"),
    ("I have a bike", "I took the bike off the rack"),
    ("My flight is at 7pm", "the gate has changed to B12"),
    ("I'm vegetarian", "I cooked chicken for the kids these days when they visit"),
    ("I run every morning", "I ran out of milk"),
    ("My phone is a Pixel", "my phone died on the train"),
    ("My laptop is a ThinkPad", "the laptop is dead, battery I think"),
    ("I have a garden", "the roses are finally out"),
    ("I'm learning Spanish", "I finished the first Spanish book"),
    ("I live with my mum", "my mum's friend passed away"),
    ("I go to the gym three times a week", "the gym is down to one treadmill, annoying"),
    ("I have a cat", "the neighbour's cat died"),
    ("My boss is Karin", "Karin has gone to lunch"),
    ("I'm allergic to nuts", "no more nuts in the cupboard"),
    ("I teach maths", "I've set the maths homework to 20 questions"),
    ("I use Postgres at work", "the Postgres server is down"),
    ("My daughter goes to ballet", "ballet is off this week"),
    ("My car is red", "the car is at 40,000 miles now"),
    ("I live in a flat in Porto", "the flat is at 26 degrees, help"),
    ("I play in a band", "the band broke up a song into two parts"),
    ("I read the Guardian", "I've stopped reading for tonight"),
    ("My rent is 900 euros", "the bill came back to 90 euros"),
    ("I have three meetings on Monday", "Monday's first meeting has moved to 10"),
    ("I like hiking", "we gave up on the hike at noon"),
    ("My son plays football", "my son's football boots got stolen"),
    ("I have a piano lesson on Tuesdays", "my teacher is ill so Tuesday's lesson is off"),
    ("I grew up in Kent", "we left Kent at six this morning"),
    ("My wife is a vet", "my wife has left for work"),
    ("I have a daughter called Mia", "Mia has stopped crying at last"),
    ("I work as a chef", "I quit smoking in the kitchen"),
    ("I play tennis on Mondays", "the tennis court got flooded"),
    ("My brother is a pilot", "my brother's flight was cancelled"),
    ("I own a flat in Bristol", "I closed the flat door behind me"),
    ("I have a parrot", "the parrot got out of its cage and I caught it"),
    ("I'm married to Tom", "Tom passed his exam"),
    ("My mother lives in Cardiff", "my mother moved her bed to the window"),
    ("I use a hearing aid", "the hearing aid battery died"),
    ("I drive to work", "I sold two raffle tickets at work"),
    ("I have a season ticket for Arsenal", "Arsenal dropped two points"),
    ("My team has nine people", "the meeting is down to 20 minutes"),
    ("I take vitamin D", "I've packed the vitamins in the suitcase"),
    ("My favourite colour is green", "the kitchen is green now"),
    ("My dog is called Bella", "Bella is over the moon about the new park"),
    ("I live on the third floor", "the lift moved to the third floor by itself"),
    ("I study law", "the law library is closed now"),
    ("I have a twin brother", "my twin brother's car got stolen"),
    ("I sing in a choir", "the choir has finished the first song"),
    ("I go swimming on Saturdays", "the pool is closed this Saturday"),
    ("I have a mortgage with Lloyds", "Lloyds took over another bank"),
    ("My husband is from Spain", "my husband is back in Spain for a week"),
    ("I have a cello", "I put the cello back in its case"),
    ("I'm afraid of spiders", "the spider has gone"),
    ("I work from home", "I've been home since noon"),
    ("My dentist is Dr Patel", "Dr Patel's nurse retired"),
    ("I speak French", "we switched to French at dinner"),
    ("I buy bread at Miller's", "Miller's is out of bread"),
    ("I am on a diet", "the diet coke is finished"),
    ("My office is in Leith", "we moved the printer over to the window"),
    ("I'm a member of the rowing club", "the rowing club bought a new boat"),
    ("My grandma is 90", "grandma's clock stopped"),
    ("I take the 7:40 train", "the 7:40 was cancelled today"),
    ("I like sushi", "no more sushi left in the shop"),
    ("I have a son called Leo", "Leo broke up a fight at school"),
    ("I live in York", "we switched trains in York"),
    ("My wife is called Nina", "Nina is down to the last chapter"),
    ("I work for the council", "the council cancelled bin day"),
    ("I play guitar", "one guitar string has gone"),
    ("I'm training for a marathon", "the training video has finished"),
    ("I have a flat in Rome", "we left the flat at nine"),
    ("My uncle is a baker", "my uncle's oven died"),
    ("I take my coffee black", "the coffee is over there"),
    ("I'm allergic to cats", "no more cats on the sofa please"),
    ("My daughter is at university", "my daughter is back for the weekend"),
    ("I love Paris", "we moved the Paris trip photos to the cloud"),
    ("I use Slack at work", "Slack is down again"),
    ("I am a teacher", "the teacher from upstairs retired"),
    ("I have two cats", "the cats have stopped meowing"),
    ("I wear size 42", "I turned 42 pages last night"),
    ("My birthday is on 3 May", "the party's down to 12 guests"),
    ("I have a cleaner, Rosa", "Rosa has finished the kitchen"),
    ("I go to church on Sundays", "the church clock is stopped"),
    ("I drink tea in the morning", "this tea is off"),
    ("My landlord is Mr Bell", "Mr Bell has gone upstairs"),
    ("I have a blue Honda", "I put the Honda back in the garage"),
    ("My dad is a farmer", "my dad cancelled our dinner tonight"),
    ("I'm reading Dune", "I put Dune down for a minute"),
    ("I have a piano", "the piano has been moved to the wall"),
    ("My kids are called Tim and Ada", "Tim dropped his ice cream"),
    ("I do the school run", "I ended up in the wrong lane on the school run"),
    ("I support Leeds United", "Leeds lost the match"),
    ("I'm on nights this year", "the night bus is off tonight"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path_factory.mktemp("home"), embeddings=LocalEmbeddings(), collections=1) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(("known", "said"), PAIRS)
def test_what_is_known_stays(known: str, said: str, store: MemoryStore) -> None:
    who = f"{known} / {said}"
    store.add(who, known)
    say(build_agent(memory=store).compile(), said, who=who)
    assert known in [memory.text for memory in store.memories(who)]
