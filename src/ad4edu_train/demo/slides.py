"""Draws a slide as 640 x 360 pixels: its title, its facts in one of six layouts, and what marks the focus."""

import io
import math
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from ad4edu_train.demo.facts import BARS, GRID, ROWS, Item, Slide
from ad4edu_train.demo.phrasing import capital

WIDTH, HEIGHT = 640, 360
JPEG_QUALITY = 82
INK, PALE = (25, 25, 35), (120, 120, 130)
RGB = {
    "orange": (240, 140, 30),
    "blue": (40, 95, 215),
    "green": (40, 150, 70),
    "purple": (130, 65, 170),
    "red": (205, 45, 45),
    "teal": (20, 150, 155),
    "brown": (130, 85, 45),
    "grey": (130, 130, 130),
}
TITLE_BARS = {"Anatomy": (84, 32, 40), "Biology": (28, 72, 48), "Machine learning": (28, 44, 92)}
Box = tuple[float, float, float, float]


@cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size=size)


def _wrap(text: str, size: int, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _font(size).getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _text(draw: Any, box: Box, text: str, size: int, ink: tuple[int, int, int] = INK, bold: bool = False) -> float:
    """Draws wrapped text from the box's top left corner; returns the y below it."""
    y = box[1]
    for line in _wrap(text, size, box[2] - box[0]):
        draw.text((box[0], y), line, font=_font(size), fill=ink, stroke_width=0.6 if bold else 0, stroke_fill=ink)
        y += size + 3
    return y


def _boxes(slide: Slide) -> list[Box]:
    """Where each item is drawn, from its position in words."""
    boxes: list[Box] = []
    for item in slide.items:
        if item.position in GRID:
            row, column = divmod(GRID.index(item.position), 3)
            x, y = 18 + 208 * column, 62 + 136 * row
            boxes.append((x, y, x + 188, y + 112))
        elif item.position in ROWS:
            y = 92 + 58 * ROWS.index(item.position)
            boxes.append((24, y, 616, y + 50))
        else:
            x = 24 + 150 * BARS.index(item.position)
            boxes.append((x, 66, x + 142, 320))
    return boxes


def _draw_item(draw: Any, slide: Slide, item: Item, box: Box, bold: bool) -> None:
    x0, y0, x1, y1 = box
    colour, number, note = RGB[item.colour], f"{item.value} {slide.topic.unit}", f"{item.relation} {item.target}"
    if slide.layout in ("diagram", "flow"):
        draw.rounded_rectangle(box, 10 if slide.layout == "flow" else 26, outline=colour, width=3)
        draw.rectangle((x0 + 12, y0 + 10, x0 + 24, y0 + 22), fill=colour)
        y = _text(draw, (x0 + 30, y0 + 8, x1 - 6, y1), item.name, 15, bold=bold)
        y = _text(draw, (x0 + 12, y + 4, x1 - 8, y1), note, 12)
        _text(draw, (x0 + 12, y + 4, x1 - 8, y1), number, 14, colour)
    elif slide.layout == "chart":
        values = [float(other.value) for other in slide.items]
        top = 226 - 130 * float(item.value) / max(values)
        draw.rectangle((x0 + 38, top, x0 + 98, 226), fill=colour)
        _text(draw, (x0 + 38, top - 20, x1, top), number, 14)
        y = _text(draw, (x0 + 4, 232, x1 - 2, 300), item.name, 14, bold=bold)
        _text(draw, (x0 + 4, y + 2, x1 - 2, 322), note, 11, PALE)
    elif slide.layout == "table":
        draw.rectangle(box, outline=(180, 180, 185))
        draw.rectangle((x0 + 8, y0 + 18, x0 + 22, y0 + 32), fill=colour)
        _text(draw, (x0 + 32, y0 + 8, x0 + 210, y1), item.name, 15, bold=bold)
        _text(draw, (x0 + 220, y0 + 8, x0 + 450, y1), note, 13)
        _text(draw, (x0 + 470, y0 + 15, x1, y1), number, 15)
    elif slide.layout == "equation":
        draw.text((x0 + 10, y0 + 12), f"{item.name}  =  {note}", font=_font(17), fill=colour, stroke_width=0.6 if bold else 0)
        _text(draw, (x0 + 480, y0 + 12, x1, y1), number, 17)
    else:
        draw.ellipse((x0 + 6, y0 + 8, x0 + 22, y0 + 24), fill=colour)
        _text(draw, (x0 + 34, y0 + 4, x0 + 470, y1), item.name, 18, bold=bold)
        _text(draw, (x0 + 34, y0 + 28, x0 + 470, y1), note, 13, PALE)
        _text(draw, (x0 + 490, y0 + 10, x1, y1), number, 16)


def _background(draw: Any, slide: Slide, boxes: list[Box]) -> None:
    draw.rectangle((0, 0, WIDTH, 44), fill=TITLE_BARS.get(slide.topic.subject, (58, 58, 66)))
    draw.text((18, 10), slide.topic.title, font=_font(21), fill="white")
    course, goal, page = slide.edges
    footer = f"{capital(slide.topic.quantity)} ({slide.topic.unit})   |   {goal}   |   {page}"
    draw.text((18, HEIGHT - 16), footer, font=_font(10), fill=PALE)
    draw.text((622, 16), course, font=_font(11), fill=(220, 220, 225), anchor="ra")
    if slide.caption:
        draw.text((622, HEIGHT - 20), f'"{slide.caption}"', font=_font(13), fill=INK, anchor="ra")
    centres = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in boxes]
    if slide.layout == "diagram":
        for centre in centres:
            draw.line((WIDTH / 2, 190, *centre), fill=(190, 190, 195), width=2)
        draw.ellipse((WIDTH / 2 - 16, 174, WIDTH / 2 + 16, 206), fill="white", outline=(150, 150, 155), width=2)
    elif slide.layout == "flow":
        for (ax, ay), (bx, by) in pairwise(centres):
            draw.line((ax, ay, bx, by), fill=(110, 110, 120), width=3)
            middle, turn = ((ax + bx) / 2, (ay + by) / 2), math.atan2(by - ay, bx - ax)
            tips = [(middle[0] + 9 * math.cos(turn + d), middle[1] + 9 * math.sin(turn + d)) for d in (0, 2.4, -2.4)]
            draw.polygon(tips, fill=(110, 110, 120))
    elif slide.layout == "chart":
        draw.line((20, 226, 620, 226), fill=INK, width=2)
        draw.line((20, 70, 20, 226), fill=INK, width=2)
    elif slide.layout == "table":
        draw.rectangle((24, 62, 616, 90), fill=(70, 70, 80))
        for x, heading in ((56, "Term"), (244, "Note"), (494, capital(slide.topic.quantity)[:16])):
            draw.text((x, 68), heading, font=_font(13), fill="white")


