"""Ways from a sequence to one vector: heads of any variant, and what stands beside them."""

from headwise.nets.sequence._pooling import Pooling
from headwise.nets.sequence.convolution import Convolutions
from headwise.nets.sequence.heads import HeadPooling
from headwise.nets.sequence.recurrence import Recurrence
from headwise.nets.sequence.sets import SetPooling
from headwise.nets.sequence.state_space import StateSpace

__all__ = ["Convolutions", "HeadPooling", "Pooling", "Recurrence", "SetPooling", "StateSpace"]
