"""Closed word lists."""


def words(listed: str) -> frozenset[str]:
    """The words of a list that is written as text."""
    return frozenset(listed.split())
