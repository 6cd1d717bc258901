"""Keyframes of a data set: the one place where an image path becomes a file, and a file RGB pixels."""

import os
import stat
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from ad4edu_train.data.files import LFS_MARK
from ad4edu_train.data.sources import local_path
from ad4edu_train.errors import DataError

if TYPE_CHECKING:
    from PIL import Image, ImageFile

T = TypeVar("T")

# Tried in this order and no other: some of Pillow's readers (EPS, PDF, WMF) start other programs.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
MAX_PIXELS = 64_000_000  # a 4K frame has 8.3 million; decoded, the limit is 192 MB of RGB
MAX_BYTES = 512_000_000  # 64 million pixels of 16-bit RGBA without compression; some readers take a file into memory whole
MAX_NAME_BYTES, MAX_PART_BYTES = 1024, 255
EIGHT_BIT_MODES = ("1", "L", "P", "LA", "La", "PA", "RGB", "RGBX", "RGBA", "RGBa", "CMYK", "YCbCr")
WHITE = (255, 255, 255)
ORIENTATION, BITS_PER_SAMPLE, PHOTOMETRIC = 0x0112, 0x0102, 0x0106  # TIFF 6.0, section 8; Exif 2.3, table 4
SIDEWAYS = (5, 6, 7, 8)  # orientations that swap width and height
SHOWN = 20

COPY_AGAIN = "Copy or download it again."
SAVE_AGAIN = "Save it again as an 8-bit RGB JPEG or PNG."
INSIDE = "Keyframes are named relative to their folder: keyframes/<lecture>/<frame>.jpg."


class KeyframeError(DataError):
    """One keyframe that cannot be used: its relative name, what is wrong with it, what to do."""

    def __init__(self, name: str, wrong: str, advice: str) -> None:
        super().__init__(name, wrong, advice)
        self.name, self.wrong, self.advice = name, wrong, advice

    def __str__(self) -> str:
        return f"keyframe {_shown(self.name)} {self.wrong}. {self.advice}"


class _Unusable(Exception):
    """Pixels that have no plain meaning as an 8-bit image; the text says why."""


def refuse_outside(name: str) -> str | None:
    """Why `name` can be no relative path inside a keyframes folder, from its text alone; None if it can."""
    if not name:
        return "is empty"
    if "\0" in name:
        return "holds a NUL character"
    if "\\" in name or ":" in name:
        return "holds a backslash or a colon, as drives, Windows paths and URLs do"
    if name.startswith(("/", "~")):
        return "leaves the keyframes source: it is absolute or begins at a home folder"
    if ".." in name.split("/"):
        return "leaves the keyframes source: it holds '..'"
    try:
        lengths = [len(part.encode()) for part in name.split("/")]
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no valid text"
    if max(lengths) > MAX_PART_BYTES or len(name.encode()) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes, or {MAX_PART_BYTES} between two slashes"
    return None


