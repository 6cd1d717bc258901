"""Style, talk about looking: S01 viewer wording, S04 camera, S08 lead-ins."""

from collections.abc import Iterable

from ad4edu_train.scoring.checks.phrases import BEGIN, PAGE, Hit, Phrase, all_hits, alternatives
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.standard import Scoring
from ad4edu_train.scoring.text import Text

_DETERMINER = (
    r"(?:the|a|an|this|that|our|one|two|three|four|five|six|several|many|some|how|what|no|only|both"
    r"|all|multiple|various|\d+)"
)
_CANVAS = alternatives(
    "image picture slide screen video clip frame visual graphic figure scene photo photograph illustration screenshot"
)
_SHOW = alternatives(
    "shows depicts displays illustrates presents contains portrays reveals represents demonstrates "
    "visuali[sz]es includes describes captures"
)
_SEE = alternatives("see sees seen notice observe view spot watch")
_EASY_ADVERB = r"(?:\s+(?:now|also|clearly|then|again|just|already|all|easily|even|here|really))?"

VIEWER = (
    # "The image shows"; a compound such as "microscope slide" or "slide rule" is content, and so is a numbered figure.
    Phrase(
        rf"(?:{BEGIN}|(?<=,\s))(?:(?:the|this|that|an?|our|each|next|new|current)\s+){{0,2}}(?:(?:current"
        rf"|next|new|first|second|third|final|last|"
        rf"following|opening|title|above|main|same|whole|attached|lecture"
        rf"|powerpoint)\s+)?{_CANVAS}(?:\s+(?:in question|above|below|here|on screen|"
        rf"on the (?:slide|screen|left|right)))?(?:\s+(?:now|also|then|clearly|simply|just|mainly"
        rf"|briefly))?\s+(?:{_SHOW}|features(?=\s+{_DETERMINER}))\b",
        "image picture slide screen video clip frame visual graphic figure scene photo photograph illustration screenshot",
    ),
    Phrase(
        rf"\b(?:we|you)(?:'ve|'ll|'re|'d)?(?:\s+(?:can|could|may|might|will|should|have|are"
        rf"|do))?{_EASY_ADVERB}\s+{_SEE.replace('watch', 'watch(?:ing)?|seeing|looking at|look at')}\b",
        "we you we've we'll we're we'd you've you'll you're you'd",
    ),
    Phrase(
        rf"\b(?:the\s+)?(?:viewers?|audience)(?:\s+(?:can|could|may|might|will"
        rf"|should))?{_EASY_ADVERB}\s+{_SEE}\b",
        "viewer viewers audience",
    ),
    # Students and participants also see things in an experiment; with a modal, or before a place on the page, they are the audience.
    Phrase(
        rf"\b(?:students?|learners?|one|people|everyone|anyone|listeners?|observers?"
        rf"|onlookers?)(?:\s+(?:can|could|may|might|will"
        rf"|should)){_EASY_ADVERB}\s+(?:see|notice|observe|view)\b"
        rf"|\b(?:students?|learners?)\s+(?:see|notice|observe|view)s?\b(?=[^.;]*\b(?:on|in) (?:the|this) {PAGE}\b|\s+here\b)"
        rf"|(?:{BEGIN}|(?<=,\s)|\bas\s|\bhere\s)one\s+sees\b",
        "student students learner learners one people everyone anyone listener listeners observer observers onlooker onlookers",
    ),
    Phrase(
        rf"\b(?:(?:can|could|may|might) (?:also |now |clearly )?be (?:seen|observed|viewed|noticed)|(?:is"
        rf"|are) (?:clearly |also )?(?:seen|visible) (?=here|(?:on|in) (?:the|this) {PAGE})"
        rf"|(?:is|are) (?:now |also )?(?:shown|displayed|depicted|pictured|illustrated|presented"
        rf"|portrayed) (?:here\b|(?:on|in) (?:the|this) (?:current |next )?{PAGE}\b)"
        rf"|as (?:is )?(?:seen|shown|depicted|illustrated|pictured|displayed) (?:here\b|above\b|below\b"
        rf"|(?:on|in|by) (?:the|this) {PAGE}\b))",
        "seen observed viewed noticed visible shown displayed depicted pictured illustrated presented portrayed",
    ),
    Phrase(
        rf"{BEGIN}(?:(?:seen|pictured|depicted|visible) (?:here|on|in|above|below|behind|is|are)\b|(?:shown"
        rf"|displayed) (?:here|(?:on|in) (?:the|this) {PAGE})\b)",
        "seen pictured depicted visible shown displayed",
    ),
)

