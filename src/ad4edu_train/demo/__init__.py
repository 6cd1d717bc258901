"""The embedded default: a synthetic lecture corpus in the exact shape of the AD4Edu card, marked synthetic everywhere."""
