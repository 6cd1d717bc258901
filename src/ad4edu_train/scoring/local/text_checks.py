"""Faithfulness and redundancy checks that need no model: F03 numbers, F04 quotations, F05 foreign terms, N02 copied runs."""

import re
from collections.abc import Iterator
from functools import lru_cache

from ad4edu_train.scoring.checks.phrases import Hit, whole
from ad4edu_train.scoring.local.figures import figures, values
from ad4edu_train.scoring.moment import ACTIONS, COLOURS, LAYOUT, Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import STOP, WORD, Sentence, Text, stem, words_of
from ad4edu_train.scoring.words import words

COUNTED = 10  # so many things can be counted by eye without a figure on the slide
COPIED = 6  # tokens of a copied run
READ_SHARE = 0.7  # of the content stems, both on the slide and in the speech
NEW_SHARE = 0.3  # of the content stems, absent from the speech
RARE = 3.0  # zipf frequency below which a word is a term
_APPROXIMATE = re.compile(
    r"\b(?:about|around|roughly|approximately|nearly|almost|just (?:over|under|above|below)|close to"
    r"|near|some)\s+$"
)
_LABELLED = re.compile(
    r"\b(?:epoch|step|year|page|chapter|section|figure|table|slide|question|number|equals|is|of|at"
    r"|level|version|phase|day|week|line|layer|in)\s+$"
)
_MEASURED = re.compile(
    r"\s*(?:%|percent|per cent|degrees?|times|units?|points?|[a-z]*(?:met(?:re|er)|gram|second|hertz"
    r"|volt|watt|byte|lit(?:re|er))s?)\b|\s*%"
)
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\"(])\b[A-Z][a-z]+[A-Za-z]*\b|\b[A-Za-z]*[a-z][A-Z][A-Za-z]*\b")
_POINTERS = words("cursor pointer mouse laser pen lecturer presenter professor instructor teacher speaker hand")

# Words for displays and their parts: knowing them is seeing, not lecturing.
DISPLAY = frozenset(
    map(
        stem,
        words("""
        scatterplot scatterplots scatter histogram histograms boxplot boxplots heatmap heatmaps barplot pie donut dendrogram
        flowchart flowcharts infographic screenshot thumbnail parabola hyperbola ellipse sinusoid sinusoidal sigmoid
        asymptote polygon hexagon pentagon octagon trapezoid rhombus cuboid cylinder cone sphere cube pyramid prism triangle
        rectangle sagittal coronal axial transverse dorsal ventral lateral medial anterior posterior superior inferior
        proximal distal cross-section longitudinal micrograph micrographs radiograph x-ray ultrasound axis axes x-axis
        y-axis gridline gridlines tick ticks legend subplot subplots inset caption subtitle bullet bullets bulleted
        arrowhead arrowheads bracket brackets brace braces dotted dashed shaded shading outlined outline outlines hatched
        striped gradient overlay overlays overlaid superimposed underlined underline underlines italic bold monospaced
        numerator denominator superscript subscript exponent matrix matrices diagonal diagonals quadrant quadrants ring
        rings node nodes edge edges subtree branch branches waveform spectrogram contour contours timeline timelines
        schematic silhouette portrait cutaway close-up zigzag spiral spirals crescent oval ovals speckled translucent
        semicircle arc arcs loop loops unlabelled unlabeled labelled labeled horizontally vertically diagonally clockwise
        counterclockwise anticlockwise upward downward leftmost rightmost topmost bottommost
        """),
    )
)


