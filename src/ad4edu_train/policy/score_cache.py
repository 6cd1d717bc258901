"""Log-probs kept on disk under everything that changes them, so that a second run with the same reference need not score again."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ad4edu_train.policy.chat import Rendered
from ad4edu_train.policy.log_probs import LogProb
from ad4edu_train.writing import write_private_rows

Scores = dict[Rendered, LogProb]


class ScoreCache:
    """One file for one `context`: model, adapters, precision, layout, versions. A row is a hash and the tokens' log-probs; no text.

    With several processes the main one reads and writes, and all take its rows, so that all score the same rest.
    """

    def __init__(self, folder: Path, context: dict[str, Any], keyframe_sha256: Callable[[str], str], *, ranks: int = 1) -> None:
        digest = hashlib.sha256(json.dumps(context, sort_keys=True).encode()).hexdigest()[:16]
        self.path = folder / f"{digest}.jsonl"
        self.ranks = ranks
        self._keyframe_sha256 = keyframe_sha256

    def complete(self, wanted: Iterable[Rendered], score: Callable[[list[Rendered]], Scores], *, main: bool) -> Scores:
        """Scores of everything wanted: known ones from the file, the others by `score`, which then go into the file."""
        items = list(dict.fromkeys(wanted))
        keys = {item: self._key(item) for item in items}
        rows = self._shared(self._read() if main else {})
        found = {item: _log_prob(rows[key]) for item, key in keys.items() if key in rows}
        missing = [item for item in items if item not in found]
        if missing:
            found |= score(missing)
            if main:
                rows |= {keys[item]: list(found[item].values) for item in missing}
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_private_rows(self.path, [{"key": key, "values": values} for key, values in rows.items()])
        return found

    def _key(self, item: Rendered) -> str:
        content = [item.prompt_ids, [self._keyframe_sha256(name) for name in item.keyframes], item.completion_ids]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def _read(self) -> dict[str, list[float]]:
        if not self.path.is_file():
            return {}
        return {row["key"]: row["values"] for row in map(json.loads, self.path.read_text().splitlines())}

    def _shared(self, rows: dict[str, list[float]]) -> dict[str, list[float]]:
        if self.ranks == 1:
            return rows
        from accelerate.utils import broadcast_object_list

        [shared] = broadcast_object_list([rows])
        return shared


def weights_identity(path: str, revision: str | None) -> list[Any]:
    """What tells one set of base weights from another: a hub commit, or name, size and time of each file of a folder."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return [path, revision]
    files = sorted(folder.glob("*.safetensors"))
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def _log_prob(values: list[float]) -> LogProb:
    return LogProb(math.fsum(values), len(values), tuple(values))
