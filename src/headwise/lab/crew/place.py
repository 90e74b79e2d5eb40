"""Where jobs run: processes of this machine, or a Ray cluster."""

import re
from dataclasses import dataclass

from headwise.core.device import check_device_name
from headwise.core.errors import check_whole, require

LOCAL, RAY = "local", "ray"
_ADDRESS = re.compile(r"auto|(ray://)?(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):\d{1,5}")


@dataclass(frozen=True)
class Place:
    """Where, how many at once, and with what.

    `on` is "local", "ray" (Ray, started on this machine) or "ray:ADDRESS" (a cluster: "auto",
    "host:port" or "ray://host:port"). `jobs` run at once; by default one a core. On Ray a job gets
    `gpus_per_job` of a GPU. `device` is what torch computes on.
    """

    on: str = LOCAL
    jobs: int | None = None
    gpus_per_job: float = 0.0
    device: str = "cpu"

    def __post_init__(self) -> None:
        require(
            isinstance(self.on, str) and (self.on in (LOCAL, RAY) or self.address is not None),
            f"cannot run on {self.on!r}; on is local, ray (started here), or a cluster: ray:auto, "
            "ray:host:port or ray:ray://host:port",
        )
        if self.jobs is not None:
            check_whole(self.jobs, "jobs", 1)
        require(
            isinstance(self.gpus_per_job, int | float) and 0 <= self.gpus_per_job < float("inf"),
            f"gpus_per_job is {self.gpus_per_job}; it is a share of a GPU or a number of them, "
            "such as 0.25 or 1",
        )
        require(
            self.gpus_per_job <= 1 or self.gpus_per_job == int(self.gpus_per_job),
            f"gpus_per_job is {self.gpus_per_job:g}; above one it is a whole number",
        )
        require(
            self.gpus_per_job == 0 or self.on != LOCAL,
            "a share of a GPU is something Ray gives: leave --gpus-per-job out, or say --on ray",
        )
        check_device_name(self.device)

    @property
    def address(self) -> str | None:
        """Of the cluster to join; None where there is none to join."""
        address = self.on.removeprefix(f"{RAY}:")
        return address if address != self.on and _ADDRESS.fullmatch(address) else None
