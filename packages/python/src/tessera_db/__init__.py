"""Starts MongoDB-compatible servers and clusters: `with tessera_db.start(shards=2) as cluster: MongoClient(cluster.uri)`."""

import atexit
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

__all__ = ["BINARY", "Cluster", "start"]

#: The program that this package brings along.
BINARY = os.environ.get("TESSERA_BINARY") or str(pathlib.Path(__file__).parent / "bin" / "tessera")


def _arguments(options):
    """The options of `tessera up`, as arguments: `config_replicas=3`, `set_parameter={"a": 1}`."""
    given = []
    for key, value in {"port": 0, **options}.items():
        name = "--" + key.replace("_", "-")
        if value is True:
            given.append(name)
        elif isinstance(value, dict):
            for parameter, v in value.items():
                given += [name, f"{parameter}={v}"]
        elif value is not None and value is not False:
            given += [name, str(value)]
    return given


class Cluster:
    """A cluster that runs. `info` is what `tessera up --json` prints."""

    def __init__(self, child, info):
        self._child = child
        self.info = info
        self.uri = info["uri"]

    def snapshot(self, name):
        """Keeps all databases as they are now."""
        self._ask("snapshot", name)

    def restore(self, name):
        """Puts all databases back to a snapshot."""
        self._ask("restore", name)

    def _ask(self, *what):
        done = subprocess.run([BINARY, *what, "--uri", self.uri], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())

    def stop(self):
        """Ends all nodes."""
        _end(self._child)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def _end(child):
    if child.poll() is None:
        child.terminate()
    child.wait()


def _drain(pipe):
    with pipe:
        while pipe.read(65536):
            pass


def start(**options):
    """Starts what `tessera up` starts with these options, on free ports unless they name one; returns when it is ready.

    It ends with `stop()`, and with this program at the latest."""
    # A pipe that nobody reads would hold up the servers once it is full.
    with tempfile.TemporaryFile(mode="w+") as errors:
        child = subprocess.Popen([BINARY, "up", "--json", *_arguments(options)], stdout=subprocess.PIPE, stderr=errors, text=True)
        atexit.register(_end, child)
        line = child.stdout.readline()
        threading.Thread(target=_drain, args=(child.stdout,), daemon=True).start()
        if not line:
            _end(child)
            errors.seek(0)
            raise RuntimeError(f"tessera ended with exit code {child.returncode}: {errors.read().strip()}")
    return Cluster(child, json.loads(line))


def main():
    """The command `tessera`."""
    os.execv(BINARY, [BINARY, *sys.argv[1:]])
