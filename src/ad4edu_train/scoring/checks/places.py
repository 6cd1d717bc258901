"""Deixis by look: D04 colour alone, D05 place alone."""

import re
from collections.abc import Iterable, Iterator

from ad4edu_train.scoring.checks.phrases import (
    AGENT,
    AGENTS,
    CLAUSE_END,
    GENERIC,
    GENERICS,
    PAGE,
    SIZES,
    Hit,
    Phrase,
    alternatives,
    hit_of,
)
from ad4edu_train.scoring.moment import COLOURS, LAYOUT, Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import MASK, STOP, Sentence, Text, stem

_COLOUR = alternatives(
    " ".join(sorted(COLOURS)) + " coloured colored reddish bluish greenish yellowish dark-blue light-blue maroon gold golden "
    "silver lime navy beige crimson"
)
_COLOUR_WORDS = (
    " ".join(sorted(COLOURS)) + " coloured colored reddish bluish greenish yellowish maroon gold golden silver lime navy beige "
    "crimson dark light"
)
_COLOUR_NAMES = re.compile(
    r"\b(?:red[- ]black trees?|black[- ]box(?:es)?|white[- ]box|white noise|pink noise|white matter"
    r"|gr[ae]y matter|red blood|white blood|red nucleus|black holes?|green fluorescent|blue[- ]green"
    r"|white dwarf|red giant|"
    r"green's|black body|blackbody|red shift|blue shift|brown fat|white fat|yellow fever|orange juice"
    r"|white paper|red queen|black-scholes|green house|purple bacteria|gr[ae]y area|blue light|red "
    r"light|black and white|traffic light)\b"
)
COLOURED = Phrase(
    rf"\b(?P<at>(?:(?:the|an?|this|that|these|those|one|two|three|some|other|its|bright|dark|light"
    rf"|pale)\s+){{0,3}}{_COLOUR}(?:\s+(?:{SIZES}|and {_COLOUR}))?\s+(?:{GENERIC}|arrow|area|highlight"
    rf"|section|circle|text|cell|cells|layer|zone|stripe|patch|marker|ring|band|spot|oval|ball|node"
    rf"|nodes|block|blocks|piece))\b(?!-)",
    _COLOUR_WORDS,
)
_COLOURED_ALONE = Phrase(
    rf"\b(?P<at>(?:everything|all|what(?:ever)?|anything|those|the (?:one|ones|part|parts)) (?:that is "
    rf"|that are |is |shown |drawn |marked )?in {_COLOUR})\b",
    _COLOUR_WORDS,
)
_NAMING = re.compile(
    rf"{MASK}|\b(?:labelled|labeled|named|called|titled|reading|reads|headed|marked (?!in\b|with\b"
    rf"|by\b)|captioned)\b"
)
_INDEFINITE = ("a ", "an ", "two ", "three ")
_NAMED_OBJECT = re.compile(
    r"\b(?:in|on|of|for|from|beside|inside|around|under|above|below|near|between|through|along|across"
    r"|over|behind|to|toward|towards|into|onto|at|past) (?:(?:the|an?|its|each|both"
    r"|either)\s+)?(?P<words>(?:[a-z-]+\s?){1,3})"
)

_SIDE = (
    r"(?:(?:far |upper |lower |top |bottom |very |extreme |left |right |middle |mid )*(?:left|right"
    r"|top|bottom|middle|centre|center|corner|edge|side|half|above|below|upper left|upper right|lower "
    r"left|lower right)(?:[- ]hand)?(?: (?:side|corner|edge|half|part|area|section|portion|hand side"
    r"|end))?)"
)
_OF_PAGE = rf"(?: of (?:the|this) (?:whole )?(?:{PAGE}|graph|chart|plot|table|box|frame|window|drawing))?"
PLACES = (
    Phrase(
        rf"\b(?P<at>(?:{SIZES}\s+)*{GENERIC}\s+(?:\w+\s+)?(?:on|at|in|to|toward|towards|near) the "
        rf"{_SIDE}{_OF_PAGE})\b(?!\s+(?:of|\w*(?:atri|ventric)\w*)\b)(?!-)",
        GENERICS,
    ),
    Phrase(
        rf"\b{AGENT}\s+(?P<at>(?:\w+ly\s+)?(?:points?|gestures?|moves?|goes|slides?|jumps?|sweeps?|waves?"
        rf"|hovers?|rests?|stops?|drifts?|circles?|returns?|travels?|shifts?|is|sits|lands|runs|stays"
        rf"|clicks|taps|heads|motions|turns|looks|walks|nods|pauses)\s+(?:\w+\s+)?"
        rf"(?:(?:to|toward|towards|at|on|in|over|across|near|around|along|into"
        rf"|onto)\s+)?(?:the\s+)?{_SIDE}{_OF_PAGE}){CLAUSE_END}",
        AGENTS,
    ),
    Phrase(
        r"\b(?P<at>(?:the|this|that) (?:\w+ )?(?:left|right|top|bottom|upper|lower|middle|centre"
        r"|center)(?:most)?(?: hand)? ones?)\b",
        "one ones",
    ),
    Phrase(
        rf"\b(?P<at>(?:next to|beside|above|below|under|behind|left of|right of|near|on top of) (?:it|them"
        rf"|this|that))(?={CLAUSE_END})",
        "it them this that",
    ),
    Phrase(
        rf"\b(?P<at>(?:the|an?|two|three|some|another) (?:{SIZES}\s+)?(?:upper|lower|top|bottom|left|right"
        rf"|leftmost|rightmost|middle)(?:[- ](?:left|right|hand))? {GENERIC}){CLAUSE_END}",
        GENERICS,
    ),
)
_GENERIC_STEMS = frozenset(stem(word) for word in GENERICS.split()) | {
    "upward",
    "downward",
    "left",
    "right",
    "leftward",
    "rightward",
}


def d04(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in (COLOURED, _COLOURED_ALONE):
        for match in phrase.matches(text):
            hit = hit_of(match)
            if any(one.start() < hit.end and hit.start < one.end() for one in _COLOUR_NAMES.finditer(text.masked)):
                continue
            sentence = text.sentence_at(hit.start)
            # A mark that is introduced and set in relation to something ("a red circle around m") is told, not pointed with.
            introduced = text.masked.startswith(_INDEFINITE, hit.start) and _related(text, sentence, hit)
            if not introduced and not _named_in(text, sentence, moment, hit):
                yield hit


def _related(text: Text, sentence: Sentence, hit: Hit) -> bool:
    """Does a preposition with an object that is no generic noun follow the phrase?"""
    objects = [match["words"].split() for match in _NAMED_OBJECT.finditer(text.masked, hit.end, sentence.end)]
    return any(_content(found) for found in objects)


def _content(found: Iterable[str]) -> set[str]:
    return {stem(word) for word in found if word not in STOP} - LAYOUT - COLOURS - _GENERIC_STEMS


def d05(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    for phrase in PLACES:
        for match in phrase.matches(text):
            hit = hit_of(match)
            if not _named_in(text, text.sentence_at(hit.start), moment, hit):
                yield hit


def _named_in(text: Text, sentence: Sentence, moment: Moment, hit: Hit) -> bool:
    """Does the sentence name a thing of the slide, quote a label, or set the phrase in relation to a named object?"""
    part = text.part(sentence)
    if _NAMING.search(part):
        return True
    words = text.words[sentence.first : sentence.last]
    if _content(words) & moment.names:
        return True
    # Without slide text no name can be checked; an object behind a preposition counts.
    return not moment.names and _related(text, sentence, hit)
