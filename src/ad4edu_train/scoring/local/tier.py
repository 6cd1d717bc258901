"""The local tier: mechanical rules, text checks, and what the two models say of each sentence."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ad4edu_train.scoring.checks.phrases import Hit, whole
from ad4edu_train.scoring.local.models import ENCODER, NLI, Encoder, Inference, source
from ad4edu_train.scoring.local.text_checks import TEXT_CHECKS, adds_little, resolves
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.scorer import Charge, Score, assemble, declines, mechanical, unusable
from ad4edu_train.scoring.standard import Rule, Standard
from ad4edu_train.scoring.text import Sentence, Text, lower
from ad4edu_train.scoring.tiers import Rate

PREMISE_TOKENS = 350
WINDOW = 20  # words of speech without sentence marks that are compared as one
_SPEECH_END = re.compile(r"(?<=[.?!])\s+")


@dataclass(frozen=True, slots=True)
class _Item:
    text: Text
    moment: Moment
    charges: list[Charge]
    judged: bool  # do the models look at it


def local_rater(standard: Standard, *, nli_model: str | None = None, encoder: str | None = None) -> Rate:
    """Loads both models and returns the function that rates with them. Raises UserError for a model that cannot be used."""
    nli = Inference(source(nli_model or NLI, "--nli-model"))
    vectors = Encoder(source(encoder or ENCODER, "--encoder"))
    models = f"{nli.name}+{vectors.name}"

    def rate(ads: Sequence[str], moments: Sequence[Moment]) -> list[Score]:
        items = [_prepare(ad, moment, standard) for ad, moment in zip(ads, moments, strict=True)]
        rules = {rule.id: rule for rule in standard.of_tier("local")}
        if "F01" in rules:
            _support(items, rules["F01"], nli, standard)
        if "N01" in rules:
            _redundancy(items, rules["N01"], vectors, standard)
        return [assemble(item.text, item.moment, standard, "local", item.charges, models) for item in items]

    return rate


def _prepare(ad: str, moment: Moment, standard: Standard) -> _Item:
    text = Text(ad, moment.ocr_trigrams)
    charges = mechanical(text, moment, standard)
    judged = not unusable(text, standard) and not declines(ad)
    if judged:
        for rule in standard.of_tier("local"):
            check = TEXT_CHECKS.get(rule.id)
            if rule.tier == "local" and check and (moment.moment_type in rule.applies_to or moment.moment_type == "unknown"):
                charges += [(rule, hit) for hit in check(text, moment, standard.scoring)]
    return _Item(text, moment, charges, judged)


def premises(moment: Moment, nli: Inference) -> list[str]:
    """Pieces of what is known of a moment: screen, OCR and both together, references, speech."""
    together = f"{moment.on_screen} {moment.ocr}".strip()
    texts = dict.fromkeys((moment.on_screen, moment.ocr, together, *moment.gold, moment.transcript))
    return [piece for text in texts if text.strip() for piece in nli.chunks(text, PREMISE_TOKENS)]


def _support(items: list[_Item], rule: Rule, nli: Inference, standard: Standard) -> None:
    """F01: a sentence that a piece contradicts and none entails costs in full, one that is only not entailed costs half."""
    pairs: list[tuple[str, str]] = []
    spans: list[tuple[_Item, Sentence, slice]] = []
    pieces: dict[int, list[str]] = {}
    for item in items:
        known = pieces.setdefault(id(item.moment), premises(item.moment, nli)) if item.judged else []
        for sentence in item.text.sentences if known else ():
            begin = len(pairs)
            pairs += [(piece, _plain(item.text.raw[sentence.start : sentence.end])) for piece in known]
            spans.append((item, sentence, slice(begin, len(pairs))))
    distinct = list(dict.fromkeys(pairs))
    where = {pair: row for row, pair in enumerate(distinct)}
    values = nli.probabilities(distinct)
    for item, sentence, rows in spans:
        own = values[[where[pair] for pair in pairs[rows]]]
        entailed, contradicted = own.max(axis=0)
        if entailed >= standard.scoring.support_threshold:
            continue
        share = 1 / len(item.text.sentences)
        amount = share if contradicted >= standard.scoring.contradiction_threshold else share / 2
        item.charges.append((rule, Hit(sentence.start, sentence.end, amount)))


def _redundancy(items: list[_Item], rule: Rule, encoder: Encoder, standard: Standard) -> None:
    """N01: how close each sentence is to what the lecturer says, and whether the description adds anything."""
    low, high = standard.scoring.similarity_low, standard.scoring.similarity_high
    windows = {id(item.moment): speech_windows(item.moment.transcript) for item in items if item.judged}
    texts = dict.fromkeys(window for one in windows.values() for window in one)
    for item in items:
        texts |= dict.fromkeys(
            _plain(item.text.raw[one.start : one.end]) for one in (item.text.sentences if item.judged else ())
        )
    where = {text: row for row, text in enumerate(texts)}
    vectors = encoder.vectors(list(texts))
    for item in items:
        said = windows.get(id(item.moment)) if item.judged else None
        if not said:
            continue
        if adds_little(item.text, item.moment):
            item.charges.append((rule, whole(item.text)))
            continue
        speech = vectors[[where[window] for window in said]]
        for sentence in item.text.sentences:
            if resolves(item.text, sentence, item.moment):
                continue
            cosine = float(np.max(speech @ vectors[where[_plain(item.text.raw[sentence.start : sentence.end])]]))
            amount = min(1.0, max(0.0, (cosine - low) / max(high - low, 1e-9)))
            if amount > 0:
                item.charges.append((rule, Hit(sentence.start, sentence.end, amount / len(item.text.sentences))))


def speech_windows(transcript: str) -> list[str]:
    """Sentences of the speech; runs without marks are cut to windows of 20 words that overlap by half."""
    pieces = []
    for sentence in _SPEECH_END.split(transcript.strip()):
        words = sentence.split()
        if len(words) <= WINDOW:
            pieces += [sentence] if words else []
        else:
            pieces += [" ".join(words[k : k + WINDOW]) for k in range(0, len(words) - WINDOW // 2, WINDOW // 2)]
    return [lower(_plain(piece)) for piece in pieces]


def _plain(text: str) -> str:
    """Text that a tokenizer can take: no lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")
