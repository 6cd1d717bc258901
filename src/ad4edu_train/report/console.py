"""The agreement result on the screen."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ad4edu_train.report.agreement import CHANCE, READING, SYNTHETIC, cells, strata_of

SHOWN = ("predictor", "directed", "ties", "agree on decided", "ties = fail")


def print_agreement(folder: Path) -> None:
    """Print agreement.json of a folder, a table a block with a heading a stratum, and where the files are."""
    result = json.loads((folder / "agreement.json").read_text())
    console = Console(highlight=False)
    if result["synthetic_data"]:
        console.print(SYNTHETIC.strip("*"), style="bold")
    for note in result["notes"]:
        console.print(f"Note: {note}")
    for block in dict.fromkeys(row["block"] for row in result["rows"]):
        grid = Table(title=f"{block[0].upper()}{block[1:]}", title_justify="left", show_edge=False)
        for number, column in enumerate(SHOWN):
            grid.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
        for stratum, rows in strata_of(result, block).items():
            grid.add_row(f"{stratum} ({rows[0]['pairs']} pairs, {rows[0]['moments']} moments)", style="bold")
            for row in rows:
                _, predictor, _, _, directed, ties, decided, failing = cells(row)
                grid.add_row(f"  {predictor}", directed, ties, decided.partition(" (")[0], failing.partition(" (")[0])
            grid.add_row(f"  {CHANCE}", "", "", "50.0%", "50.0%")
            grid.add_section()
        console.print(grid)
    console.print(READING)
    console.print(f"Written: {folder}/agreement.md, agreement.json, pairs.jsonl (one row a pair; keep it private)")
