"""Label noise: closed forms, TRL's robust loss, and the run that uses it."""

import math

import pytest
import torch
from torch.nn.functional import logsigmoid

from ad4edu_train.errors import UserError
from ad4edu_train.training.losses import noise_term

MARGINS = torch.tensor([-3.0, -0.5, 0.0, 0.2, 4.0], dtype=torch.float64)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.3, 0.45])
def test_cdpo_is_the_mix_of_both_labels(rate):
    noise = torch.full_like(MARGINS, rate)
    whole = -logsigmoid(MARGINS).mean() + noise_term("cdpo", noise, MARGINS)
    mixed = ((1 - rate) * -logsigmoid(MARGINS) + rate * -logsigmoid(-MARGINS)).mean()
    assert whole.item() == pytest.approx(mixed.item(), rel=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.3, 0.45])
def test_rdpo_is_unbiased_under_flips(rate):
    """Expected over labels flipped at that rate, the loss is that of clean labels (Chowdhury et al. 2024, lemma 3.1)."""
    noise = torch.full_like(MARGINS, rate)

    def loss(margins):
        return -logsigmoid(margins).mean() + noise_term("rdpo", noise, margins)

    # A flipped label is the same pair with its margin turned round.
    expected = (1 - rate) * loss(MARGINS) + rate * loss(-MARGINS)
    assert expected.item() == pytest.approx(float(-logsigmoid(MARGINS).mean()), rel=1e-12)


def test_none_adds_nothing_and_rates_apply_pair_by_pair():
    noise = torch.tensor([0.0, 0.1, 0.0, 0.4, 0.0], dtype=torch.float64)
    assert noise_term("none", noise, MARGINS) == 0
    assert float(noise_term("cdpo", noise, MARGINS)) == pytest.approx((0.1 * -0.5 + 0.4 * 0.2) / 5)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["stock", "moment_tree"])
def test_rdpo_through_the_trainer_is_trls_robust_loss(trainer, loss_and_gradients, rendered, layout):
    common = (f"trainer.layout={layout}", "trainer.precompute_reference=true")
    ours = trainer(rendered, *common, "dpo.label_noise={method: rdpo, construction: 0.2, judge: 0.2}")
    theirs = trainer(rendered, *common, "dpo.loss=[robust]", "dpo.label_smoothing=0.2")
    ours_loss, ours_gradients = loss_and_gradients(ours, rendered)
    theirs_loss, theirs_gradients = loss_and_gradients(theirs, rendered)
    assert ours_loss == pytest.approx(theirs_loss, rel=1e-5)
    assert abs(ours_loss - math.log(2)) > 1e-3
    for name, gradient in theirs_gradients.items():
        assert torch.allclose(ours_gradients[name], gradient, rtol=1e-3, atol=1e-6), name


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("dpo.loss=[ipo]", r"label_noise\.method=cdpo is defined for loss \[sigmoid\] alone"),
        ("dpo.ld_alpha=0.5", r"needs ld_alpha=null"),
        ("dpo.label_noise.judge=0.5", r"dpo\.label_noise\.judge=0\.5"),
    ],
)
def test_noise_where_it_has_no_meaning_is_refused(tiny_run, override, named):
    with pytest.raises(UserError, match=named):
        tiny_run("dpo.label_noise.method=cdpo", override)