CAMERA = (
    Phrase(
        r"\b(?:the |a )?camera\s+(?:\w+ly\s+|then\s+|now\s+)?(?:zooms?|pans?|tilts?|cuts?|doll(?:y|ies)"
        r"|tracks?|pulls?|pushes|swings?|lingers?|follows?|moves?|"
        r"sweeps?|closes in|rolls?|shifts?|switches|rotates|holds|shakes|angle)\b",
        "camera",
    ),
    Phrase(
        r"\b(?:shot|scene|view|video|footage|recording|clip|picture|perspective)\s+(?:\w+ly\s+|then\s+"
        r"|now\s+)?(?:cuts|pans|fades|zooms|dissolves|tilts|tracks|jumps|pulls back|wipes)\b",
        "shot scene view video footage recording clip picture perspective",
    ),
    Phrase(
        rf"(?:{BEGIN}|,\s)(?P<at>(?:(?:we|smash|jump|quick|hard)\s+)?(?:cuts?|fades?"
        rf"|dissolves?)\s+(?:back\s+)?(?:to|into)\b|(?:zoom(?:s|ing)?)\s+(?:in|out|on|to)\b|pan(?:s"
        rf"|ning)?\s+(?:to|across|left|"
        r"right|over|up|down)\b|fade (?:in|out)\b|tilt (?:up|down)\b)",
        "cut cuts fade fades dissolve dissolves zoom zooms zooming pan pans panning tilt",
    ),
    Phrase(
        r"\b(?:close[- ]?up|wide|medium|tracking|long|establishing|aerial|overhead|panning|reverse|two"
        r"|point of view|pov)[- ](?:angle )?shots?\b"
        r"|\bclose-?ups?\b(?!\s+(?:photo|photograph|image|micrograph|drawing|picture|map|study)s?\b)|\bwide[- ]angle view\b",
        "shot shots close closeup closeups up ups angle",
    ),
)

LEAD_INS = (
    Phrase(
        rf"{BEGIN}(?P<at>(?:here )?(?:on|in|within|across) (?:the|this|that|our) (?:\w+ )?(?:slide|screen|image|picture"
        rf"|page|frame|video|figure|photo|photograph|scene|clip|moment|section|lecture|part|next)\s*[,:])",
        "on in within across",
    ),
    Phrase(
        rf"{BEGIN}(?P<at>at this (?:point|moment|stage|time)\b|currently\b|as (?:the|our) (?:lecturer"
        rf"|professor|speaker|presenter|instructor|teacher) (?:speaks|talks|explains|says|continues"
        rf"|discusses|mentions|describes|goes on)\b|"
        r"moving on\b|next up\b|meanwhile\b|basically\b|essentially\b|in summary(?=\s*[,:])|to "
        r"summari[sz]e\b|to sum up\b|in conclusion\b|overall,|as (?:mentioned|discussed|noted|stated"
        r"|described)\b|now,|so,|okay,|ok,|well,|alright,|"
        r"there (?:is|are) (?:an?|the|some) (?:\w+ )?(?:image|picture|photo|photograph|slide|illustration"
        r"|graphic|visual|drawing)s? (?:of|showing|that|with|which)\b|here (?:we have|is|are)\b|this is "
        r"an? (?:image|picture|photo|slide)\b|"
        rf"what (?:we have|is shown|follows) (?:here )?is\b|welcome (?:to|back)\b|let's (?:begin|start)\b"
        rf"|to (?:begin|start) with\b|first of all\b)",
        "at currently as moving next meanwhile basically essentially in to overall now so okay ok well "
        "alright there here this what welcome let's first",
    ),
)


def s01(text: Text, moment: Moment, scoring: Scoring) -> Iterable[Hit]:
    return all_hits(VIEWER, text)


def s04(text: Text, moment: Moment, scoring: Scoring) -> Iterable[Hit]:
    return all_hits(CAMERA, text)


def s08(text: Text, moment: Moment, scoring: Scoring) -> Iterable[Hit]:
    return all_hits(LEAD_INS, text)
