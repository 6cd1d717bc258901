"""Style, the delivery: S11 punctuation, S12 read-out, S13 early reveals, S14 what changed."""

import re
from collections.abc import Iterable, Iterator

from ad4edu_train.scoring.checks.phrases import Hit, Phrase, whole
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import STOP, Text, trigrams
from ad4edu_train.scoring.words import words

_ENDS = re.compile(r"[.?!][\"')\]]*$")
_SHOUT = re.compile(r"\b[A-Z]{4,}(?:\W{1,3}[A-Z]{4,}){2,}\b")
_MARKS = re.compile(r"[!?]|(?<!\.)\.{2,}|\u2026|,,|;;|--+")
_FACTORIAL = re.compile(r"(?:(?<![A-Za-z])[A-Za-z]|\d|[)\]])$")

GIVEAWAY = Phrase(
    r"\b(?P<at>(?:the )?(?:correct|right) (?:answer|option|choice|response|solution)(?: to "
    r"[^.;,]{1,60})? (?:is|turns out|here)\b|the answer(?: to [^.;,]{1,60})? (?:is|turns out to be)\b"
    r"|answers? [a-e] is (?:correct|right|true)|option [a-e] is (?:correct|right|true)|(?:is|as) the "
    r"(?:correct|right) "
    r"(?:answer|one|option|choice)|(?:spoiler|the hidden answer|the solution is|reveals? (?:that "
    r")?the answer)|(?:next|later|soon),? the slide reveals|(?:will be|about to be|soon to be|not yet"
    r"|still) (?:revealed|shown|hidden):? [^.;]{1,60}\b(?:is|reads)\b)",
    "correct right answer answers option spoiler hidden solution reveal reveals revealed shown later soon next",
)
CHANGE = words("""
        appear appears appeared appearing now new newly next change changes changed changing replace replaces replaced
        reveal reveals revealed revealing add adds added adding fade fades faded slide slides open opens opened become
        becomes turn turns disappear disappears vanish vanishes remove removes removed show shows shown follow follows
        followed begin begins start starts switch switches move moves moved expand expands enlarge enlarges grow grows zoom
        join joins joined fill fills build builds emerge emerges pop pops come comes give gives way flip flips advance
        advances return returns reappear reappears uncover uncovers uncovered cross crosses crossed drop drops enter enters
        light lights lit highlight highlights highlighted second third fourth another last final finally then after before
        earlier previous instead still remain remains stay stays animate animates draws drawn write writes written
        """)


def s11(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    end = len(text.plain.rstrip())
    if not _ENDS.search(text.plain[max(0, end - 8) : end]):
        yield Hit(max(0, end - 1), end)
    asks = "?" in moment.ocr
    for match in _MARKS.finditer(text.unquoted):
        mark = match.group()
        if mark == "!" and _FACTORIAL.search(text.unquoted[max(0, match.start() - 2) : match.start()]):
            continue
        if mark in "!?" and text.masked[match.end() : match.end() + 2].strip(" ")[:1].islower():
            continue  # within a sentence it belongs to a name or a title
        if mark == "?" and (asks or _titled(text, match.start())):
            continue
        if mark == "!" and "!" in moment.ocr and text.unquoted[match.end() : match.end() + 2].strip():
            continue
        yield Hit(*match.span())
    for match in _SHOUT.finditer(text.unquoted):
        yield Hit(*match.span())
    if text.all_words and _starts_small(text, moment):
        yield Hit(text.starts[0], text.ends[0])


def _titled(text: Text, position: int) -> bool:
    """A question that is introduced by a colon or by the words that name a title is the slide's own."""
    sentence = text.sentence_at(max(0, position - 1))
    before = text.masked[sentence.start : position]
    return (
        ":" in before
        or re.search(r"\b(?:title|titled|heading|headed|question|asks|asking|reads|labelled|labeled|prompt|caption)\b", before)
        is not None
    )


def _starts_small(text: Text, moment: Moment) -> bool:
    first = text.plain.lstrip(" \"'([").split(None, 1)
    if not first:
        return False
    word = first[0].rstrip(".,:;!?\"')")
    # mRNA, pH, k-means, fast.ai and a variable of one letter are written so.
    if len(word) <= 1 or not word.isalpha() or not word.islower():
        return False
    return word in STOP or word not in moment.ocr.split()


def s12(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if moment.moment_type in ("math", "table") or len(moment.ocr_words) < scoring.read_out_ocr_tokens:
        return
    words = text.unquoted_words
    if len(words) < 8:
        return
    grams = list(trigrams(words))
    read = [gram for gram in grams if gram in moment.ocr_trigrams]
    if len(read) >= scoring.read_out_share * len(grams):
        said = sum(gram in moment.transcript_trigrams for gram in read)
        heard = said >= scoring.read_out_share * len(read) or _all_heard(words, moment)
        yield whole(text, severity="critical" if heard else None)


def _all_heard(words: list[str], moment: Moment) -> bool:
    content = [word for word in words if word not in STOP]
    speech = frozenset(moment.transcript_words)
    return bool(content) and sum(word in speech for word in content) >= 0.8 * len(content)


def s13(text: Text, moment: Moment, scoring: Scoring) -> Iterable[Hit]:
    return GIVEAWAY.hits(text) if moment.asks else ()


def s14(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    if moment.moment_type in ("reveal", "transition") and CHANGE.isdisjoint(text.all_words):
        yield whole(text)
