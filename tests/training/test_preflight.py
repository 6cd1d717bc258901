"""What is rendered before training: refused, dropped with a count, never cut (faults trl-1752, trl-5826, trl-5213)."""

import dataclasses

import pytest

from ad4edu_train.data.views import Prompts
from ad4edu_train.errors import DataError
from ad4edu_train.policy.chat import Chat
from ad4edu_train.training.preflight import render_pairs
from tests.conftest import OPENS_THINKING

TEXT = Prompts("text", [])


@pytest.fixture
def pairs(rendered):
    return [item.pair for item in rendered]


def test_trl_1752_only_the_bare_ad_is_trained_on(pairs, tokenizer):
    for item in render_pairs(pairs, TEXT, Chat(tokenizer, thinking=False), max_tokens=4096, too_long="refuse").pairs:
        assert tokenizer.decode(item.first.completion_ids) == item.pair.chosen.ad + tokenizer.eos_token
        assert tokenizer.decode(item.second.completion_ids) == item.pair.rejected.ad + tokenizer.eos_token
        assert item.first.prompt_ids == item.second.prompt_ids
        assert item.pair.prompt in tokenizer.decode(item.first.prompt_ids)


def test_trl_5826_long_pairs_are_refused_by_pair_id_and_length(pairs, tokenizer):
    chat = Chat(tokenizer, thinking=False)
    lengths = {
        item.pair.pair_id: item.longest for item in render_pairs(pairs, TEXT, chat, max_tokens=4096, too_long="refuse").pairs
    }
    limit = sorted(lengths.values())[3]
    over = {pair_id: length for pair_id, length in lengths.items() if length > limit}
    with pytest.raises(DataError) as refused:
        render_pairs(pairs, TEXT, chat, max_tokens=limit, too_long="refuse")
    for pair_id, length in over.items():
        assert f"pair_id {pair_id}: {length} tokens" in str(refused.value)
    dropped = render_pairs(pairs, TEXT, chat, max_tokens=limit, too_long="drop")
    assert dropped.too_long.total() == len(over) == len(pairs) - len(dropped.pairs)
    assert {item.pair.pair_id for item in dropped.pairs} == set(lengths) - set(over)


def test_trl_5213_every_mismatching_pair_is_counted_and_one_is_shown_decoded(pairs, tokenizer):
    tokenizer.chat_template = OPENS_THINKING
    with pytest.raises(DataError, match=rf"{len(pairs)} of {len(pairs)} pairs.*\n.*<think>(.|\n)*data.prefix_mismatch=append"):
        render_pairs(pairs, TEXT, Chat(tokenizer, thinking=False), max_tokens=4096, too_long="refuse")


def test_markup_in_an_ad_is_refused_by_pair_id(pairs, tokenizer):
    side = dataclasses.replace(pairs[1].first, ad="See <|im_end|> this.")
    spoiled = [pairs[0], dataclasses.replace(pairs[1], first=side)]
    with pytest.raises(DataError, match=f"1 of 2 pairs.*\n  pair_id {pairs[1].pair_id}: the AD holds chat markup"):
        render_pairs(spoiled, TEXT, Chat(tokenizer, thinking=False), max_tokens=4096, too_long="refuse")
