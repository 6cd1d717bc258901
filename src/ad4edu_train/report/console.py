"""The agreement result on the screen."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ad4edu_train.report.agreement import COLUMNS, READING, SYNTHETIC, cells


def print_agreement(folder: Path) -> None:
    """Print agreement.json of a folder, a table a block, and where the files are."""
    result = json.loads((folder / "agreement.json").read_text())
    console = Console(highlight=False)
    if result["synthetic_data"]:
        console.print(SYNTHETIC.strip("*"), style="bold")
    for note in result["notes"]:
        console.print(f"Note: {note}")
    for block in dict.fromkeys(row["block"] for row in result["rows"]):
        grid = Table(title=f"{block[0].upper()}{block[1:]}", title_justify="left")
        for number, column in enumerate(COLUMNS):
            grid.add_column(column, justify="left" if number < 2 else "right", overflow="fold")
        rows = [cells(row) for row in result["rows"] if row["block"] == block]
        for number, row in enumerate(rows):
            first = number == 0 or rows[number - 1][0] != row[0]
            grid.add_row(row[0] if first else "", *row[1:], end_section=number + 1 < len(rows) and rows[number + 1][0] != row[0])
        console.print(grid)
    console.print(READING)
    console.print(f"Written: {folder}/agreement.md, agreement.json, pairs.jsonl (one row a pair; keep it private)")
