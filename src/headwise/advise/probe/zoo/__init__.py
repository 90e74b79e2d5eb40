"""Tasks nobody tuned for, with the heads that they need known by construction: see `task`."""

from headwise.advise.probe.zoo.draw import CLASSES, draw_of_class, draw_task
from headwise.advise.probe.zoo.task import REFUSE, Answer, ZooData, ZooTask

__all__ = ["CLASSES", "REFUSE", "Answer", "ZooData", "ZooTask", "draw_of_class", "draw_task"]
