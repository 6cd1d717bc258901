"""Log-probs on disk: found again under the same context, never under another."""

import json

import pytest

from ad4edu_train.policy.chat import Rendered
from ad4edu_train.policy.log_probs import LogProb
from ad4edu_train.policy.score_cache import ScoreCache, weights_identity

ITEMS = [Rendered((1, 2), (3, 4)), Rendered((1, 2), (5,)), Rendered((1, 2), (5,), ("keyframes/a.jpg",))]


class Scorer:
    def __init__(self):
        self.asked = []

    def __call__(self, items):
        self.asked.append(items)
        return {
            item: LogProb(-1.5 * len(item.completion_ids), len(item.completion_ids), (-1.5,) * len(item.completion_ids))
            for item in items
        }


def cache(folder, context=None, sha256="x"):
    return ScoreCache(folder, context or {"weights": 1}, lambda name: sha256)


def test_what_was_scored_is_not_scored_again(tmp_path):
    scorer = Scorer()
    first = cache(tmp_path).complete(ITEMS[:2], scorer, main=True)
    again = cache(tmp_path).complete(ITEMS, scorer, main=True)
    assert scorer.asked == [ITEMS[:2], ITEMS[2:]]
    assert {item: again[item] for item in ITEMS[:2]} == first
    assert again[ITEMS[0]].values == (-1.5, -1.5)


@pytest.mark.parametrize("change", ["context", "image", "prompt"])
def test_anything_that_changes_the_value_is_scored_anew(tmp_path, change):
    scorer = Scorer()
    cache(tmp_path).complete(ITEMS, scorer, main=True)
    items = [Rendered((1, 9), item.completion_ids, item.keyframes) for item in ITEMS] if change == "prompt" else ITEMS
    other = cache(tmp_path, {"weights": 2} if change == "context" else None, "y" if change == "image" else "x")
    other.complete(items, scorer, main=True)
    assert scorer.asked[1] == (ITEMS[2:] if change == "image" else items)


def test_the_file_holds_hashes_and_numbers_and_is_private(tmp_path):
    cache(tmp_path).complete(ITEMS, Scorer(), main=True)
    [path] = tmp_path.glob("*.jsonl")
    assert path.stat().st_mode & 0o077 == 0
    for line in path.read_text().splitlines():
        row = json.loads(line)
        assert set(row) == {"key", "values"}
        assert len(row["key"]) == 64
        assert "keyframes" not in line


def test_only_the_main_process_writes(tmp_path):
    cache(tmp_path).complete(ITEMS, Scorer(), main=False)
    assert not list(tmp_path.glob("*.jsonl"))


def test_weights_are_told_apart(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"a")
    before = weights_identity(str(folder), None)
    (folder / "model.safetensors").write_bytes(b"bb")
    assert weights_identity(str(folder), None) != before
    assert weights_identity("owner/name", "abc") != weights_identity("owner/name", "def")
