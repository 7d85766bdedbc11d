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


def said_first(pattern, stream):
    """The match in the first line that has one: notes of kernels that are compiled may come before it."""
    said = []
    for line in stream:
        said.append(line)
        found = re.search(pattern, line)
        if found:
            return found
    raise AssertionError("".join(said))


@contextmanager
def serving_from(*arguments, **variables):
    """`rankwell serve` with these arguments, on a free port."""
    command = [sys.executable, "-m", "rankwell", "serve", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})
    try:
        address = said_first(r"http://\S+", process.stderr)
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
        address = said_first(r"at (\S+:\d+)$", process.stderr)
        yield process, address[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stderr.close()
