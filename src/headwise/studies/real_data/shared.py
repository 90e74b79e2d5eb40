"""Claims, figures and notes that both studies on real data have."""

from headwise.lab.study import Claim, Figure, IntervalFigure
from headwise.studies.real_data import claims
from headwise.studies.real_data.arms import FIXED_HEADS, FIXED_WIDTH, GROWING
from headwise.studies.real_data.effects import effect_points, held_out_points

PAPER = "The Effect of Attention Head Count on Transformer Approximation, arXiv 2510.06662"
CONTROL = "the control that reviewers asked for"
ARMS_NOTE = (
    "Three arms: the paper's, in which width grows with the heads; heads alone, at one total width "
    "(all of its networks have the same parameters to the last one); width alone, with one number "
    "of heads. Both controls multiply what they vary by the factor of the paper's arm. Networks "
    "that are in several arms are trained once."
)
SCORE_NOTE = (
    "The score is the paper's: accuracy on the training examples themselves, at the end of "
    "training and without dropout. It measures what a network can fit in the given steps. A tie "
    "for the first place counts as a wrong answer."
)
TRAINING_NOTE = (
    "AdamW, betas (.9, .95), 10 % warm-up, cosine to zero, gradients clipped at norm 1; one "
    "learning rate for all networks. Pre-norm layers with GELU and a feed-forward network four "
    "times as wide as the stream. The paper states none of the rate, the batch and the epochs."
)
SEEDS_NOTE = (
    "Intervals are 95 % t-intervals over seeds (initial weights and the order of examples); the "
    "examples are the same for all seeds, so the intervals say nothing of other examples. "
    "Differences are taken seed by seed."
)


def shared_claims(training: str, validation: str) -> tuple[Claim, ...]:
    """Claims of both studies; `training` and `validation` name the published tables."""
    return (
        Claim("Training accuracy rises with heads", training, claims.rises_with_heads),
        Claim("Training accuracy falls with the length T", training, claims.falls_with_length),
        Claim(
            "Held-out accuracy shows no such rise (less than half of it)",
            validation,
            claims.no_transition_held_out,
        ),
        Claim("At fixed width, heads matter", CONTROL, claims.heads_matter),
        Claim("With fixed heads, width matters", CONTROL, claims.width_matters),
    )


def shared_figures(table: str, colour: str) -> tuple[Figure | IntervalFigure, ...]:
    """Figures of both studies; a line for each value of `colour`."""
    return (
        Figure(
            name="heads",
            title="Training error against heads, with and without more width",
            caption="Mean training error (1 − accuracy) over seeds with its 95 % interval.",
            panels={
                GROWING: f"Width grows with heads ({table})",
                FIXED_WIDTH: "Fixed total width",
            },
            x="heads",
            colour=colour,
        ),
        Figure(
            name="width",
            title="Width at a fixed number of heads",
            caption="Mean training error (1 − accuracy) over seeds with its 95 % interval.",
            panels={FIXED_HEADS: "Heads are fixed, their dimension grows"},
            x="total_width",
            colour=colour,
            x_log=True,
        ),
        IntervalFigure(
            name="effects",
            title="Heads or width?",
            caption="Change of accuracy over the whole range of each arm, seed by seed: mean and "
            "95 % interval; right of 0 is better.",
            axis="change of accuracy",
            data=effect_points,
            zero=True,
            ordered=True,
        ),
        IntervalFigure(
            name="held-out",
            title="Held-out accuracy",
            caption="Mean over seeds with its 95 % interval; right is better.",
            axis="held-out accuracy",
            data=held_out_points,
            ordered=True,
        ),
    )
