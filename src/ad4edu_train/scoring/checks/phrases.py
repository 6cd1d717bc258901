"""What the checks are made of: hits, and patterns that are only tried where one of their trigger words stands."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import Text


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a rule is broken: a character span, the share of the rule's weight, and a severity where it is not the rule's own.

    phrase: false where the text as a whole breaks the rule, so that no words of it can be charged.
    """

    start: int
    end: int
    amount: float = 1.0
    severity: str | None = None
    phrase: bool = True


Check = Callable[[Text, Moment, Scoring], Iterable[Hit]]


class Phrase:
    """A pattern on the masked lower-case text. It can match only where one of `triggers` is among the words; none: always tried."""

    __slots__ = ("pattern", "triggers")

    def __init__(self, pattern: str, triggers: str = "", flags: int = 0) -> None:
        self.pattern = re.compile(pattern, flags)
        self.triggers = frozenset(triggers.split())

    def possible(self, text: Text) -> bool:
        return not self.triggers or not self.triggers.isdisjoint(text.vocabulary)

    def matches(self, text: Text) -> Iterator[re.Match[str]]:
        return self.pattern.finditer(text.masked) if self.possible(text) else iter(())

    def hits(self, text: Text) -> Iterator[Hit]:
        """A hit each match: its group `at` where it has one, else the whole match."""
        for match in self.matches(text):
            yield hit_of(match)


def all_hits(phrases: Iterable[Phrase], text: Text) -> Iterator[Hit]:
    """Hits of every phrase."""
    for phrase in phrases:
        if phrase.possible(text):
            yield from phrase.hits(text)


def hit_of(match: re.Match[str]) -> Hit:
    start, end = match.span("at") if "at" in match.re.groupindex and match["at"] is not None else match.span()
    while start < end and match.string[start] in ' "(,':
        start += 1
    return Hit(start, end)


def whole(text: Text, amount: float = 1.0, severity: str | None = None) -> Hit:
    """A hit that spans the text."""
    start = len(text.raw) - len(text.raw.lstrip())
    return Hit(start, max(start, len(text.raw.rstrip())), amount, severity, phrase=False)


def alternatives(words: str) -> str:
    """A group of closed words."""
    return "(?:" + "|".join(words.split()) + ")"


# Where a sentence or clause begins and ends in the masked text.
BEGIN = r"(?:^|(?<=[.!?:;]\s)|(?<=[.!?:;][\"')]\s))\s*[\"(]?"
CLAUSE_END = r"(?=\s*(?:[.,;:!?)]|$)|\s+(?:and|but|while|as|then|when|before|after|where|which|with)\b)"
PAGE = alternatives("slide screen image picture page figure board display diagram drawing photo photograph frame video")
ON_PAGE = rf"(?:\s+(?:on|in|of|at|across) (?:the |this )?(?:whole |same )?{PAGE})?"

AGENT = alternatives(
    "cursor pointer mouse lecturer presenter professor instructor teacher speaker pen stylus "
    "laser(?:\\s(?:dot|pointer|spot))? dot hand "
    "finger arrow highlight animation marker he she"
)
AGENTS = (
    "cursor pointer mouse lecturer presenter professor instructor teacher speaker pen stylus laser "
    "dot hand finger arrow highlight animation marker he she"
)
# Nouns that say that something is there, not what.
GENERIC = alternatives(
    "parts? things? items? objects? elements? bits? pieces? areas? regions? spots? sections? places? "
    "portions? segments? structures? shapes? "
    "points? lines? curves? boxe?s? circles? arrows? corners? sides? labels? entry entries values? "
    "numbers? components? details? ones? "
    "dots? blobs? bars? rectangles? squares? triangles? columns? rows? terms? symbols? thingy bullets? guys? stuff"
)
GENERICS = (
    "part parts thing things item items object objects element elements bit bits piece pieces area "
    "areas region regions spot spots section "
    "sections place places portion portions segment segments structure structures shape shapes point "
    "points line lines curve curves box "
    "boxes circle circles arrow arrows corner corners side sides label labels entry entries value "
    "values number numbers component "
    "components detail details one ones dot dots blob blobs bar bars rectangle rectangles square "
    "squares triangle triangles column columns "
    "row rows term terms symbol symbols thingy bullet bullets guy guys stuff"
)
SIZES = alternatives(
    "small little large big tiny long short new next last first second third fourth other main "
    "certain particular specific whole same different "
    "single upper lower top bottom left right middle central centre center inner outer labelled "
    "labeled unlabelled unlabeled numbered highlighted "
    "shaded coloured colored bold dotted dashed red green blue yellow orange purple violet pink "
    "brown black white grey gray two three four five "
    "several few important shown marked entire lonely thick thin end tall wide narrow"
)
