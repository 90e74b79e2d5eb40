"""What a recovery looks at to tell where it stands: text that it is not trained on."""

import torch
from torch import Tensor, nn

from headwise.pretrained.text.calibration import every_fifth, spread, token_count

_ASIDE, _LEAST = 4096, 4  # tokens and batches looked at
_FAR, _MISSES = 1.5, 2  # times the smallest loss, looks in a row


def set_aside(
    batches: list[dict[str, Tensor]],
) -> tuple[list[dict[str, Tensor]], list[dict[str, Tensor]]]:
    """(what is trained on, what is looked at): from every fifth batch, as much as a look takes."""
    _, fifth = every_fifth(batches)
    if not fifth:
        return batches, batches
    aside = spread(fifth, max(_LEAST, round(_ASIDE * len(fifth) / token_count(fifth))))
    looked_at = {id(batch) for batch in aside}
    return [batch for batch in batches if id(batch) not in looked_at], aside


class Best:
    """The parameters' values at the smallest loss seen so far."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self._parameters, self._loss, self._missed = parameters, float("inf"), 0
        self._keep()

    def see(self, loss: float) -> bool:
        """Whether to go on from here: no number, far from the smallest, or twice in a row not the
        smallest, is none to go on from."""
        if loss < self._loss:
            self._loss, self._missed = loss, 0
            self._keep()
            return True
        self._missed += 1
        return loss < _FAR * self._loss and self._missed < _MISSES

    def _keep(self) -> None:
        self._values = [parameter.detach().clone() for parameter in self._parameters]

    @torch.no_grad()
    def restore(self) -> None:
        """Give the parameters those values again."""
        self._missed = 0
        for parameter, value in zip(self._parameters, self._values, strict=True):
            parameter.copy_(value)
