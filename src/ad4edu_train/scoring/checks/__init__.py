"""The mechanical checks by rule id. A rule of the mech tier without a check here cannot be scored."""

from ad4edu_train.scoring.checks import deixis, delivery, leaks, length, narration, places, terminology, viewing
from ad4edu_train.scoring.checks.phrases import Check

MECHANICAL: dict[str, Check] = {
    "S01": viewing.s01,
    "S02": narration.s02,
    "S03": narration.s03,
    "S04": viewing.s04,
    "S05": leaks.s05,
    "S06": narration.s06,
    "S07": narration.s07,
    "S08": viewing.s08,
    "S09": leaks.s09,
    "S10": leaks.s10,
    "S11": delivery.s11,
    "S12": delivery.s12,
    "S13": delivery.s13,
    "S14": delivery.s14,
    "T01": terminology.t01,
    "T02": terminology.t02,
    "T03": terminology.t03,
    "T04": terminology.t04,
    "T05": terminology.t05,
    "T06": terminology.t06,
    "T07": terminology.t07,
    "T08": terminology.t08,
    "T09": terminology.t09,
    "T10": terminology.t10,
    "L01": length.l01,
    "L02": length.l02,
    "L03": length.l03,
    "L04": length.l04,
    "L05": length.l05,
    "L06": length.l06,
    "D01": deixis.d01,
    "D02": deixis.d02,
    "D03": deixis.d03,
    "D04": places.d04,
    "D05": places.d05,
    "D06": deixis.d06,
    "D07": deixis.d07,
    "D08": deixis.d08,
}

# Rules that are broken because nothing is named; where one of the pointing or vague phrases below stands, that phrase is the reason,
# so it is charged once and not in each of them.
UNNAMED = frozenset({"T06", "D06"})
PHRASES = frozenset({"T07", "D01", "D02", "D03", "D04", "D05", "D08"})
