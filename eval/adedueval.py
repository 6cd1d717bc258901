"""ADEduEval: grade audio descriptions against the lecture standard. `python eval/adedueval.py --help`; docs/scorer.md has examples."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ad4edu_train.errors import UserError, plain_errors

if TYPE_CHECKING:
    from ad4edu_train.scoring.standard import Standard
    from ad4edu_train.scoring.tiers import Tier

NOT_GIVEN = argparse.SUPPRESS  # an option after the subcommand must not undo the same one before it


def options() -> argparse.ArgumentParser:
    """Options that stand before or after the subcommand."""
    parser = argparse.ArgumentParser(add_help=False, argument_default=NOT_GIVEN)
    parser.add_argument(
        "--tier",
        choices=("mech", "local", "rubric"),
        help="mech: rules alone (default); local: adds local models; rubric: a language model judges",
    )
    parser.add_argument("--i-approve-spend", action="store_true", help="allow the rubric tier, which costs money")
    parser.add_argument("--rules", help="another rules file of the schema of rules_for_slides.yaml")
    parser.add_argument("--scorer", choices=("own", "ad4edu"), help="own (default), or the installed package ad4edu")
    parser.add_argument(
        "--ad-mode",
        choices=("standard", "extended", "hybrid"),
        help="may the player stop the lecture? default: the standard's own",
    )
    parser.add_argument("--nli-model", help="local tier: folder or hub id of the NLI model, id@revision")
    parser.add_argument("--encoder", help="local tier: folder or hub id of the sentence encoder, id@revision")
    parser.add_argument("--endpoint", help="rubric tier: base URL of an OpenAI-compatible API (key from OPENAI_API_KEY)")
    parser.add_argument("--judge-model", help="rubric tier: name of the model there")
    parser.add_argument("--cache", type=Path, help="rubric tier: folder that keeps the judge's answers")
    parser.add_argument("--gold", help="gold_eval.jsonl with reference descriptions: file, folder or hub id")
    parser.add_argument("--cursor-capability", help="cursor_capability.json: file, folder or hub id")
    return parser


def arguments(argv: list[str]) -> argparse.Namespace:
    common = options()
    parser = argparse.ArgumentParser(prog="adedueval.py", description=__doc__, parents=[common])
    commands = parser.add_subparsers(dest="command", required=True, metavar="pairs | hf | predictions | explain")
    written = argparse.ArgumentParser(add_help=False)
    written.add_argument("--out", type=Path, help="one JSON row a description")
    written.add_argument("--md", type=Path, help="the summary as Markdown")
    written.add_argument("--json", type=Path, help="the summary as JSON")
    shipped = argparse.ArgumentParser(add_help=False)
    either = shipped.add_mutually_exclusive_group()
    either.add_argument(
        "--check-shipped",
        dest="shipped",
        action="store_const",
        const="check",
        help="recompute the shipped ratings, refuse on any mismatch",
    )
    either.add_argument(
        "--compare-shipped",
        dest="shipped",
        action="store_const",
        const="compare",
        help="compare with the ratings of another scorer",
    )

    pairs = commands.add_parser("pairs", parents=[common, written, shipped], help="score both sides of a table of pairs")
    pairs.add_argument(
        "--pairs", nargs="+", required=True, metavar="FILE", help="Parquet or JSONL with chosen/rejected or option_a/option_b"
    )
    hub = commands.add_parser("hf", parents=[common, written, shipped], help="the same on a data set of the hub")
    hub.add_argument("--repo", required=True, help="owner/name, or a folder laid out like it")
    hub.add_argument("--config", choices=("default", "test_human"), default="default", help="train_prefs or test_human")
    hub.add_argument("--revision", help="commit, tag or branch")
    system = commands.add_parser(
        "predictions", parents=[common, written], help="score what a system said over whole lectures, with novelty"
    )
    system.add_argument(
        "--predictions",
        required=True,
        metavar="FILE",
        type=Path,
        help="samples.jsonl: prompt_id or moment_id, sample_index, text",
    )
    system.add_argument("--data", help="folder or hub id with dpo_prompts.jsonl and moment_order.jsonl")
    system.add_argument("--prompts", help="dpo_prompts.jsonl")
    system.add_argument("--moment-order", help="moment_order.jsonl")
    explain = commands.add_parser("explain", parents=[common], help="findings of one description, or of each row of a file")
    explain.add_argument("text", nargs="?", help="the description")
    explain.add_argument("--jsonl", type=Path, metavar="FILE", help="rows {text, context}; prints one JSON row each")
    explain.add_argument(
        "--moment-type", help="pointing, slide, figure, reveal, animation, ink, math, table, chart or transition"
    )
    explain.add_argument("--transcript", help="what the lecturer says")
    explain.add_argument("--ocr", help="on-screen text")
    explain.add_argument("--on-screen", help="what is on screen")
    explain.add_argument("--pause-s", help="seconds of pause")
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    given = arguments(argv)
    from ad4edu_train.scoring.standard import load_standard
    from ad4edu_train.scoring.tiers import Tier

    names = {
        "tier": "name",
        "i_approve_spend": "approve_spend",
        "scorer": "scorer",
        "nli_model": "nli_model",
        "encoder": "encoder",
    }
    names |= {"endpoint": "endpoint", "judge_model": "judge_model", "cache": "cache"}
    tier = Tier(**{name: getattr(given, key) for key, name in names.items() if hasattr(given, key)})
    if tier.name == "rubric" and not tier.approve_spend:
        from ad4edu_train.scoring.tiers import refuse_unapproved

        refuse_unapproved()
    standard = load_standard(getattr(given, "rules", None))
    if given.command == "explain":
        explain(given, tier, standard)
        return
    from ad4edu_train.data.sources import locate
    from ad4edu_train.scoring import commands, sources

    ad_mode, gold, cursor = (getattr(given, name, None) for name in ("ad_mode", "gold", "cursor_capability"))
    output = commands.Output(out=given.out, md=given.md, json=given.json)
    if given.command == "predictions":
        files = locate(given.data, {"prompts": given.prompts, "moment_order": given.moment_order})
    elif given.command == "hf":
        files = locate(given.repo, {}, revision=given.revision)
    else:
        files = sources.files_beside(given.pairs[0])
    context = sources.contexts(files, gold=gold, cursor=cursor, ad_mode=ad_mode, needs_gold=tier.name != "mech")
    if given.command == "predictions":
        print(commands.score_predictions(given.predictions, files, tier, standard, output, context=context))
        return
    if given.command == "hf":
        tables = files["train" if given.config == "default" else "test_human"]
        if not tables:
            raise UserError(f"{given.repo} has no table of the config {given.config}.")
    else:
        tables = [Path(path) for path in given.pairs]
    print(commands.score_pairs(tables, files, tier, standard, output, context=context, shipped=given.shipped))


def explain(given: argparse.Namespace, tier: "Tier", standard: "Standard") -> None:
    from ad4edu_train.scoring import commands
    from ad4edu_train.scoring.moment import moment_from

    if (given.text is None) == (given.jsonl is None):
        raise UserError('explain takes one description, explain "TEXT", or a file of them, explain --jsonl FILE.')
    if given.jsonl:
        for line in commands.explain_rows(given.jsonl, tier, standard):
            print(line)
        return
    names = ("moment_type", "transcript", "ocr", "on_screen", "pause_s")
    context = {name: getattr(given, name) for name in names} | {"ad_mode": getattr(given, "ad_mode", None)}
    print(commands.explain_text(given.text, moment_from(context), tier, standard))


if __name__ == "__main__":
    with plain_errors():
        try:
            main(sys.argv[1:])
        except BrokenPipeError:  # the reader of the output has gone, as in `| head`
            sys.stdout = None
