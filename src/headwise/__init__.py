"""How many attention heads does a task, or a model, need; how wide; and in which layers?"""

from importlib.metadata import version

__version__ = version("headwise")
