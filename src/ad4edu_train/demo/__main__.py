"""`python -m ad4edu_train.demo`: write a synthetic data set, or audit one."""

import argparse
from pathlib import Path

from ad4edu_train.demo.allocation import CARD_TEST_MOMENTS
from ad4edu_train.errors import UserError, plain_errors

SMALLEST = 8  # test moments; below this the proportions of the card leave strata empty


def _moments(text: str) -> int:
    if not text.isdigit() or not SMALLEST <= int(text) <= 2000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {SMALLEST} to 2000")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ad4edu_train.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write a data folder with keyframes; everything in it is synthetic")
    write.add_argument("folder", type=Path, metavar="DIR")
    size = write.add_mutually_exclusive_group()
    size.add_argument("--moments", type=_moments, default=80, help="moments of test_human; train scales with it (80)")
    size.add_argument("--scale", choices=["card"], help="exactly the card's counts (3540 and 400 pairs)")
    write.add_argument("--seed", type=int, default=0)
    write.add_argument("--null-labels", action="store_true", help="the same texts with random labels")
    datasmith = commands.add_parser("write-datasmith", help="write a synthetic data set with the counts of the DataSmith card")
    datasmith.add_argument("folder", type=Path, metavar="DIR")
    datasmith.add_argument("--seed", type=int, default=0)
    audit = commands.add_parser("audit", help="measure whether the corpus is a fair test; exit code 1 when a bar fails")
    audit.add_argument(
        "folder", type=Path, nargs="?", metavar="DIR", help="a demo folder; none: a new corpus of the card's size"
    )
    audit.add_argument("--seed", type=int, default=0, help="seed of the new corpus, and of the shuffles")
    return parser


def _write(arguments: argparse.Namespace) -> int:
    from ad4edu_train.demo.moments import Settings
    from ad4edu_train.demo.write import write_corpus

    moments = CARD_TEST_MOMENTS if arguments.scale else arguments.moments
    settings = Settings(moments, arguments.seed, arguments.null_labels, arguments.scale or "moments")
    try:
        corpus = write_corpus(arguments.folder, settings)
    except OSError as error:
        raise UserError(f"cannot write {arguments.folder}: {error.strerror}") from None
    n_frames = sum(len(moment.frames) for moment in corpus.moments)
    print(
        f"{arguments.folder}: synthetic corpus, {len(corpus.train)} train pairs, "
        f"{len(corpus.test)} test pairs, {n_frames} keyframes"
    )
    return 0


def _write_datasmith(arguments: argparse.Namespace) -> int:
    from ad4edu_train.demo.datasmith import write_datasmith

    try:
        count = write_datasmith(arguments.folder, arguments.seed)
    except OSError as error:
        raise UserError(f"cannot write {arguments.folder}: {error.strerror}") from None
    print(f"{arguments.folder}: synthetic data set, {count} comparisons")
    return 0


def _audit(arguments: argparse.Namespace) -> int:
    from ad4edu_train.demo.audit import audit_folder, audit_new, print_claims

    claims = audit_folder(arguments.folder, arguments.seed) if arguments.folder else audit_new(arguments.seed)
    return print_claims(claims)


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    commands = {"write": _write, "write-datasmith": _write_datasmith, "audit": _audit}
    with plain_errors():
        return commands[arguments.command](arguments)


if __name__ == "__main__":
    raise SystemExit(main())
