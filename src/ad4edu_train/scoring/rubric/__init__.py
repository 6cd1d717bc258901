"""The rubric tier: a language model grades the six categories through any OpenAI-compatible endpoint. It costs money."""