def f03(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    known = _context_values(moment)
    if not (moment.words or moment.gold):
        return
    found = list(figures(text.spoken))
    for figure in found:
        before, after = text.spoken[max(0, figure.start - 24) : figure.start], text.spoken[figure.end : figure.end + 16]
        if figure.value in known:
            continue
        measured = _MEASURED.match(after) is not None
        counts = figure.value <= COUNTED and figure.value == int(figure.value) and not measured
        if counts and (figure.in_words or not _LABELLED.search(before)):
            continue
        if moment.moment_type == "chart" and _APPROXIMATE.search(before):
            continue
        yield Hit(figure.start, figure.end, 1 / len(found))


@lru_cache(maxsize=256)
def _values_of(*texts: str) -> frozenset[float]:
    return frozenset().union(*map(values, texts))


def _context_values(moment: Moment) -> frozenset[float]:
    return _values_of(moment.transcript, moment.ocr, moment.on_screen, *moment.gold)


def f04(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    from rapidfuzz.fuzz import partial_ratio

    quotes = [quote for quote in text.quotes if words_of(quote)]
    if not quotes or not moment.ocr_words:
        return
    slide = " ".join(moment.ocr_words)
    for quote in quotes:
        folded = " ".join(words_of(quote))
        # A quotation longer than the slide cannot be a part of it.
        if len(folded) > len(slide) + 3 or partial_ratio(folded, slide) < 85:
            at = text.plain.index(f'"{quote}"')
            yield Hit(at, at + len(quote) + 2, 1 / len(quotes))


def f05(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    references = frozenset(stem(word) for one in moment.gold for word in words_of(one))
    known = moment.stems | references
    if not known:
        return
    names = {match.span() for match in _NAME.finditer(text.plain)}
    content, foreign = 0, []
    for start, end, word in zip(text.starts, text.ends, text.words, strict=True):
        if word in STOP or not word.isalpha():
            continue
        content += 1
        own = stem(word)
        if own in known or own in DISPLAY or own in LAYOUT or own in ACTIONS or own in COLOURS:
            continue
        if ((start, end) in names or (len(word) > 3 and _rare(word))) and not _like_context(own, known):
            foreign.append((start, end))
    for start, end in foreign:
        yield Hit(start, end, 1 / content)


@lru_cache(maxsize=65536)
def _rare(word: str) -> bool:
    from wordfreq import zipf_frequency

    # A rare inflection of a common word is no term ("enlarges").
    forms = (word, stem(word), stem(word) + "e", stem(word).removesuffix("i") + "y")
    return bool(max(zipf_frequency(form, "en") for form in forms) < RARE)


def _like_context(word: str, known: frozenset[str]) -> bool:
    from rapidfuzz import process
    from rapidfuzz.fuzz import ratio

    return process.extractOne(word, known, scorer=ratio, score_cutoff=90) is not None or any(
        len(one) >= 5 and word.startswith(one) for one in known
    )


def resolves(text: Text, sentence: Sentence, moment: Moment) -> bool:
    """Does the sentence say what the lecturer points at? What the speech holds as "this one" is then no repetition."""
    words = text.words[sentence.first : sentence.last]
    return moment.pointed_at and not _POINTERS.isdisjoint(words) and not moment.names.isdisjoint(map(stem, words))


def n02(text: Text, moment: Moment, scoring: Scoring) -> Iterator[Hit]:
    speech = moment.transcript_words
    if not speech:
        return
    yield from _copied(text, speech)
    stems = [
        stem(word)
        for sentence in text.sentences
        if not resolves(text, sentence, moment)
        for word in _words_in(text, sentence)
        if word not in STOP and stem(word) not in LAYOUT
    ]
    heard = frozenset(map(stem, speech))
    printed = frozenset(map(stem, moment.ocr_words))
    both = sum(one in heard and one in printed for one in stems)
    if both >= 2 and both >= READ_SHARE * len(stems):
        yield whole(text)


def _words_in(text: Text, sentence: Sentence) -> list[str]:
    return words_of(text.plain[sentence.start : sentence.end])


def _copied(text: Text, speech: list[str]) -> Iterator[Hit]:
    said = {tuple(speech[k : k + COPIED]) for k in range(len(speech) - COPIED + 1)}
    words = _word_spans(text)
    for k in range(len(words) - COPIED + 1):
        if tuple(word for word, _, _ in words[k : k + COPIED]) in said:
            yield Hit(words[k][1], words[k + COPIED - 1][2])
            return


def _word_spans(text: Text) -> list[tuple[str, int, int]]:

    return [(match.group(), *match.span()) for match in WORD.finditer(text.spoken)]


def adds_little(text: Text, moment: Moment) -> bool:
    """Are under 30 % of the content stems, less layout words, absent from the speech? The resolving sentence is left out."""
    heard = frozenset(map(stem, moment.transcript_words))
    kept = [sentence for sentence in text.sentences if not resolves(text, sentence, moment)]
    stems = [stem(word) for sentence in kept for word in _words_in(text, sentence) if word not in STOP]
    stems = [one for one in stems if one not in LAYOUT]
    return bool(stems) and sum(one not in heard for one in stems) < NEW_SHARE * len(stems)


TEXT_CHECKS = {"F03": f03, "F04": f04, "F05": f05, "N02": n02}
