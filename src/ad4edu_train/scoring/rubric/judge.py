"""The judge at the other end of an HTTP connection: retries, and answers kept on disk."""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from ad4edu_train.errors import UserError
from ad4edu_train.scoring.rubric.grading import AnswerError, Grades, read_answer
from ad4edu_train.writing import PRIVATE, write_text

TRIES = 5
FIRST_WAIT_S = 1.0  # doubled at each try, unless the endpoint says how long to wait
LONGEST_WAIT_S = 60.0
TIMEOUT_S = 120.0


class Judge:
    """Grades requests. An answer that was given once for the same request is read from `cache` and never paid again."""

    def __init__(self, endpoint: str, cache: Path, *, first_wait_s: float = FIRST_WAIT_S) -> None:
        key = os.environ.get("OPENAI_API_KEY", "")
        if not key:
            raise UserError("--tier rubric: OPENAI_API_KEY is not set. For an endpoint that needs no key, set it to any word.")
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UserError(
                f"--endpoint {endpoint}: the base URL of an OpenAI-compatible API is expected, such as "
                f"https://api.openai.com/v1."
            )
        self.url = endpoint.rstrip("/") + "/chat/completions"
        self.cache = cache
        self.first_wait_s = first_wait_s
        self.client = httpx2.Client(timeout=TIMEOUT_S, headers={"Authorization": f"Bearer {key}"})

    def key(self, body: dict[str, Any]) -> Path:
        """The file of a request: everything that decides the answer, and no key, is in its name."""
        digest = hashlib.sha256(json.dumps([self.url, body], sort_keys=True).encode()).hexdigest()
        return self.cache / digest[:2] / f"{digest}.json"

    def known(self, body: dict[str, Any]) -> Grades | None:
        try:
            return read_answer(json.loads(self.key(body).read_text(encoding="utf-8")))
        except (OSError, ValueError):  # absent or damaged: asked again
            return None

    def grade(self, body: dict[str, Any]) -> Grades:
        """The judge's grades. Raises UserError when it stays unreachable, refuses the request, or gives no grades in five tries."""
        if (kept := self.known(body)) is not None:
            return kept
        reason, wait = "", self.first_wait_s
        for attempt in range(TRIES):
            if attempt:
                time.sleep(min(wait, LONGEST_WAIT_S))
                wait = 2 * wait
            try:
                response = self.client.post(self.url, json=body)
            except httpx2.HTTPError as error:
                reason = f"{type(error).__name__}: {error}"
                continue
            if response.status_code == 429 or response.status_code >= 500:
                reason = f"status {response.status_code}"
                wait = _asked_wait(response.headers.get("retry-after")) or wait
                continue
            if response.status_code != 200:
                raise UserError(f"{self.url} refused the request with status {response.status_code}: {_short(response.text)}")
            try:
                answer = response.json()
                grades = read_answer(answer)
            except (AnswerError, ValueError) as error:
                reason = f"an answer that cannot be read: {error}"
                continue
            path = self.key(body)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(answer), PRIVATE)
            return grades
        raise UserError(
            f"{self.url} gave no grades in {TRIES} tries; the last gave {reason}. Answers so far are kept in "
            f"{self.cache}; run again to go on."
        )


def _asked_wait(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds <= LONGEST_WAIT_S else None


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
