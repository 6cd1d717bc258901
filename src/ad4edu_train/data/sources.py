"""Where the files of a data set are: a hub repository, a folder laid out like it, or single files."""

import os
from dataclasses import dataclass
from pathlib import Path

from ad4edu_train.errors import DataError

# The place of each file in a hub repository or a folder laid out like one.
PATTERNS = {
    "train": "**/train_prefs-*.parquet",
    "test_human": "**/test_human-*.parquet",
    "candidates": "**/dpo_train.jsonl",
    "prompts": "**/dpo_prompts.jsonl",
    "human_val": "**/human_val_400.jsonl",
    "gold": "**/gold_eval.jsonl",
    "cursor_capability": "**/cursor_capability.json",
    "subjects": "**/lecture_subjects.json",
    "moment_order": "**/moment_order.jsonl",
    "datasmith": "data/train-*.parquet",
}
SYNTHETIC_MARK = "SYNTHETIC.json"


@dataclass(frozen=True, kw_only=True)
class DataFiles:
    """The files found, by name; a name of several shards has several paths, one that is absent has none."""

    root: Path | None
    files: dict[str, list[Path]]
    keyframes: Path | None
    synthetic: bool

    def __getitem__(self, name: str) -> list[Path]:
        return self.files.get(name, [])


def locate(
    root: str | None, overrides: dict[str, str | None], *, keyframes: str | None = None, revision: str | None = None
) -> DataFiles:
    """Find every file: `overrides[name]` where given (a file, a folder or a hub id of its own), else in `root`.

    Raises DataError when the root or an override holds no such file; a file that is only absent from the root is left out.
    """
    folder = resolve_folder(root, PATTERNS, revision) if root else None
    files = {name: _glob(folder, pattern) for name, pattern in PATTERNS.items()} if folder else {}
    if folder and not any(files.values()):
        raise DataError(
            f"{root} holds none of the files of a data set ({', '.join(PATTERNS.values())}). See docs/data_contract.md."
        )
    # A revision belongs to one repository: other repositories are read at their default branch.
    pinned = root or overrides.get("train")
    for name, source in overrides.items():
        if source:
            files[name] = _override(name, source, revision if source == pinned else None)
    keyframe_root = folder
    if keyframes:
        keyframe_root = resolve_folder(keyframes, {"keyframes": "**/*.jpg"}, None)
    marks = {path.parent for paths in files.values() for path in paths}
    synthetic = any((parent / SYNTHETIC_MARK).is_file() for mark in marks for parent in (mark, *list(mark.parents)[:2]))
    return DataFiles(root=folder, files={k: v for k, v in files.items() if v}, keyframes=keyframe_root, synthetic=synthetic)


def resolve_folder(source: str, patterns: dict[str, str], revision: str | None) -> Path:
    """A local folder for `source`: itself, or the snapshot of the hub repository of that id.

    The token comes from the environment (HF_TOKEN or `hf auth login`); HF_HUB_OFFLINE=1 reads the local cache only.
    """
    path = local_path(source)
    if path.is_dir():
        return path
    if path.exists():
        raise DataError(f"{source} is a file; a folder or a hub id is expected here. Single files have keys of their own.")
    if path.suffix in (".parquet", ".jsonl", ".json"):
        raise DataError(f"{source}: no such file.")
    if source.count("/") != 1 or source.startswith((".", "/", "~")):
        raise DataError(f"{source}: no such folder (and not a hub id, which reads owner/name).")
    return _snapshot(source, list(patterns.values()), revision)


def local_path(source: str) -> Path:
    """A path that can be asked whether it is there: `~` expanded, DataError where the system refuses the question."""
    try:
        path = Path(source).expanduser()
        path.stat()
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        raise DataError(f"{source}: no such file or folder (a part of the path is a file).") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise DataError(f"{source!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    return path


def _glob(folder: Path, pattern: str) -> list[Path]:
    """Files that match, sorted. What lies in hidden folders (caches, .git) is no part of a data set."""
    found = (path for path in folder.glob(pattern) if path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def _override(name: str, source: str, revision: str | None) -> list[Path]:
    path = local_path(source)
    if path.is_file():
        return [path]
    folder = resolve_folder(source, {name: PATTERNS[name]}, revision)
    found = _glob(folder, PATTERNS[name])
    if not found:
        raise DataError(f"{source} holds no {PATTERNS[name]}, which data.{name} asks for.")
    return found


def _snapshot(repo_id: str, patterns: list[str], revision: str | None) -> Path:
    import httpx2
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # The hub matches with fnmatch, where `**/x` does not match a file at the top.
    wanted = [*patterns, *(pattern.removeprefix("**/") for pattern in patterns), SYNTHETIC_MARK]
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "TRUE", "YES", "ON"}
    try:
        return Path(snapshot_download(repo_id, repo_type="dataset", revision=revision, allow_patterns=wanted))
    except HFValidationError:
        raise DataError(f"{repo_id}: no such folder, and no hub id either (owner/name, without spaces).") from None
    except RepositoryNotFoundError:  # a gated repository too
        raise DataError(
            f"{repo_id}: no folder of that name here, and on the hub no such data set or no access to it. "
            "Set HF_TOKEN to a token of an account that may read it, or run `hf auth login`."
        ) from None
    except RevisionNotFoundError:
        raise DataError(f"{repo_id} has no revision {revision} on the hub. Look at data.revision.") from None
    except LocalEntryNotFoundError:
        reason = "HF_HUB_OFFLINE is set" if offline else "the hub cannot be reached"
        raise DataError(
            f"{repo_id}: {reason}, and the data set is not in the local cache. Fetch it where there is a network "
            f"(`hf download --repo-type dataset {repo_id}`), or give the path of a folder."
        ) from None
    except (httpx2.HTTPError, OSError) as error:  # HfHubHTTPError is both
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{repo_id} could not be fetched from the hub: {reason}") from None