class Keyframes:
    """Keyframes below one folder, named as in the data: relative to it, whatever the working directory is.

    Symbolic links may not lead out of the folder, but for those of the hub's cache: snapshots/<revision>/... -> blobs/...
    of the same repository.
    """

    def __init__(self, root: Path) -> None:
        """Raises DataError if `root` is no folder."""
        self.root = local_path(str(root)).resolve()
        if not self.root.is_dir():
            raise DataError(f"{root} is no folder. Give one that holds keyframes/<lecture>/<frame>.jpg as data.keyframes.")
        self._allowed = [self.root]
        if self.root.parent.name == "snapshots":
            self._allowed.append(self.root.parent.parent / "blobs")

    def path(self, name: str) -> Path:
        """The file that `name` stands for, links resolved; it need not be there. Raises KeyframeError if it lies outside."""
        if reason := refuse_outside(name):
            raise KeyframeError(name, reason, INSIDE)
        # File systems and archives of macOS write accents decomposed (NFD) where the data may have them composed, or the reverse.
        spellings = (name, unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name))
        found = next((spelling for spelling in spellings if os.path.exists(self.root / spelling)), name)
        try:
            path = (self.root / found).resolve()
        except (OSError, RuntimeError):
            raise KeyframeError(name, "is a symbolic link that leads back to itself", COPY_AGAIN) from None
        if not any(path.is_relative_to(folder) for folder in self._allowed):
            raise KeyframeError(
                name, f"is a symbolic link that leads out of {self.root}", "Put a copy of the file in its place."
            )
        return path

    def size(self, name: str) -> tuple[int, int]:
        """(width, height) in pixels, upright as `read` gives it. Reads the header only; raises KeyframeError."""
        return self._with_image(name, _upright_size)

    def read(self, name: str) -> "Image.Image":
        """The first frame, decoded: mode RGB, upright by its EXIF orientation, transparency on white. Raises KeyframeError."""
        image = self._with_image(name, _rgb)
        if image.size != self.size(name):
            # A PNG may carry EXIF behind its pixels. The prompt's image tokens are counted from the header.
            raise KeyframeError(name, "is turned sideways by EXIF data behind its pixels", SAVE_AGAIN)
        return image

    def check(self, names: Iterable[str], tick: Callable[[int], object] = lambda done: None) -> dict[str, tuple[int, int]]:
        """Decode every distinct keyframe once, and give the sizes. `tick` hears of each one that is done.

        Raises one DataError that counts all that cannot be used and lists the first of them.
        """
        sizes: dict[str, tuple[int, int]] = {}
        errors: list[KeyframeError] = []
        distinct = list(dict.fromkeys(names))
        for name in distinct:
            try:
                sizes[name] = self.read(name).size
            except KeyframeError as error:
                errors.append(error)
            tick(1)
        if errors:
            lines = [f"  {_shown(error.name)} {error.wrong}" for error in errors[:SHOWN]]
            more = [f"  and {len(errors) - SHOWN} more"] if len(errors) > SHOWN else []
            advice = [f"{text} ({n} of them)" for text, n in Counter(error.advice for error in errors).most_common()]
            head = f"{len(errors)} of {len(distinct)} keyframes cannot be used:"
            raise DataError("\n".join([head, *lines, *more, *advice]))
        return sizes

    def _with_image(self, name: str, use: "Callable[[ImageFile.ImageFile], T]") -> T:
        """What `use` makes of the opened image. Whatever it or Pillow stumbles over comes out as KeyframeError."""
        from PIL import Image, UnidentifiedImageError

        with self._open(name) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large images and odd metadata; what matters is refused here
            try:
                with Image.open(file, formats=FORMATS) as image:
                    width, height = image.size
                    if width * height <= MAX_PIXELS:
                        return use(image)
                wrong = f"has {width} x {height} pixels, more than {MAX_PIXELS:,}"
                advice = "Scale it down: a few million pixels are all that a model looks at."
            except UnidentifiedImageError:
                wrong, advice = f"is no {', '.join(FORMATS)} image, or its header is damaged", COPY_AGAIN
            except Image.DecompressionBombError:
                wrong, advice = f"has far more than {MAX_PIXELS:,} pixels", "Scale it down."
            except _Unusable as error:
                wrong, advice = str(error), SAVE_AGAIN
            except Exception as error:  # decoders answer damaged data with errors of any kind
                reason = next(iter(str(error).splitlines()), "") or type(error).__name__
                cut = isinstance(error, EOFError) or "truncated" in reason.lower()
                wrong, advice = "is truncated" if cut else f"cannot be decoded ({reason[:200]})", COPY_AGAIN
            raise KeyframeError(name, wrong, advice)

    @contextmanager
    def _open(self, name: str) -> Iterator[BinaryIO]:
        path = self.path(name)
        try:
            # Without waiting: a named pipe that nobody writes to would hold up the run for ever.
            file = open(path, "rb", opener=lambda where, flags: os.open(where, flags | getattr(os, "O_NONBLOCK", 0)))  # noqa: SIM115
        except (FileNotFoundError, NotADirectoryError):
            there = f"data.keyframes must name the folder that holds keyframes/<lecture>/<frame>.jpg; it is now {self.root}."
            raise KeyframeError(name, "is missing", there) from None
        except IsADirectoryError:
            raise KeyframeError(name, "is a folder", "Put an image file in its place.") from None
        except PermissionError:
            raise KeyframeError(name, "may not be read", "Give yourself permission to read it.") from None
        except OSError as error:
            raise KeyframeError(name, f"cannot be read ({error.strerror or error})", COPY_AGAIN) from None
        with file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise KeyframeError(name, "is no file but a pipe or a device", "Put an image file in its place.")
            if state.st_size == 0:
                raise KeyframeError(name, "is empty (0 bytes)", COPY_AGAIN)
            if state.st_size > MAX_BYTES:
                raise KeyframeError(name, f"has {state.st_size:,} bytes, more than {MAX_BYTES:,}", SAVE_AGAIN)
            if file.read(len(LFS_MARK)) == LFS_MARK:
                raise KeyframeError(name, "is a Git LFS pointer, not an image", "Run `git lfs pull` in its repository.")
            file.seek(0)
            yield file


