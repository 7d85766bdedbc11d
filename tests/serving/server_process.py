"""A server in a process of its own, as users run it."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager

from rankwell import Client


@contextmanager
def serving(folder, *options, **variables):
    """A server of `folder/index` on a free port: its process and a client."""
    command = [sys.executable, "-m", "rankwell", "serve", str(folder / "index"), "--port", "0", *map(str, options)]
    environment = {**os.environ, **variables}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
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
