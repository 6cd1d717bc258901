"""What is known of the lecture moment that a description belongs to."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ad4edu_train.data.prompt_fields import parse_prompt
from ad4edu_train.data.vocabulary import TYPES
from ad4edu_train.scoring.text import STOP, stem, trigrams, words_of
from ad4edu_train.scoring.words import words

AD_MODES = ("standard", "extended", "hybrid")
UNKNOWN_TYPE = "unknown"

# Words that name the page and its furniture, not what the lecture is about.
LAYOUT = frozenset(
    map(
        stem,
        words("""
        slide screen image picture page title titled heading headline caption text word label labelled labeled list listed
        bullet line row column box panel frame background foreground layout figure diagram drawing photo photograph
        illustration graphic visual video clip scene chart graph plot table map legend note footer header corner edge margin
        side top bottom left right centre center middle upper lower above below show shown display displayed appear read
        written print draw drawn mark point part area region section item entry element object thing piece portion segment
        unit bit spot place structure shape symbol detail content topic cursor pointer laser dot pen lecturer presenter
        professor speaker instructor teacher mouse hand highlight animation number numbered one three four five six seven
        eight nine ten several other another first second third next last new small large big
        """),
    )
)
# Of these, the words that are terms all the same where the slide prints them ("feature map", "word list").
PRINTED = frozenset(
    map(
        stem,
        words("""map word list unit structure content topic number symbol region area section column row table graph chart plot object element
    note panel frame label text item part scene animation unit title page column point mark display print photo"""),
    )
)
COLOURS = words("red green blue yellow orange purple violet pink brown black white grey gray cyan magenta turquoise teal")
# Verbs of display and movement in an on-screen description: they tell what happens to a thing and name none.
ACTIONS = frozenset(
    map(
        stem,
        words("""
        fall fell falls rise rises climb drop grow shrink touch touching rest rests run runs sit sits stand stands show lead
        leads lie lies move moves start end begin stop reach cross meet join joined connect connected follow turn keep stay
        carry hold give take come go set use used label labelled mark marked circle circled point bend bends enter enters
        leave leaves spread spreads open opens close closes overlap overlaps surround surrounds contain contains wind winds
        winding shine shines slope slopes level levels light lights split splits point points lean leans steadily slowly
        quickly equal equals
        """),
    )
)
_CUE = re.compile(
    r"\b(?:(?:this|that|these|those) (?:one|ones|guy|guys|thing|part|bit|region|area)|here|over there"
    r"|up there|down there|right there"
    r"|look at (?:this|that|these|those)|see (?:this|that|these|those)|this(?= (?:is|and|goes|follows"
    r"|comes|means))|i'?m pointing)\b"
)
_NUMBER = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(?:s|sec|secs|seconds?)?\s*$")


@dataclass(frozen=True)
class Moment:
    """Context of a description. Every field may be missing; what is missing makes rules not applicable, never an error.

    pause_s: seconds of speech pause. gold: reference descriptions. cursor: does the recording render a cursor; None where that
    is not known. ad_mode, speech_rate_wpm: None for the standard's own.
    """

    moment_type: str = UNKNOWN_TYPE
    transcript: str = ""
    ocr: str = ""
    on_screen: str = ""
    pause_s: float | None = None
    gold: tuple[str, ...] = ()
    cursor: bool | None = None
    ad_mode: str | None = None
    speech_rate_wpm: float | None = None

    @cached_property
    def ocr_words(self) -> list[str]:
        return words_of(self.ocr)

    @cached_property
    def ocr_trigrams(self) -> frozenset[tuple[str, str, str]]:
        return frozenset(trigrams(self.ocr_words))

    @cached_property
    def transcript_words(self) -> list[str]:
        return words_of(self.transcript)

    @cached_property
    def transcript_trigrams(self) -> frozenset[tuple[str, str, str]]:
        return frozenset(trigrams(self.transcript_words))

    @cached_property
    def on_screen_words(self) -> list[str]:
        return words_of(self.on_screen)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the transcript, the OCR and the on-screen description."""
        return frozenset(self.transcript_words) | frozenset(self.ocr_words) | frozenset(self.on_screen_words)

    @cached_property
    def spelled(self) -> str:
        """The same words in order, for forms that are spoken letter by letter: "the C R" holds " c r "."""
        return f" {' '.join((*self.transcript_words, *self.ocr_words, *self.on_screen_words))} "

    @cached_property
    def slide_stems(self) -> frozenset[str]:
        """Stems of what the slide prints and of what is said to be on screen."""
        return frozenset(map(stem, (*self.ocr_words, *self.on_screen_words)))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(map(stem, self.words))

    @cached_property
    def long_words(self) -> dict[str, list[str]]:
        """Context words of six letters and more, by how they begin (two letters) and end (three)."""
        buckets: dict[str, list[str]] = {}
        for word in sorted(self.words):
            if len(word) >= 6 and word.isalpha():
                for key in (word[:2], "-" + word[-3:]):
                    buckets.setdefault(key, []).append(word)
        return buckets

    @cached_property
    def slide_terms(self) -> frozenset[str]:
        """Stems of the slide's own words, less stop and layout words; of the speech where the slide has fewer than three."""
        found = self.ocr_terms | _terms(self.on_screen_words)
        return found if len(found) >= 3 else found | _terms(self.transcript_words)

    @cached_property
    def ocr_terms(self) -> frozenset[str]:
        """Stems of the words that the slide prints, less stop words and the furniture of the page."""
        return _terms(self.ocr_words) | (frozenset(map(stem, self.ocr_words)) & PRINTED)

    @cached_property
    def names(self) -> frozenset[str]:
        """Stems that name a thing on the slide: OCR labels, and what the on-screen description speaks of; no colours, no places."""
        described = {stem(word) for word in self.on_screen_words if word not in STOP and not word.isdigit()}
        # A thing of the drawing is a name too ("two curves"), furniture of the page is none ("a box").
        return (self.ocr_terms | (described - LAYOUT)) - ACTIONS - COLOURS

    @cached_property
    def asks(self) -> bool:
        """Does the lecturer ask the class something and leave it open in this stretch?"""
        speech = " ".join(self.transcript_words)
        return _QUIZ.search(speech) is not None and _ANSWERED.search(speech) is None

    @cached_property
    def pointed_at(self) -> bool:
        """Does the lecturer point, by the moment's type or by a cue in the speech?"""
        return self.moment_type == "pointing" or _CUE.search(" ".join(self.transcript_words)) is not None


