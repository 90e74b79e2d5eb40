"""Does a Ray cluster answer at an address? Ray itself would try for a quarter of an hour.

Head and client server speak gRPC: each is asked for a service that only it has. Ray sends its token
to an address that it was given only if the user says so, and so do we: not at all.
"""

import os
import re
import socket
from typing import Any

from headwise.core.errors import InputError

_CLIENT = "ray://"
_ANSWER_SECONDS = 5.0
_SERVICE_SECONDS = 30.0  # a busy head may take its time


def check_answers(address: str) -> None:
    """Refuse "host:port" and "ray://host:port" where no such server answers."""
    server = address.removeprefix(_CLIENT)
    host, _, port = server.rpartition(":")
    try:
        where = re.sub(r"[\[\]]", "", host), int(port)
        socket.create_connection(where, _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"nobody answers at {server} ({error}); is the cluster up?") from error
    if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
        _check_service(server, address.startswith(_CLIENT))


def _check_service(server: str, client: bool) -> None:
    try:
        import grpc
    except ImportError:  # a Ray without its client has none
        return
    code = _answer(grpc, server, client)
    asked = "a client server" if client else "the head"
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        raise InputError(f"what answers at {server} is not {asked} of a Ray cluster")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        raise InputError(
            f"what answers at {server} is not {asked} of a Ray cluster; ray:HOST:PORT is for the "
            "head (port 6379 as a rule), ray:ray://HOST:PORT for the client server (port 10001)"
        )
    if code == grpc.StatusCode.UNAUTHENTICATED and "RAY_AUTH_MODE" not in os.environ:
        raise InputError(
            f"the Ray cluster at {server} asks for its token: set RAY_AUTH_MODE=token, and the "
            "token if it is not this user's own (RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH)"
        )


def _answer(grpc: Any, server: str, client: bool) -> Any:
    """The status with which a server answers an empty question to its service."""
    service = "RayletDriver/ClusterInfo" if client else "NodeInfoGcsService/CheckAlive"
    options = [("grpc.enable_http_proxy", 0)]  # as Ray has it
    with grpc.insecure_channel(server, options=options) as channel:
        try:
            channel.unary_unary(f"/ray.rpc.{service}")(b"", timeout=_SERVICE_SECONDS)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK
