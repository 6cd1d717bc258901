"""The fact graph of a slide: what is drawn, what is marked, and what of it transcript, OCR and description carry."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ad4edu_train.demo.topics import Topic

KINDS = ("rel", "val", "pos", "col")
COLOURS = ("orange", "blue", "green", "purple", "red", "teal", "brown", "grey")
GRID = ("upper left", "upper centre", "upper right", "lower left", "lower centre", "lower right")
ROWS = ("first row", "second row", "third row", "fourth row")
BARS = ("far left", "inner left", "inner right", "far right")
POSITIONS = {"diagram": GRID, "flow": GRID, "list": ROWS, "table": ROWS, "equation": ROWS, "chart": BARS}

LAYOUTS = {
    "pointing": ("diagram", "flow", "list", "table", "chart", "equation"),
    "slide": ("list", "table", "diagram"),
    "figure": ("diagram", "flow"),
    "reveal": ("list", "flow"),
    "animation": ("flow", "diagram"),
    "ink": ("diagram", "equation", "list"),
    "math": ("equation",),
    "table": ("table",),
    "chart": ("chart",),
    "transition": ("list", "diagram"),
}

# What singles out the focus at a moment of each type; recordings without a cursor point with a laser dot.
MARKERS = {
    "pointing": ("the cursor", "a laser dot"),
    "slide": ("bold type",),
    "figure": ("a black arrow",),
    "reveal": ("a newly shown line",),
    "animation": ("a moving outline",),
    "ink": ("a pen circle",),
    "math": ("a drawn frame",),
    "table": ("yellow shading",),
    "chart": ("a thick border",),
    "transition": ("a new heading bar",),
}

BORROWED = 0.3  # share of false facts that are true of another entity of the slide

# A caption in quotes on some slides. It gives descriptions that quote the slide a legitimate "we", "this" or "thing".
CAPTIONS = (
    "we see what we name",
    "this one comes first",
    "the thing to know",
    "here we begin",
    "my favourite part",
    "look at this bit",
)

COURSES = ("Course notes, spring term", "Faculty lecture series", "Lecture notes, part two", "Open course material")
GOALS = (
    "Goal: be able to explain each entry",
    "Goal: compare the entries shown",
    "Please revise before the seminar",
    "Reading: chapter in the course book",
)


@dataclass(frozen=True)
class Item:
    """A drawn entity."""

    name: str
    relation: str
    target: str
    value: str
    position: str
    colour: str


@dataclass(frozen=True)
class Fact:
    """One thing that can be said of an entity; `value` is the number, position, colour or `relation target`."""

    kind: str
    entity: str
    value: str


@dataclass(frozen=True)
class Slide:
    """said / ocr / described are the subsets of `facts` that the transcript, the OCR and the on-screen description carry."""

    topic: Topic
    moment_type: str
    layout: str
    items: tuple[Item, ...]
    hidden: Item
    focus: int
    marker: str
    caption: str | None
    edges: tuple[str, ...]  # course line, goal and page count, as printed around the content
    pause_s: float
    facts: tuple[Fact, ...]
    said: frozenset[Fact]
    ocr: frozenset[Fact]
    described: frozenset[Fact]

    @property
    def focus_name(self) -> str:
        return self.items[self.focus].name

    def new_facts(self) -> list[Fact]:
        """Facts that the prompt's screen fields carry and the lecturer does not say."""
        return [fact for fact in self.facts if fact in self.ocr | self.described and fact not in self.said]

    def said_facts(self) -> list[Fact]:
        return [fact for fact in self.facts if fact in self.said]


def _facts(item: Item) -> tuple[Fact, ...]:
    relation = f"{item.relation} {item.target}"
    values = (relation, item.value, item.position, item.colour)
    return tuple(Fact(kind, item.name, value) for kind, value in zip(KINDS, values, strict=True))


def build_slide(topic: Topic, moment_type: str, renders_cursor: bool, rng: Random) -> Slide:
    """A slide on four of the topic's five terms; every kind of fact is as likely to be said, printed or described as any other.

    The fifth term stays hidden: it is what a wrong description may invent.
    """
    layout = rng.choice(LAYOUTS[moment_type])
    terms = rng.sample(topic.terms, 5)
    numbers = rng.sample(range(topic.low, topic.high + 1), min(5, topic.high - topic.low + 1))
    numbers += [topic.high + 1 + i for i in range(5 - len(numbers))]
    places = rng.sample(POSITIONS[layout], 4)
    places.append(rng.choice(places))
    colours = rng.sample(COLOURS, 5)
    drawn = [
        Item(term.name, term.relation, term.target, str(number), place, colour)
        for term, number, place, colour in zip(terms, numbers, places, colours, strict=True)
    ]
    items = tuple(sorted(drawn[:4], key=lambda item: POSITIONS[layout].index(item.position)))
    facts = tuple(fact for item in items for fact in _facts(item))
    focus = rng.randrange(4)
    said = frozenset(rng.sample(facts, rng.randint(4, 6)))
    shown = [fact for fact in facts if rng.random() < 0.8]
    ocr, described = set(), set()
    for fact in shown:
        # Only print can be read by OCR; a description can tell any of it.
        printed = fact.kind in ("rel", "val") and rng.random() < 0.75
        if printed:
            ocr.add(fact)
        if not printed or rng.random() < 0.2:
            described.add(fact)
    markers = MARKERS[moment_type]
    marker = markers[0] if renders_cursor or len(markers) == 1 else markers[1]
    caption = rng.choice(CAPTIONS) if rng.random() < 0.35 else None
    pause_s = round(rng.uniform(3.0, 5.5) if rng.random() < 0.12 else rng.uniform(6.5, 13.0), 1)
    return Slide(
        topic=topic,
        moment_type=moment_type,
        layout=layout,
        items=items,
        hidden=drawn[4],
        focus=focus,
        marker=marker,
        caption=caption,
        edges=(rng.choice(COURSES), rng.choice(GOALS), f"page {rng.randint(2, 60)} of {rng.randint(61, 90)}"),
        pause_s=pause_s,
        facts=facts,
        said=said,
        ocr=frozenset(ocr),
        described=frozenset(described),
    )


def corrupted(fact: Fact, slide: Slide, rng: Random) -> Fact:
    """A fact of the same kind and entity that the slide contradicts.

    Some borrow from another entity of the slide, so that their words do occur in the prompt.
    """
    true = {f for f in slide.facts if f.entity == fact.entity}
    on_slide = [f.value for f in slide.facts if f.kind == fact.kind and f.entity != fact.entity]
    off_slide = _invented(fact, slide, rng)
    options: Sequence[str] = on_slide if rng.random() < BORROWED or not off_slide else off_slide
    wrong = [value for value in options if Fact(fact.kind, fact.entity, value) not in true] or off_slide
    return Fact(fact.kind, fact.entity, rng.choice(wrong))


def _invented(fact: Fact, slide: Slide, rng: Random) -> list[str]:
    on_slide = {f.value for f in slide.facts if f.kind == fact.kind}
    hidden = slide.hidden
    if fact.kind == "rel":
        return [f"{hidden.relation} {hidden.target}"]
    if fact.kind == "val":
        low, high = slide.topic.low, slide.topic.high
        return [str(number) for _ in range(8) if str(number := rng.randint(low, high + 9)) not in on_slide] or [str(high + 17)]
    pool: Sequence[str] = COLOURS if fact.kind == "col" else POSITIONS[slide.layout]
    return [value for value in pool if value not in on_slide]