_QUIZ = re.compile(
    r"\b(?:what do you think|any (?:guesses|ideas|takers)|can (?:you|anyone|anybody|someone) (?:guess"
    r"|tell)|who (?:can|knows|wants)|"
    r"take a (?:guess|moment|minute)|make a guess|have a guess|guess (?:what|which|how|why)|quiz|poll question|pop question|"
    r"which (?:one|of these|of the following|option)|think about (?:it|this)|raise your hand|vote"
    r"|before i (?:show|reveal|tell)|"
    r"i'?ll (?:show|reveal|give) (?:you )?(?:the answer|it)|don'?t (?:look|peek)|try (?:it|this) (?:out|yourself|on your own)|"
    r"work (?:it|this) out|what (?:would|will|comes|happens) (?:be|happen|next|then))\b"
)
_ANSWERED = re.compile(
    r"\b(?:the answer is|so it'?s|that'?s right|correct|exactly|the right answer|here is the answer"
    r"|answer:|i'?ll show you now)\b"
)


def moment_from(values: object) -> Moment:
    """A moment from the context of a JSON row; anything unusable in it counts as missing."""
    if not isinstance(values, Mapping):
        return Moment()
    kind = _text(values.get("moment_type")).strip().lower()
    cursor, mode, gold = values.get("cursor"), values.get("ad_mode"), values.get("gold")
    rate = seconds(values.get("speech_rate_wpm"))
    return Moment(
        moment_type=kind if kind in TYPES else UNKNOWN_TYPE,
        transcript=_text(values.get("transcript")),
        ocr=_text(values.get("ocr")),
        on_screen=_text(values.get("on_screen")),
        pause_s=seconds(values.get("pause_s")),
        gold=tuple(_text(one) for one in gold) if isinstance(gold, Sequence) and not isinstance(gold, str) else (),
        cursor=cursor if isinstance(cursor, bool) else None,
        ad_mode=mode if isinstance(mode, str) and mode in AD_MODES else None,
        speech_rate_wpm=rate if rate is not None and 60 <= rate <= 400 else None,
    )


@lru_cache(maxsize=64)
def moment_of_prompt(prompt: str, gold: tuple[str, ...] = (), cursor: bool | None = None, ad_mode: str | None = None) -> Moment:
    """The moment of a text prompt (five labelled fields). The sides of a moment's pairs share it, and what is derived from it."""
    fields_ = parse_prompt(prompt)
    kind = (fields_.moment_type or "").strip().lower()
    return Moment(
        moment_type=kind if kind in TYPES else UNKNOWN_TYPE,
        transcript=fields_.transcript or "",
        ocr=fields_.ocr or "",
        on_screen=fields_.on_screen or "",
        pause_s=seconds(fields_.pause),
        gold=gold,
        cursor=cursor,
        ad_mode=ad_mode,
    )


def seconds(value: Any) -> float | None:
    """Seconds >= 0 from a number or from text such as "8.0 s"; None for anything else (true, NaN, infinity, negative)."""
    if isinstance(value, str):
        found = _NUMBER.match(value[:40])
        value = float(found.group(1)) if found else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _terms(words: list[str]) -> frozenset[str]:
    stems = (stem(word) for word in words if word not in STOP and not word.isdigit() and len(word) > 1)
    return frozenset(one for one in stems if one not in LAYOUT)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
