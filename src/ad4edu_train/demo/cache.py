"""The demo's place on this machine: what is made once is written whole, or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_root() -> Path:
    """Where the demo keeps its models and corpora: AD4EDU_CACHE, else the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "ad4edu_train"
    return Path(os.environ.get("AD4EDU_CACHE", default))


def made_once(folder: Path, write: Callable[[Path], object], saying: str = "") -> Path:
    """`folder`, filled by `write` on the first call. A process that comes second takes what the first one made."""
    if not folder.is_dir():
        if saying:
            print(f"{saying} to {folder} (once) ...", flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            written = Path(work) / folder.name
            write(written)
            try:
                written.rename(folder)
            except OSError:  # another process was first; the same seed gave it the same bytes
                if not folder.is_dir():
                    raise
    return folder
