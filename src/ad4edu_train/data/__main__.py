"""`python -m ad4edu_train.data describe SOURCE`: the card's tables of a data set, and where they differ from the card."""

import argparse
from collections.abc import Iterable

from ad4edu_train.errors import plain_errors


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ad4edu_train.data", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    describe = commands.add_parser("describe", help="print the card's tables of a data set (AD4Edu or DataSmith)")
    describe.add_argument(
        "source", help="a folder laid out like the hub repository, a hub id (owner/name), or one table's file"
    )
    describe.add_argument("--subjects", help="JSON map lecture -> subject (the card has no subject column)")
    describe.add_argument("--revision", help="revision of the hub repository")
    describe.add_argument(
        "--expect-card", action="store_true", help="name each figure that differs from the card; exit 1 if any does"
    )
    options = parser.parse_args(arguments)
    with plain_errors():
        return run_describe(options.source, options.subjects, options.revision, options.expect_card)


def run_describe(source: str, subjects: str | None, revision: str | None, expect_card: bool) -> int:
    from ad4edu_train.data.inspection import PARSERS
    from ad4edu_train.data.problems import Problems
    from ad4edu_train.data.sources import locate
    from ad4edu_train.errors import DataError

    files = locate(*_place(source, subjects), revision=revision)
    if not any(files[name] for name in (*PARSERS, "datasmith")):
        raise DataError(f"{source} holds no table of pairs, so there is nothing to describe. See docs/data_contract.md.")
    if files.synthetic:
        print("SYNTHETIC DATA: written by a generator, with synthetic raters. No figure below speaks of people.\n")
    problems = Problems()
    if files["datasmith"] and not files["train"]:
        from ad4edu_train.data import datasmith

        comparisons = datasmith.Comparisons()
        for _, _, row in datasmith.read_comparisons(files["datasmith"], problems):
            comparisons.add(row)
        shown, differences = datasmith.tables(comparisons), datasmith.card_differences(comparisons)
    else:
        from ad4edu_train.data import describe
        from ad4edu_train.data.inspection import inspect

        found = inspect(files)
        problems = found.problems
        shown, differences = describe.tables(found), describe.card_differences(found)
    _print_tables(shown)
    status = 0
    if problems:
        print("\n".join(["Checks failed:", *problems.lines()]))
        status = 1
    else:
        print("All checks passed.")
    if expect_card:
        status = max(status, _print_differences(list(differences)))
    return status


def _place(source: str, subjects: str | None) -> tuple[str | None, dict[str, str | None]]:
    """(root, overrides) for a folder or hub id, or for one file of pairs, told apart by its columns."""
    overrides: dict[str, str | None] = {"subjects": subjects}
    from ad4edu_train.data.files import Record, read_records
    from ad4edu_train.data.sources import local_path
    from ad4edu_train.errors import DataError

    if not local_path(source).is_file():
        return source, overrides
    first = next((record for record in read_records(local_path(source)) if isinstance(record, Record)), None)
    columns = first.values if first else {}
    for column, name in (
        ("option_a", "test_human"),
        ("train_eligible", "candidates"),
        ("chosen", "train"),
        ("smith_messages", "datasmith"),
    ):
        if column in columns:
            return None, overrides | {name: source}
    raise DataError(
        f"{source} is no table of pairs that a card describes: "
        + ("it has none of the columns option_a, chosen, smith_messages." if first else "no row of it can be read.")
        + " See docs/data_contract.md."
    )


def _print_tables(tables: Iterable) -> None:
    from rich.console import Console
    from rich.table import Table

    # Names in the data are text, not markup: "[/b]" is a name like any other.
    console = Console(highlight=False, markup=False, emoji=False)
    for table in tables:
        grid = Table(title=table.title, caption=table.note or None, title_justify="left", caption_justify="left")
        for number, column in enumerate(table.columns):
            grid.add_column(column, justify="left" if number == 0 else "right")
        for row in table.rows:
            grid.add_row(*(str(cell) for cell in row))
        console.print(grid)


def _print_differences(differences: list) -> int:
    if not differences:
        print("Every figure of the card is met.")
        return 0
    print(f"{len(differences)} figures differ from the card:")
    for difference in differences:
        print(f"  {difference.figure}: card {difference.on_card}, found {difference.found}")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