def _upright_size(image: "ImageFile.ImageFile") -> tuple[int, int]:
    """(width, height) after EXIF orientation, from the header."""
    from PIL import Image

    width, height = image.size
    # PngImageFile.getexif would decode the pixels. A TIFF's size has its orientation in it.
    turned = image.format != "TIFF" and Image.Image.getexif(image).get(ORIENTATION) in SIDEWAYS
    return (height, width) if turned else (width, height)


def _rgb(image: "ImageFile.ImageFile") -> "Image.Image":
    """Decode and convert to upright 8-bit RGB on white. Raises _Unusable for samples that are no grey level or colour."""
    from PIL import Image, ImageOps

    _scale_transparency(image)
    image.load()
    samples = ImageOps.exif_transpose(_eight_bits(image))
    # A new image carries no EXIF, so that nothing downstream turns it a second time.
    flat = Image.new("RGB", samples.size, WHITE)
    if samples.has_transparency_data:
        rgba = samples.convert("RGBA")
        flat.paste(rgba, mask=rgba.getchannel("A"))
    else:
        flat.paste(samples.convert("RGB"))
    return flat


def _eight_bits(image: "ImageFile.ImageFile") -> "Image.Image":
    """The image in one of EIGHT_BIT_MODES, as it was meant: scaled, and CMYK without the inversion of its file."""
    from PIL import ImageChops

    if image.mode.startswith("I"):
        return _grey_of_16_bits(image)
    if image.mode not in EIGHT_BIT_MODES:
        kind = "floating-point numbers, whose black and white are unknown" if image.mode == "F" else f"{image.mode} colours"
        raise _Unusable(f"holds {kind}")
    if image.mode == "CMYK" and image.format in ("JPEG", "MPO") and "adobe" not in image.info:
        # Pillow inverts every CMYK JPEG. Only those with Adobe's marker are stored inverted.
        inverted = ImageChops.invert(image)
        inverted.info = image.info
        return inverted
    return image.convert("LA") if image.mode == "La" else image  # the only way that Pillow has out of La


def _scale_transparency(image: "ImageFile.ImageFile") -> None:
    """Bring the transparent level or colour of a PNG to the 8 bits of Pillow's pixels: the file has it at its own depth.

    PNG specification, 11.3.2.1. Of 16-bit colours Pillow keeps the high byte, so neighbours of the colour go with it.
    """
    level = image.info.get("transparency")
    depth = image.tile[0].args if image.format == "PNG" and image.tile else None
    if level is None:
        return
    if depth in ("L;2", "L;4"):
        levels = {"L;2": 4, "L;4": 16}[depth]
        image.info["transparency"] = level % levels * 255 // (levels - 1)
    elif depth == "RGB;16B":
        image.info["transparency"] = tuple(sample >> 8 for sample in level)


def _grey_of_16_bits(image: "ImageFile.ImageFile") -> "Image.Image":
    """Grey levels of more than 8 bits scaled to 0 .. 255: mode L, or LA where one level of a PNG is transparent."""
    from PIL import Image

    top, white_is_zero = 65535, False
    if image.format == "TIFF":
        # Pillow gives 12 bits, and levels whose 0 is white, as they stand in the file. It takes a missing tag for 0 as well.
        tags = image.tag_v2  # type: ignore[attr-defined]
        top = 4095 if tags.get(BITS_PER_SAMPLE, (1,))[0] == 12 else top
        white_is_zero = tags.get(PHOTOMETRIC, 0) == 0
    wide = image.convert("I")
    lowest, highest = wide.getextrema()
    if not 0 <= lowest <= highest <= top:  # type: ignore[operator]
        raise _Unusable(f"holds grey levels from {lowest} to {highest}, beyond 0 .. {top}")
    grey = wide.point(_levels(top, white_is_zero), "L")
    clear = image.info.get("transparency")
    if clear is not None:
        grey = Image.merge("LA", (grey, wide.point([0 if level == clear else 255 for level in range(65536)], "L")))
    grey.info = {key: value for key, value in image.info.items() if key != "transparency"}
    return grey


@cache
def _levels(top: int, white_is_zero: bool) -> list[int]:
    """8-bit level of each 16-bit one. Of the two integers a scaled level may lie between, the nearer."""
    scaled = [(min(level, top) * 510 + top) // (2 * top) for level in range(65536)]
    return [255 - level for level in scaled] if white_is_zero else scaled


def _shown(name: str) -> str:
    return repr(name) if len(name) <= 300 else f"{name[:60]!r}... ({len(name)} characters)"
