"""The closed vocabularies of the data set card. A value outside them is reported and kept."""

AXES = ("natural", "deixis", "faithfulness", "length", "non_redundancy", "style", "terminology")
TYPES = ("pointing", "slide", "figure", "reveal", "animation", "ink", "math", "table", "chart", "transition")
LABEL_SOURCES = ("construction", "judge")
SOURCES = ("natural_judged", "constructed_counterfactual")
STRATA = ("natural_decided", "natural_flip", "controlled")
COMPONENTS = ("style", "terminology", "length", "deixis", "faithfulness", "non_redundancy")
RATERS = ("rater_1", "rater_2", "rater_3", "rater_4")
CHOICES = ("option_a", "option_b", "tie")
UNKNOWN_SUBJECT = "unknown"
