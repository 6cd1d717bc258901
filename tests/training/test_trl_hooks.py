"""What is overridden or relied on in TRL: an upgrade that moves one of these fails here by name."""

import inspect

import pytest
import trl.trainer.utils
from trl import DPOTrainer

from ad4edu_train.training.trainer import PairTrainer

pytestmark = pytest.mark.slow
HOOKS = (
    "_prepare_dataset",
    "_precompute_ref_logps",
    "_get_train_sampler",
    "_compute_loss",
    "_save_checkpoint",
    "_get_output_dir",
)


@pytest.mark.parametrize("hook", HOOKS)
def test_overridden_hook_exists_in_trl(hook):
    assert hook in vars(PairTrainer)
    assert callable(getattr(DPOTrainer, hook))


def test_trl_asks_for_triton_by_the_name_that_is_replaced():
    assert "_use_triton(hidden_states.device)" in inspect.getsource(trl.trainer.utils.add_fused_lm_head)


def test_scoring_completions_only_gives_the_loss_of_scoring_everything(trainer, loss_and_gradients, rendered, monkeypatch):
    options = ("trainer.layout=stock", "trainer.precompute_reference=false")
    ours, gradients = loss_and_gradients(trainer(rendered, *options), rendered)
    monkeypatch.setattr(trl.trainer.utils, "_use_triton", lambda device: False)
    stock, stock_gradients = loss_and_gradients(trainer(rendered, *options), rendered)
    assert ours == pytest.approx(stock, rel=1e-6)
    for name, gradient in stock_gradients.items():
        assert (gradients[name] - gradient).abs().max() <= 1e-5 * gradient.abs().max() + 1e-9, name


def test_reference_computed_beforehand_gives_the_loss_of_trls_own(trainer, loss_and_gradients, rendered):
    own = trainer(rendered, "trainer.layout=stock", "trainer.precompute_reference=true")
    theirs = trainer(rendered, "trainer.layout=stock", "trainer.precompute_reference=false")
    assert loss_and_gradients(own, rendered)[0] == pytest.approx(loss_and_gradients(theirs, rendered)[0], rel=1e-5)


def test_batches_have_trls_layout(rendered, trainer):
    made = trainer(rendered)
    batch = made.data_collator([{"index": 1}])
    chosen, rejected = rendered[1].first, rendered[1].second
    for row, side in enumerate((chosen, rejected)):
        length = len(side.prompt_ids + side.completion_ids)
        assert tuple(batch["input_ids"][row, :length].tolist()) == side.prompt_ids + side.completion_ids
        assert int(batch["completion_mask"][row].sum()) == len(side.completion_ids)
        assert int(batch["attention_mask"][row].sum()) == length
