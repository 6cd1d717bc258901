"""Errors that a user can act on: they say what is wrong, where, why it matters and what to do, and never show a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake in what the user gave (files, settings, state of a folder); its text is the whole message."""


class DataError(UserError):
    """Data that break the contract of docs/data_contract.md."""


class ConfigError(UserError):
    """A setting that cannot be used. `key` is the dotted Hydra key."""

    def __init__(self, key: str, value: object, expected: str) -> None:
        super().__init__(f"{key}={value!r}: expected {expected}")
        self.key = key


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print a `UserError` as text and exit with 2; anything else is a fault of the product and keeps its traceback."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
