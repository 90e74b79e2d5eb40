"""Several Ray nodes on one machine, in a process of their own: what a test talks to by lines.

Prints the address. Then every line of standard input is a command: `add`, `remove` (the node that
joined last goes at once, as if its power were cut); each is answered by `done`. The end of the
input ends the cluster.
"""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

STORE_BYTES = 100 * 2**20


@contextmanager
def small_cluster(
    nodes: int, cpus: int, environment: Mapping[str, str]
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of such a cluster, and the process that holds it."""
    with subprocess.Popen(
        [sys.executable, __file__, str(nodes), str(cpus)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
        process.stdin.close()
        process.wait(120)


def serve(nodes: int, cpus: int) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # the machine may be busy
    warnings.simplefilter("ignore")
    from ray.cluster_utils import Cluster

    size = {"num_cpus": cpus, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    others = [cluster.add_node(wait=False, **size) for _ in range(nodes - 1)]
    cluster.wait_for_nodes(timeout=300)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "add":
            others.append(cluster.add_node(wait=False, **size))
        else:
            cluster.remove_node(others.pop(), allow_graceful=False)
        print("done", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
