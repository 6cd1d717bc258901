"""The local tier: an NLI model for faithfulness, a sentence encoder for non-redundancy, and the text checks beside them."""
