"""A server in a process of its own, as users run it."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager

from rankwell import Client


def serving(folder, *options, **variables):
    """A server of `folder/index` on a free port: its process and a client."""
    return serving_from(str(folder / "index"), *options, **variables)


@contextmanager
def serving_from(*arguments, **variables):
    """`rankwell serve` with these arguments, on a free port."""
    command = [sys.executable, "-m", "rankwell", "serve", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})
    try:
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address, line + process.stderr.read()
        with Client(address[0], token="secret") as client:
            yield process, client
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stderr.close()


@contextmanager
def node_process(*arguments, **variables):
    """`rankwell node` with these arguments, on a free port: its process and address."""
    command = [sys.executable, "-m", "rankwell", "node", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})
    try:
        line = process.stderr.readline()
        address = re.search(r"at (\S+:\d+)$", line)
        assert address, line + process.stderr.read()
        yield process, address[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stderr.close()
