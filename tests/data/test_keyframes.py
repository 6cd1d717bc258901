"""Keyframes: which file a path means, and that its pixels come out as they were meant. Files are built byte by byte here."""

import io
import os
import pickle
import random
import re
import shutil
import struct
import subprocess
import unicodedata
import warnings
import zlib
from itertools import chain

import pytest
from PIL import Image, ImageOps

from ad4edu_train.data.keyframes import KeyframeError, Keyframes, refuse_outside
from ad4edu_train.data.rows import RowError, chat_prompt
from ad4edu_train.errors import DataError

NAME = "keyframes/L1/f01.jpg"
EXIF_HEAD = b"Exif\0\0"


def keyframes(root, content=None, name=NAME):
    if content is not None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return Keyframes(root)


def pixels(image):
    """Rows of RGB tuples."""
    assert image.mode == "RGB"
    return [[image.getpixel((x, y)) for x in range(image.width)] for y in range(image.height)]


def greys(image):
    found = pixels(image)
    assert all(r == g == b for row in found for r, g, b in row)
    return [[r for r, _, _ in row] for row in found]


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, depth, colour, *rows, before=(), after=(), height=None):
    """PNG specification: colour 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height or len(rows), depth, colour, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return b"".join([b"\x89PNG\r\n\x1a\n", head, *before, body, *after, chunk(b"IEND", b"")])


def tiff(order, width, height, bits, photometric, data, samples=1, sample_format=1, extra=()):
    """TIFF 6.0: one strip, no compression. `extra` holds more entries (tag, value)."""
    end = {"II": "<", "MM": ">"}[order]
    data += b"\0" * (len(data) % 2)
    entries = [(256, width), (257, height), (259, 1), (262, photometric), (277, samples), (278, height), (339, sample_format)]
    entries += [(273, 8), (279, len(data)), *extra]
    if samples == 1:
        entries.append((258, bits))
    else:  # as many shorts as there are samples; two fit into the entry itself
        assert samples == 2
    table = [(tag, struct.pack(end + "HHI", tag, 4, 1) + struct.pack(end + "I", value)) for tag, value in entries]
    if samples == 2:
        table.append((258, struct.pack(end + "HHIHH", 258, 3, 2, bits, bits)))
    listing = struct.pack(end + "H", len(table)) + b"".join(entry for _, entry in sorted(table)) + struct.pack(end + "I", 0)
    return order.encode() + struct.pack(end + "HI", 42, 8 + len(data)) + data + listing


def exif(orientation):
    return struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 0x0112, 3, 1, orientation, 0)


def on_white(level, alpha):
    return (2 * (level * alpha + 255 * (255 - alpha)) + 255) // 510


# ---- which file a name means


def test_datasets_7733_the_working_directory_never_decides_which_keyframe_is_read(tmp_path, monkeypatch):
    (tmp_path / "data/kf").mkdir(parents=True)
    elsewhere = tmp_path / "scratch/run7"
    right, older = (encoded(Image.new("RGB", (16, 16), c), "PNG") for c in ((0, 200, 0), (200, 0, 0)))
    elsewhere.mkdir(parents=True)
    keyframes(elsewhere, older)
    keyframes(tmp_path / "data/kf", right)
    monkeypatch.chdir(tmp_path / "data")
    relative = Keyframes("kf")
    monkeypatch.chdir(elsewhere)
    for frames in (relative, Keyframes(tmp_path / "data/kf")):
        assert frames.path(NAME) == tmp_path / "data/kf" / NAME
        assert frames.read(NAME).getpixel((0, 0)) == (0, 200, 0)
    (tmp_path / "data/kf" / NAME).unlink()
    with pytest.raises(KeyframeError, match="is missing"):
        relative.read(NAME)
    with pytest.raises(DataError, match="1 of 1 keyframes cannot be used"):
        relative.check([NAME])


OUTSIDE = [
    "",
    "..",
    "../secret.png",
    "keyframes/../../secret.png",
    "keyframes/..",
    "/etc/hostname",
    "//server/share/f.jpg",
    "keyframes\\L1\\f01.jpg",
    "..\\secret.png",
    "C:/frames/f.jpg",
    "C:f.jpg",
    "file:///etc/hostname",
    "http://127.0.0.1:9/f.jpg",
    "https://127.0.0.1/f.jpg",
    "data:image/png;base64,iVBORw0KGgo=",
    "keyframes/a\0b.jpg",
    "~/f.jpg",
    "~root/f.jpg",
    "keyframes/" + "a" * 256,
    "keyframes/" + "ä" * 128,
    "a/" * 600,
    "keyframes/\ud800.jpg",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_leave_the_folder_are_refused_before_the_disk_is_asked(tmp_path, name):
    root = tmp_path / "kf"
    root.mkdir()
    (tmp_path / "secret.png").write_bytes(encoded(Image.new("RGB", (2, 2)), "PNG"))
    assert refuse_outside(name)
    frames = Keyframes(root)
    for ask in (frames.path, frames.size, frames.read):
        with pytest.raises(KeyframeError) as caught:
            ask(name)
        assert len(str(caught.value)) < 600
        assert str(caught.value).isprintable()
    message = {"role": "user", "content": [{"type": "image", "image": name}]}
    with pytest.raises(RowError, match="keyframe path"):
        chat_prompt({"prompt_id": "p", "moment_id": "m", "lecture": "l", "type": None, "messages": [message]})


@pytest.mark.parametrize(
    "name", [NAME, "./" + NAME, "keyframes//L1/f01.jpg", "a..b/..c.jpg", "a~b.jpg", "%2e%2e/f.jpg", "a b.jpg"]
)
def test_plain_names_are_let_through(tmp_path, name):
    assert refuse_outside(name) is None
    assert keyframes(tmp_path, encoded(Image.new("RGB", (3, 2)), "PNG"), name).size(name) == (3, 2)


def test_links_may_lead_about_the_folder_but_not_out_of_it(tmp_path):
    root = tmp_path / "kf"
    image = encoded(Image.new("RGB", (3, 2)), "PNG")
    root.mkdir()
    frames = keyframes(root, image)
    (tmp_path / "kf2").mkdir()
    (tmp_path / "kf2/f.png").write_bytes(image)
    (root / "inside.jpg").symlink_to(root / NAME)
    (root / "out.jpg").symlink_to("../kf2/f.png")  # a sibling whose path begins with the same letters
    (root / "folder").symlink_to(tmp_path / "kf2")
    (root / "loop.jpg").symlink_to("loop.jpg")
    (root / "dangling.jpg").symlink_to("nothing.jpg")
    assert frames.size("inside.jpg") == (3, 2)
    for name, reason in {
        "out.jpg": "leads out of",
        "folder/f.png": "leads out of",
        "loop.jpg": "leads back to itself",
        "dangling.jpg": "is missing",
    }.items():
        with pytest.raises(KeyframeError, match=reason):
            frames.read(name)
    link = tmp_path / "link"
    link.symlink_to(root)
    assert Keyframes(link).size(NAME) == (3, 2)


def test_links_of_the_hub_cache_lead_to_the_blobs_of_the_same_repository_only(tmp_path):
    ours, other = tmp_path / "datasets--o--frames", tmp_path / "datasets--o--other"
    for repository in (ours, other):
        (repository / "blobs").mkdir(parents=True)
        (repository / "blobs/aa").write_bytes(encoded(Image.new("RGB", (3, 2)), "PNG"))
        (repository / "refs").mkdir()
        (repository / "refs/main").write_text("rev")
    folder = ours / "snapshots/rev/keyframes/L1"
    folder.mkdir(parents=True)
    (folder / "f.jpg").symlink_to("../../../../blobs/aa")
    (folder / "ref.jpg").symlink_to("../../../../refs/main")
    (folder / "other.jpg").symlink_to(other / "blobs/aa")
    frames = Keyframes(ours / "snapshots/rev")
    assert frames.size("keyframes/L1/f.jpg") == frames.read("keyframes/L1/f.jpg").size == (3, 2)
    for name in ("ref.jpg", "other.jpg"):
        with pytest.raises(KeyframeError, match="leads out of"):
            frames.read(f"keyframes/L1/{name}")
    with pytest.raises(KeyframeError, match="leads out of"):  # blobs belong to a snapshot, not to any folder in it
        Keyframes(ours / "snapshots/rev/keyframes").read("L1/f.jpg")


@pytest.mark.parametrize("on_disk", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_accents_are_found_composed_and_decomposed(tmp_path, on_disk, asked):
    name = "keyframes/Größe é 講義 한/f.jpg"
    frames = keyframes(tmp_path, encoded(Image.new("RGB", (3, 2)), "PNG"), unicodedata.normalize(on_disk, name))
    asked = unicodedata.normalize(asked, name)
    assert frames.check([asked]) == {asked: (3, 2)}


def test_of_two_spellings_the_exact_one_is_read(tmp_path):
    for form, size in (("NFC", (3, 2)), ("NFD", (5, 4))):
        keyframes(tmp_path, encoded(Image.new("RGB", size), "PNG"), unicodedata.normalize(form, "é.jpg"))
    assert Keyframes(tmp_path).size(unicodedata.normalize("NFC", "é.jpg")) == (3, 2)
    assert Keyframes(tmp_path).size(unicodedata.normalize("NFD", "é.jpg")) == (5, 4)


def test_a_root_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "nothing", tmp_path / "file", tmp_path / "file/below", f"{tmp_path}/a\0b"):
        with pytest.raises(DataError):
            Keyframes(root)


# ---- files that are no images


def test_files_without_an_image_are_refused_by_name_and_reason(tmp_path):
    frames = keyframes(tmp_path)
    whole = encoded(Image.effect_noise((64, 64), 80), "JPEG")
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234\n"
    for name, content, reason in (
        ("empty.jpg", b"", r"is empty \(0 bytes\)"),
        ("pointer.jpg", pointer, "git lfs pull"),
        ("page.jpg", b"<!DOCTYPE html><title>404</title>", "is no JPEG, PNG, WEBP, BMP, TIFF, GIF image"),
        ("cut.jpg", whole[: len(whole) // 2], "is truncated"),
        ("cut.png", encoded(Image.effect_noise((64, 64), 80), "PNG")[:900], "is truncated"),
    ):
        keyframes(tmp_path, content, name)
        with pytest.raises(KeyframeError, match=reason) as caught:
            frames.read(name)
        assert name in str(caught.value)
    (tmp_path / "folder.jpg").mkdir()
    with pytest.raises(KeyframeError, match="is a folder"):
        frames.read("folder.jpg")
    with pytest.raises(KeyframeError, match="is missing"):
        frames.read("empty.jpg/f.jpg")


def test_a_pipe_does_not_hold_up_the_run(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(KeyframeError, match="a pipe or a device"):
        Keyframes(tmp_path).read("pipe.jpg")


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    frames = keyframes(tmp_path, b"x")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ad4edu_train.data.keyframes.os.open", refuse)  # root may read whatever its mode is
    with pytest.raises(KeyframeError, match="may not be read"):
        frames.read(NAME)


@pytest.mark.parametrize(
    "content",
    [
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n",
        b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>",
        b"P6 1 1 255\nabc",
        encoded(Image.new("RGB", (16, 16)), "ICO"),
        encoded(Image.new("RGB", (16, 16)), "TGA"),
    ],
)
def test_other_formats_are_not_tried_and_start_no_program(tmp_path, monkeypatch, content):
    def started(*arguments, **_):
        raise AssertionError(arguments)

    for name in ("Popen", "run", "call", "check_call", "check_output"):
        monkeypatch.setattr(subprocess, name, started)
    monkeypatch.setattr(os, "system", started)
    with pytest.raises(KeyframeError, match="is no JPEG"):
        keyframes(tmp_path, content).read(NAME)


def bmp_header(width, height):
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("side", [8001, 9500, 14000, 60000])
@pytest.mark.parametrize("kind", ["png", "bmp", "gif", "tiff"])
def test_a_decompression_bomb_is_refused_from_its_header_without_a_warning(tmp_path, kind, side):
    """8001^2 is over our limit alone; Pillow warns from 9459^2 on and refuses from 13377^2 on."""
    content = {
        "png": png(side, 8, 0, b"\0", height=side),
        "bmp": bmp_header(side, side),
        "gif": b"GIF89a"
        + struct.pack("<HHBBB", side, side, 0, 0, 0)
        + b"\x2c"
        + struct.pack("<HHHHB", 0, 0, 1, 1, 0)
        + b"\x02",
        "tiff": tiff("II", side, side, 8, 1, b"\0"),
    }[kind]
    frames = keyframes(tmp_path, content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (frames.size, frames.read):
            with pytest.raises(KeyframeError, match="64,000,000"):
                ask(NAME)


def test_an_image_at_the_pixel_limit_is_let_through(tmp_path):
    assert keyframes(tmp_path, bmp_header(8000, 8000)).size(NAME) == (8000, 8000)


def samples_of_all_formats():
    noise = Image.frombytes("RGB", (24, 20), random.Random(1).randbytes(24 * 20 * 3))
    return {
        "jpeg": encoded(noise, "JPEG", exif=EXIF_HEAD + exif(6)),
        "png": encoded(noise, "PNG"),
        "webp": encoded(noise, "WEBP"),
        "bmp": encoded(noise, "BMP"),
        "tiff": encoded(noise, "TIFF"),
        "deflated tiff": encoded(noise, "TIFF", compression="tiff_deflate"),
        "gif": encoded(noise, "GIF", save_all=True, append_images=[ImageOps.invert(noise)]),
    }


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "bmp", "tiff", "deflated tiff", "gif"])
def test_damaged_files_give_rgb_or_a_plain_error_and_print_nothing(tmp_path, capfd, kind):
    whole = samples_of_all_formats()[kind]
    chance, refused = random.Random(0), []
    frames = keyframes(tmp_path, whole)
    assert frames.read(NAME).mode == "RGB"
    for trial in range(150):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            damaged[chance.randrange(min(len(damaged), chance.choice((64, 100000))))] = chance.randrange(256)
        if trial % 3 == 0:
            damaged = damaged[: chance.randrange(1, len(damaged))]
        (tmp_path / NAME).write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                image = frames.read(NAME)
            except KeyframeError as error:
                refused.append(str(error))
            else:
                assert image.mode == "RGB"
                assert image.size == frames.size(NAME)
    assert refused
    assert all(NAME in text for text in refused)
    printed = capfd.readouterr()
    assert printed.out == ""
    # libtiff writes a line of its own for damaged compressed data, from C.
    assert printed.err == "" or kind == "deflated tiff"


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "bmp", "tiff", "deflated tiff", "gif"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_truncated_file_of_any_format_is_refused(tmp_path, kind, part):
    whole = samples_of_all_formats()[kind]
    if kind == "gif":
        whole = encoded(Image.effect_noise((24, 20), 90), "GIF")
    with pytest.raises(KeyframeError):
        keyframes(tmp_path, whole[: int(len(whole) * part)]).read(NAME)


# ---- pixels

# Where the stored rows and columns begin in the image as it is to be seen (Exif 2.3, table 4: orientation).
SIDES = {
    1: ("top", "left"),
    2: ("top", "right"),
    3: ("bottom", "right"),
    4: ("bottom", "left"),
    5: ("left", "top"),
    6: ("right", "top"),
    7: ("right", "bottom"),
    8: ("left", "bottom"),
}


def upright(stored, orientation):
    """Rows of the image as it is to be seen, from the rows of the file and the definition."""
    height, width = len(stored), len(stored[0])
    seen = {}
    for r in range(height):
        for c in range(width):
            place = {}
            for side, index, last in ((SIDES[orientation][0], r, height - 1), (SIDES[orientation][1], c, width - 1)):
                axis = "y" if side in ("top", "bottom") else "x"
                place[axis] = index if side in ("top", "left") else last - index
            seen[place["y"], place["x"]] = stored[r][c]
    return [[seen[y, x] for x in range(1 + max(x for _, x in seen))] for y in range(1 + max(y for y, _ in seen))]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "late PNG", "16-bit PNG", "WEBP", "TIFF", "16-bit TIFF"])
def test_exif_orientation_is_applied_once(tmp_path, kind, orientation):
    stored = [[0, 50, 100], [150, 200, 250]]
    rows = [bytes(row) for row in stored]
    wide = [[level * 257 for level in row] for row in stored]
    image = Image.frombytes("L", (3, 2), b"".join(rows))
    tag = chunk(b"eXIf", exif(orientation))
    if kind == "JPEG":  # one block of 8 x 8 pixels for each level, so that the levels survive
        content = encoded(
            image.resize((24, 16), Image.Resampling.NEAREST), "JPEG", quality=100, exif=EXIF_HEAD + exif(orientation)
        )
    else:
        content = {
            "PNG": lambda: png(3, 8, 0, *rows, before=[tag]),
            "late PNG": lambda: png(3, 8, 0, *rows, after=[tag]),
            "16-bit PNG": lambda: png(3, 16, 0, *(struct.pack(">3H", *row) for row in wide), before=[tag]),
            "WEBP": lambda: encoded(image.convert("RGB"), "WEBP", lossless=True, exif=EXIF_HEAD + exif(orientation)),
            "TIFF": lambda: tiff("MM", 3, 2, 8, 1, b"".join(rows), extra=[(0x0112, orientation)]),
            "16-bit TIFF": lambda: tiff(
                "II", 3, 2, 16, 1, b"".join(struct.pack("<3H", *row) for row in wide), extra=[(0x0112, orientation)]
            ),
        }[kind]()
    frames = keyframes(tmp_path, content)
    if kind == "late PNG" and orientation >= 5:
        with pytest.raises(KeyframeError, match="sideways by EXIF data behind its pixels"):
            frames.read(NAME)
        return
    read = frames.read(NAME)
    assert frames.size(NAME) == read.size
    assert not read.getexif()
    assert pixels(ImageOps.exif_transpose(read)) == pixels(read)
    found = greys(read)
    if kind == "JPEG":
        found = [row[4::8] for row in found[4::8]]
        expected = upright(stored, orientation)
        assert [len(row) for row in found] == [len(row) for row in expected]
        assert max(abs(a - b) for a, b in zip(chain(*found), chain(*expected), strict=True)) <= 1
    else:
        assert found == upright(stored, orientation)


def test_an_orientation_out_of_range_is_none(tmp_path):
    for value in (0, 9, 255):
        content = png(3, 8, 0, b"\1\2\3", before=[chunk(b"eXIf", exif(value))])
        assert greys(keyframes(tmp_path, content).read(NAME)) == [[1, 2, 3]]


def test_the_size_is_read_from_the_header_of_a_file_whose_pixels_are_cut_off(tmp_path):
    for kind, options in (("JPEG", {"exif": EXIF_HEAD + exif(8)}), ("PNG", {}), ("WEBP", {}), ("BMP", {}), ("GIF", {})):
        whole = encoded(Image.effect_noise((160, 90), 80), kind, **options)
        frames = keyframes(tmp_path, whole if kind == "WEBP" else whole[: len(whole) * 3 // 4])
        assert frames.size(NAME) == ((90, 160) if kind == "JPEG" else (160, 90))


@pytest.mark.parametrize("alpha", [0, 1, 77, 128, 254, 255])
def test_alpha_is_laid_on_white(tmp_path, alpha):
    rgb, grey = (200, 30, 7), 90
    seen, seen_grey = tuple(on_white(c, alpha) for c in rgb), on_white(grey, alpha)
    palette = chunk(b"PLTE", bytes([9, 9, 9, *rgb]))
    for content, expected in (
        (png(1, 8, 6, bytes([*rgb, alpha])), seen),
        (png(1, 8, 4, bytes([grey, alpha])), (seen_grey,) * 3),
        (png(1, 16, 6, struct.pack(">4H", *(257 * c for c in (*rgb, alpha)))), seen),
        (png(1, 16, 4, struct.pack(">2H", 257 * grey, 257 * alpha)), (seen_grey,) * 3),
        (png(1, 8, 3, b"\1", before=[palette, chunk(b"tRNS", bytes([3, alpha]))]), seen),
        (encoded(Image.new("RGBA", (1, 1), (*rgb, alpha)), "WEBP", lossless=True, exact=True), seen),
        (encoded(Image.new("RGBA", (1, 1), (*rgb, alpha)), "TIFF"), seen),
        (tiff("II", 1, 1, 8, 1, bytes([grey, alpha]), samples=2, extra=[(338, 2)]), (seen_grey,) * 3),
    ):
        assert pixels(keyframes(tmp_path, content).read(NAME)) == [[expected]]


def test_palette_with_alpha_band_is_laid_on_white(tmp_path):
    """TIFF mode PA: a colour map of three times 256 16-bit levels, and an alpha sample."""
    data = bytes([1, 100])
    colours = [0] * 768
    colours[1], colours[257], colours[513] = 200 << 8, 30 << 8, 7 << 8
    base = tiff("II", 1, 1, 8, 3, data, samples=2, extra=[(338, 2), (320, 0)])
    entry = struct.pack("<HHII", 320, 4, 1, 0)
    assert base.count(entry) == 1
    content = base.replace(entry, struct.pack("<HHII", 320, 3, 768, len(base))) + struct.pack("<768H", *colours)
    assert pixels(keyframes(tmp_path, content).read(NAME)) == [[tuple(on_white(c, 100) for c in (200, 30, 7))]]


@pytest.mark.parametrize(("level", "alpha"), [(0, 0), (50, 100), (100, 100), (1, 2), (128, 255), (0, 200)])
def test_premultiplied_alpha_is_laid_on_white(tmp_path, level, alpha):
    """Over white a premultiplied level c stands for c + 255 - alpha; dividing by alpha in 8 bits may cost half a level."""
    content = tiff("II", 1, 1, 8, 1, bytes([level, alpha]), samples=2, extra=[(338, 1)])
    assert greys(keyframes(tmp_path, content).read(NAME))[0][0] == pytest.approx(level + 255 - alpha, abs=1)


def test_premultiplied_colours_are_laid_on_white(tmp_path):
    """(100, 50, 0) at alpha 128, stored as (50, 25, 0): the fourth sample of the TIFF is declared associated alpha."""
    straight = encoded(Image.new("RGBA", (1, 1), (50, 25, 0, 128)), "TIFF")
    entry = struct.pack("<HHIHH", 338, 3, 1, 2, 0)
    assert straight.count(entry) == 1
    content = straight.replace(entry, struct.pack("<HHIHH", 338, 3, 1, 1, 0))
    seen = pixels(keyframes(tmp_path, content).read(NAME))[0][0]
    assert max(abs(a - b) for a, b in zip(seen, (50 + 127, 25 + 127, 127), strict=True)) <= 1


TRANSPARENT_LEVELS = [
    (1, bytes([0b01000000]), 1, [0, 255]),
    (2, bytes([0b00011011]), 1, [0, 255, 170, 255]),
    (4, bytes([0x3F, 0x40]), 3, [255, 255, 68]),
    (8, bytes([63, 128]), 63, [255, 128]),
    (16, struct.pack(">3H", 0x1234, 0x1235, 0x8080), 0x1234, [255, 18, 128]),
]


@pytest.mark.parametrize(("depth", "row", "clear", "expected"), TRANSPARENT_LEVELS)
def test_the_transparent_level_of_a_grey_png_is_white(tmp_path, depth, row, clear, expected):
    content = png(len(expected), depth, 0, row, before=[chunk(b"tRNS", struct.pack(">H", clear))])
    assert greys(keyframes(tmp_path, content).read(NAME)) == [expected]


@pytest.mark.parametrize(("depth", "form", "scale", "low"), [(8, ">3B", 1, 0), (16, ">3H", 256, 0x7F)])
def test_the_transparent_colour_of_an_rgb_png_is_white(tmp_path, depth, form, scale, low):
    row = b"".join(struct.pack(form, *(scale * c + low for c in colour)) for colour in ((1, 2, 3), (4, 5, 6)))
    content = png(2, depth, 2, row, before=[chunk(b"tRNS", struct.pack(">3H", *(scale * c + low for c in (1, 2, 3))))])
    assert pixels(keyframes(tmp_path, content).read(NAME)) == [[(255, 255, 255), (4, 5, 6)]]


def test_16_bit_levels_are_scaled_and_rounded_in_every_kind_of_file(tmp_path):
    levels = [0, 128, 129, 256, 257, 32768, 65407, 65535]
    exact = [round(level * 255 / 65535) for level in levels]
    assert exact == [0, 0, 1, 1, 1, 128, 255, 255]
    little, big = struct.pack("<8H", *levels), struct.pack(">8H", *levels)
    for content in (
        png(8, 16, 0, big),
        tiff("II", 8, 1, 16, 1, little),
        tiff("MM", 8, 1, 16, 1, big),
        tiff("II", 8, 1, 32, 1, struct.pack("<8I", *levels)),
        tiff("MM", 8, 1, 32, 1, struct.pack(">8i", *levels), sample_format=2),
        encoded(Image.frombytes("I;16", (8, 1), little), "TIFF", compression="tiff_deflate"),
    ):
        assert greys(keyframes(tmp_path, content).read(NAME)) == [exact]
    inverted = tiff("II", 8, 1, 16, 0, little)
    assert greys(keyframes(tmp_path, inverted).read(NAME)) == [[255 - level for level in exact]]


def test_12_bit_levels_are_scaled(tmp_path):
    assert greys(keyframes(tmp_path, tiff("II", 2, 1, 12, 1, bytes([0xFF, 0xF8, 0x00]))).read(NAME)) == [[255, 128]]


@pytest.mark.parametrize("levels", [(0, 65536), (-1, 5)])
def test_levels_beyond_16_bits_are_refused(tmp_path, levels):
    content = tiff("II", 2, 1, 32, 1, struct.pack("<2i", *levels), sample_format=2)
    with pytest.raises(KeyframeError, match=f"{NAME}.* holds grey levels from {levels[0]} to {levels[1]}, beyond 0 .. 65535"):
        keyframes(tmp_path, content).read(NAME)


@pytest.mark.parametrize("mode", ["F", "LAB"])
def test_floating_point_and_exotic_colours_are_refused_by_name(tmp_path, mode):
    reason = {"F": "floating-point", "LAB": "LAB colours"}[mode]
    with pytest.raises(KeyframeError, match=f"{NAME}.* holds {reason}"):
        keyframes(tmp_path, encoded(Image.new(mode, (2, 2)), "TIFF")).read(NAME)


def test_one_bit_palette_and_white_is_zero_images_are_right(tmp_path):
    assert greys(keyframes(tmp_path, png(3, 1, 0, bytes([0b01000000]))).read(NAME)) == [[0, 255, 0]]
    assert greys(keyframes(tmp_path, tiff("II", 3, 1, 1, 0, bytes([0b01000000]))).read(NAME)) == [[255, 0, 255]]
    assert greys(keyframes(tmp_path, tiff("II", 2, 1, 8, 0, bytes([0, 200]))).read(NAME)) == [[255, 55]]
    colours = [(1, 2, 3), (250, 120, 9), (0, 255, 0), (77, 88, 99)]
    palette = chunk(b"PLTE", bytes(c for colour in colours for c in colour))
    assert pixels(keyframes(tmp_path, png(4, 2, 3, bytes([0b11100100]), before=[palette])).read(NAME)) == [colours[::-1]]


# (ink C, M, Y, K) -> light, as (255 - ink)(255 - K) / 255
INKS = [(0, 0, 0, 0), (255, 0, 0, 0), (0, 255, 0, 0), (0, 0, 255, 0), (0, 0, 0, 255), (0, 0, 0, 128), (128, 64, 0, 64)]


def light(ink):
    return tuple(round((255 - c) * (255 - ink[3]) / 255) for c in ink[:3])


def without_adobe_marker(jpeg):
    found = re.search(rb"\xff\xee\x00\x0eAdobe.{7}", jpeg, re.DOTALL)
    return jpeg[: found.start()] + jpeg[found.end() :]


@pytest.mark.parametrize("ink", INKS)
def test_cmyk_is_read_in_the_polarity_of_its_file(tmp_path, ink):
    straight, complement = (Image.new("CMYK", (16, 16), c) for c in (ink, tuple(255 - c for c in ink)))
    # Pillow writes the complement of what it is given, with Adobe's marker: without the marker the same bytes mean themselves.
    for content in (
        encoded(straight, "TIFF"),
        encoded(straight, "JPEG", quality=100),
        without_adobe_marker(encoded(complement, "JPEG", quality=100)),
    ):
        seen = keyframes(tmp_path, content).read(NAME).getpixel((8, 8))
        assert max(abs(a - b) for a, b in zip(seen, light(ink), strict=True)) <= 1


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF", "MPO"])
def test_the_first_frame_of_several_is_read(tmp_path, kind):
    frames = [Image.new("RGB", (16, 16), c) for c in ((200, 0, 0), (0, 200, 0), (0, 0, 200))]
    options = {"WEBP": {"lossless": True}}.get(kind, {})
    content = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    with Image.open(io.BytesIO(content)) as image:
        assert image.n_frames == 3
    seen = keyframes(tmp_path, content).read(NAME).getpixel((8, 8))
    assert max(abs(a - b) for a, b in zip(seen, (200, 0, 0), strict=True)) <= (2 if kind == "MPO" else 0)


def test_the_transparent_colour_of_a_gif_is_white(tmp_path):
    image = Image.new("P", (2, 1), 0)
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    content = encoded(image, "GIF", transparency=1)
    assert pixels(keyframes(tmp_path, content).read(NAME)) == [[(10, 20, 30), (255, 255, 255)]]


def test_the_image_outlives_its_file(tmp_path):
    image = keyframes(tmp_path, encoded(Image.new("RGB", (4, 4), (1, 2, 3)), "PNG")).read(NAME)
    shutil.rmtree(tmp_path / "keyframes")
    assert type(image) is Image.Image
    assert image.copy().getpixel((3, 3)) == (1, 2, 3)


# ---- all of them before the model loads


def test_check_gives_the_size_of_every_distinct_keyframe_once(tmp_path):
    keyframes(tmp_path, encoded(Image.new("L", (5, 4)), "JPEG", exif=EXIF_HEAD + exif(6)), "a.jpg")
    frames = keyframes(tmp_path, encoded(Image.new("L", (7, 2)), "PNG"), "b.png")
    ticks = []
    assert frames.check(iter(["a.jpg", "b.png", "a.jpg", "a.jpg"]), ticks.append) == {"a.jpg": (4, 5), "b.png": (7, 2)}
    assert ticks == [1, 1]
    assert frames.check([]) == {}


def test_check_names_all_that_cannot_be_used_in_one_error(tmp_path):
    frames = keyframes(tmp_path, encoded(Image.new("L", (5, 4)), "PNG"))
    keyframes(tmp_path, b"version https://git-lfs.github.com/spec/v1\n", "pointer.jpg")
    names = [NAME, "../x.jpg", "pointer.jpg", *(f"keyframes/L2/{n}.jpg" for n in range(23)), "pointer.jpg"]
    ticks = []
    with pytest.raises(DataError) as caught:
        frames.check(names, ticks.append)
    lines = str(caught.value).splitlines()
    assert len(ticks) == 26
    assert lines[0] == "25 of 26 keyframes cannot be used:"
    assert lines[1].startswith("  '../x.jpg' leaves the keyframes source")
    assert lines[2] == "  'pointer.jpg' is a Git LFS pointer, not an image"
    assert lines[3] == "  'keyframes/L2/0.jpg' is missing"
    assert lines[21] == "  and 5 more"
    assert sum(line.startswith("  '") for line in lines) == 20
    assert lines[22].endswith(f"it is now {tmp_path}. (23 of them)")
    assert any("git lfs pull" in line and line.endswith("(1 of them)") for line in lines[22:])


def test_the_error_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(KeyframeError("a.jpg", "is missing", "Fetch it.")))
    assert str(error) == "keyframe 'a.jpg' is missing. Fetch it."
    assert (error.name, error.wrong, error.advice) == ("a.jpg", "is missing", "Fetch it.")
