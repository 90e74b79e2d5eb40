"""Pictures to classify, placed at random in a larger frame: CIFAR-10, or one's own."""

from headwise.tasks.images.cifar import CIFAR10, KnownImages
from headwise.tasks.images.pictures import Images

__all__ = ["CIFAR10", "Images", "KnownImages"]
