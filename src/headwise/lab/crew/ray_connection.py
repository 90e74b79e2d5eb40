"""This process's connection to Ray: started here, or a cluster joined; made once and kept.

Several studies, or the rounds of a plan, share it. Ray ends it with the process.
"""

import logging
import os
import signal
import threading
import warnings
from typing import Any

from headwise.core.errors import InputError
from headwise.lab.crew.place import Place
from headwise.lab.crew.ray_address import check_answers

_OBJECT_STORE_BYTES = 200 * 2**20  # results are small, and texts are sent once
_TROUBLES = (ConnectionError, RuntimeError, ValueError, TimeoutError)

_joined: str | None = None


def connected(place: Place) -> Any:
    """The module `ray`, connected to where `place` says."""
    global _joined
    try:
        import ray
    except ImportError as error:
        raise InputError(
            "running on Ray needs the package ray: pip install 'headwise[cluster]'"
        ) from error
    if ray.is_initialized():  # by us, or by the program that calls us
        if _joined not in (None, place.on):
            raise InputError(
                f"this process works on {_joined} already; one process, one cluster: start another "
                f"for {place.on}"
            )
        return ray
    if place.address not in (None, "auto"):
        check_answers(place.address)
    _join(ray, place)
    _joined = place.on
    return ray


def _join(ray: Any, place: Place) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # on a busy machine 10 are few
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a warning about the future
    options: dict[str, Any] = {"address": place.address, "log_to_driver": False}
    if place.address is None:
        options |= {
            "address": "local",
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
    if (place.address or "").startswith("ray://"):
        logging.getLogger("ray.client_builder").setLevel(logging.WARNING)
    else:
        options["logging_level"] = "error"
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own, of no use to who called us
            ray.init(**options)
            _keep_standard_output(ray)
    except (*_TROUBLES, ray.exceptions.RayError) as error:
        sentence = " ".join(str(error).split())
        raise InputError(
            f"cannot use Ray at {place.address or 'this machine'}: {sentence}"
        ) from error
    finally:
        if terminate is not None and _in_main_thread():
            signal.signal(signal.SIGTERM, terminate)  # Ray sets its own


def _keep_standard_output(ray: Any) -> None:
    """Ray writes news of dead workers to standard output, between what we print there as JSON.

    There is no option against it. What it says is in the error of the job that died.
    """
    worker = ray._private.worker
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda data, ignore_prefix: None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