def _mark(draw: Any, slide: Slide, box: Box, rng: Random) -> None:
    """What singles out the focus, over the drawn item."""
    x0, y0, x1, y1 = box
    x, y = x0 + (0.35 if x1 - x0 > 300 else 0.62) * (x1 - x0), y0 + 0.55 * (y1 - y0)
    if slide.layout == "chart":
        y = 252
    if slide.marker == "the cursor":
        shape = [(0, 0), (0, 19), (5, 15), (9, 23), (12, 21), (8, 13), (14, 13)]
        draw.polygon([(x + dx, y + dy) for dx, dy in shape], fill="white", outline="black")
    elif slide.marker == "a laser dot":
        draw.ellipse((x - 9, y - 9, x + 9, y + 9), outline=(255, 150, 150), width=4)
        draw.ellipse((x - 5, y - 5, x + 5, y + 5), fill=(255, 0, 0))
    elif slide.marker == "a black arrow":
        draw.line((x + 46, y + 34, x + 6, y + 6), fill="black", width=5)
        draw.polygon([(x, y), (x + 16, y + 4), (x + 4, y + 16)], fill="black")
    elif slide.marker == "a pen circle":
        wobble = [rng.uniform(0.94, 1.06) for _ in range(24)]
        points = [
            (
                (x0 + x1) / 2 + (x1 - x0) / 2 * wobble[i % 24] * math.cos(math.tau * i / 24),
                (y0 + y1) / 2 + (y1 - y0) / 1.9 * wobble[i % 24] * math.sin(math.tau * i / 24),
            )
            for i in range(26)
        ]
        draw.line(points, fill=(215, 20, 60), width=4, joint="curve")
    elif slide.marker == "a moving outline":
        for shift, shade in ((8, 200), (4, 140), (0, 20)):
            draw.rectangle(
                (x0 - 4 + shift, y0 - 4 - shift, x1 + 4 + shift, y1 + 4 - shift), outline=(shade, shade, shade), width=2
            )
    elif slide.marker in ("a drawn frame", "a thick border"):
        draw.rectangle((x0 - 2, y0 - 2, x1 + 2, y1 + 2), outline=INK, width=2 if slide.marker == "a drawn frame" else 5)
    elif slide.marker == "a new heading bar":
        draw.rectangle((x0, y0 - 7, x1, y0 - 1), fill=TITLE_BARS.get(slide.topic.subject, (58, 58, 66)))


def draw_slide(slide: Slide, frame: int, n_frames: int, seed: str) -> Image.Image:
    """Keyframe `frame` of `n_frames`; only the last one shows the mark, and a revealed line only exists there."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    boxes, last = _boxes(slide), frame == n_frames - 1
    _background(draw, slide, boxes)
    for i, (item, box) in enumerate(zip(slide.items, boxes, strict=True)):
        focused = i == slide.focus and last
        if slide.marker == "a newly shown line" and i == slide.focus and not last:
            continue
        if focused and slide.marker == "yellow shading":
            draw.rectangle(box, fill=(255, 240, 130))
        if slide.layout in ("diagram", "flow"):
            draw.rounded_rectangle(box, 10 if slide.layout == "flow" else 26, fill="white")
        _draw_item(draw, slide, item, box, bold=focused and slide.marker == "bold type")
        if focused and slide.marker == "a newly shown line":
            draw.line((box[0], box[3] + 2, box[2], box[3] + 2), fill=(225, 120, 0), width=4)
    if last:
        _mark(draw, slide, boxes[slide.focus], Random(f"ink/{seed}"))
    return image


def jpeg(image: Image.Image) -> bytes:
    """The image as JPEG bytes of fixed quality."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()
