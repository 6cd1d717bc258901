"""Renders a slide as the text prompt of its moment: speech with deixis, noisy OCR, a partial description, the pause."""

from random import Random

from ad4edu_train.demo.facts import Fact, Slide
from ad4edu_train.demo.phrasing import capital, fact_slots, fill, phrases

OCR_CONFUSIONS = (("rn", "m"), ("l", "1"), ("O", "0"), ("cl", "d"), ("i", "l"), ("e", "c"), ("h", "b"), ("vv", "w"))
OCR_ERROR_RATE = 0.04
MISSED_FOCUS_RATE = 0.08


def transcript(slide: Slide, rng: Random) -> str:
    """What the lecturer says: the said facts, the focus mostly as "this one here", and chatter."""
    bank = phrases()["context"]
    lines = []
    for fact in slide.said_facts():
        shows = fact.entity == slide.focus_name and rng.random() < 0.5
        slots = fact_slots(fact, slide)
        slots["ref"] = rng.choice(bank["deictic"]) if shows else fact.entity
        lines.append(fill(rng.choice(bank["said"][fact.kind]), **slots) + ".")
    lines += rng.sample(bank["fillers"], rng.randint(9, 12))
    rng.shuffle(lines)
    return " ".join([rng.choice(bank["openers"]).format(title=slide.topic.title.lower()), *lines])


def ocr_noise(text: str, rng: Random) -> str:
    """Text as an OCR engine might return it: a few confused letters, lost spaces and lost words. Numbers mostly survive."""
    words: list[str] = []
    for word in text.split(" "):
        chance = rng.random()
        if chance < OCR_ERROR_RATE and not word.isdigit():
            seen, read = rng.choice(OCR_CONFUSIONS)
            word = word.replace(seen, read, 1)
        elif chance < 1.25 * OCR_ERROR_RATE:
            continue
        glue = words and rng.random() < 0.01
        words[-1:] = [words[-1] + word] if glue else [*words[-1:], word]
    return " ".join(words)


def screen_text(slide: Slide, rng: Random) -> str:
    """OCR of the slide: title, labels and the printed facts, blocks out of order now and then."""
    blocks = [slide.topic.title]
    for item in slide.items:
        line = item.name
        if Fact("rel", item.name, f"{item.relation} {item.target}") in slide.ocr:
            line += f" {item.relation} {item.target}"
        if Fact("val", item.name, item.value) in slide.ocr:
            line += f" {item.value} {slide.topic.unit}"
        blocks.append(line)
    blocks.append(capital(slide.topic.quantity) + f" ({slide.topic.unit})")
    if slide.caption:
        blocks.append(f'"{slide.caption}"')
    blocks += slide.edges
    for _ in range(2):
        if rng.random() < 0.4:
            i, j = rng.sample(range(len(blocks)), 2)
            blocks[i], blocks[j] = blocks[j], blocks[i]
    return rng.choice(("\n", " | ", "  ")).join(ocr_noise(block, rng) for block in blocks)


def description(slide: Slide, rng: Random) -> str:
    """What a captioner says is on screen: the layout, usually the marked item, and the described facts in loose order."""
    bank = phrases()["context"]
    lines = [bank["layouts"][slide.layout]]
    for fact in slide.facts:
        if fact in slide.described:
            lines.append(fill(rng.choice(bank["described"][fact.kind]), **fact_slots(fact, slide)))
    tail = lines[1:]
    if rng.random() >= MISSED_FOCUS_RATE:
        marked = fill(rng.choice(bank["described"]["focus"]), e=slide.focus_name, mark=slide.marker)
        tail.insert(rng.randint(0, len(tail)), marked)
    tail.append(rng.choice(bank["surroundings"]))
    return " ".join([lines[0], *tail])


def prompt(slide: Slide, rng: Random) -> str:
    """The five fields of the data contract, in its order."""
    return "\n".join(
        (
            f"Moment type: {slide.moment_type}",
            f"Lecturer said: {transcript(slide, rng)}",
            f"On-screen text (OCR): {screen_text(slide, rng)}",
            f"What is on screen: {description(slide, rng)}",
            f"Pause available: {slide.pause_s:.1f} s",
        )
    )
