"""An object store on loopback, in a process of its own: moto's server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

SERVE = """\
import sys
import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
boto3.client("s3", endpoint_url=f"http://{host}:{port}").create_bucket(Bucket=sys.argv[1])
print(host, port, flush=True)
sys.stdin.read()  # until the test lets go, or dies
server.stop()
"""
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class Bucket(NamedTuple):
    """An empty bucket.

    Attributes:
        name: of the bucket.
        endpoint: URL of the server.
        environment: credentials, as any AWS program takes them.
    """

    name: str
    endpoint: str
    environment: dict[str, str]


@contextmanager
def s3_bucket(name: str = "bucket") -> Iterator[Bucket]:
    """Serve an empty bucket on a free port; the server ends with the block, or with the test."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, name], env=os.environ | CREDENTIALS, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        host, port = server.stdout.readline().split()
        yield Bucket(name, f"http://{host}:{port}", CREDENTIALS)
    finally:
        # Its own end waits for connections that clients keep open.
        server.kill()
        server.communicate()
