"""Does the order of the tokens matter? Asked of two short trainings."""

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.network import RATE, held_out_error, probe_shape, train_on
from headwise.advise.probe.descent.search import WIDE_HEAD_DIM
from headwise.advise.probe.samples.given import Samples
from headwise.advise.probe.samples.prepare import Prepared, prepare

SCREENING_STEPS, SCREENING_HEADS = 3000, 8
POSITIONS_PAY = 0.8  # they must lower the error to this share of what it is without them


def choose_positions(samples: Samples, seed: int, clock: Clock) -> tuple[bool, Prepared]:
    """Does the order of the tokens matter? Two short trainings, with positions and without.

    The answer, and the data prepared accordingly.
    """
    tried = []
    clock.planned += 2 * SCREENING_STEPS
    for positions in (False, True):
        data = prepare(samples, seed, positions)
        shape = probe_shape(data, SCREENING_HEADS, WIDE_HEAD_DIM)
        start = shape.initial_params(seed)
        trained = train_on(data, shape, start, seed, 0, SCREENING_STEPS, RATE, clock)
        error = 1.0 if trained is None else held_out_error(data, shape, trained[0])
        tried.append((error, data))
    (without, plain), (given, ordered) = tried
    pays = given < POSITIONS_PAY * without
    return pays, ordered if pays else plain
