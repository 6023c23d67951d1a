"""Makes the files of the image from the Containerfile, and runs them as the compose file says, without a container engine:

    without_engine.py PROGRAMS ROOT

PROGRAMS has what the first stage builds. The base image is stood in for by the commands that the second stage and the entrypoint need,
copied from this machine with their libraries. Every instruction of the second stage is followed in ROOT; then each service of the compose
file is started there, by its user, in a network of its own, where its own health check and the shell of the image speak to it. What they
write is in ROOT.log. Needs root.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
#: What Debian's image has and is needed.
BASE = "bash sh cat chmod chown dirname env groupadd id install ls mkdir rm sleep useradd".split()
LIMIT_SECONDS = 120


class Image:
    """What the instructions of the last stage have made."""

    def __init__(self, programs, root):
        self.programs, self.root = programs, root
        self.user, self.entrypoint, self.command, self.stop_signal = "root", [], [], "SIGTERM"

    def build(self):
        self.lay_base()
        text = (HERE / "Containerfile").read_text().replace("\\\n", " ")
        stage = re.split(r"^FROM .*$", text, flags=re.M)[-1]
        for line in filter(None, (line.strip() for line in stage.splitlines())):
            name, _, rest = line.partition(" ")
            getattr(self, f"do_{name.lower()}")(rest)

    def lay_base(self):
        for place in ("bin", "sbin", "lib", "lib64"):
            (self.root / "usr" / place).mkdir(parents=True, exist_ok=True)
            (self.root / place).symlink_to(f"usr/{place}")
        for place in ("proc", "dev", "tmp", "etc", "usr/local/bin"):
            (self.root / place).mkdir(parents=True, exist_ok=True)
        (self.root / "tmp").chmod(0o1777)
        (self.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
        (self.root / "etc/group").write_text("root:x:0:\n")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        for name in BASE:
            self.add_program(pathlib.Path(shutil.which(name, path="/usr/sbin:/usr/bin")), f"usr/bin/{name}")

    def add_program(self, source, target):
        shutil.copy(source, self.root / target)
        linked = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):
            place = self.root / library.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                shutil.copy(library, place)

    def do_run(self, line):
        subprocess.run(["chroot", self.root, "/bin/sh", "-c", line], check=True, env={"PATH": "/usr/sbin:/usr/bin"})

    def do_copy(self, line):
        words = line.split()
        built = words[0] == "--from=build"
        *sources, target = words[1:] if built else words
        for source in sources:
            place = pathlib.Path(target.lstrip("/")) / (pathlib.Path(source).name if target.endswith("/") else "")
            self.add_program(self.programs / pathlib.Path(source).name if built else SOURCE / source, place)

    def do_user(self, name):
        self.user = name

    def do_entrypoint(self, argv):
        self.entrypoint = json.loads(argv)

    def do_cmd(self, argv):
        self.command = json.loads(argv)

    def do_stopsignal(self, name):
        self.stop_signal = name

    def do_volume(self, path):
        assert (self.root / path.lstrip("/")).is_dir(), f"{path} is not there"

    def do_expose(self, port):
        self.port = int(port)


#: Sets up what an engine would have, and becomes the service.
STAGE = """
set -e
ip link set lo up
mount --bind /proc "$1/proc"
mount --bind /dev "$1/dev"
cd /
exec "${@:2}"
"""


class Running:
    """A service that runs in the image's files."""

    def __init__(self, image, argv, environment):
        self.image = image
        inside = self.inside([*image.entrypoint, *argv], environment)
        started = ["unshare", "--mount", "--net", "bash", "-c", STAGE, "stage", image.root, *inside]
        with open(f"{image.root}.log", "ab") as log:
            self.child = subprocess.Popen([str(word) for word in started], stdout=log, stderr=log)

    def inside(self, argv, environment):
        given = [f"{k}={v}" for k, v in {"PATH": "/usr/local/bin:/usr/bin:/bin", **environment}.items()]
        return ["chroot", f"--userspec={self.image.user}:{self.image.user}", str(self.image.root), "/usr/bin/env", "-i", *given, *argv]

    def call(self, *argv, timeout=30):
        """Runs a command in it, as `docker exec` does."""
        entered = ["nsenter", f"--target={self.child.pid}", "--mount", "--net", *self.inside(argv, {})]
        return subprocess.run([str(word) for word in entered], capture_output=True, text=True, timeout=timeout)

    def stop(self):
        self.child.send_signal(getattr(signal, self.image.stop_signal))
        assert self.child.wait(60) == 0, self.child.returncode


@contextlib.contextmanager
def service(image, argv, environment=()):
    running = Running(image, argv, dict(environment))
    try:
        yield running
        running.stop()
    finally:
        running.child.kill()
        running.child.wait()


def until(running, *argv):
    """Waits for a command in the service to succeed; returns its output."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        done = running.call(*argv)
        if done.returncode == 0:
            return done.stdout
        assert running.child.poll() is None, f"the service has ended: see {running.image.root}.log"
        assert time.monotonic() < deadline, done
        time.sleep(0.2)


def try_cluster(image, described):
    kind, *check = described["healthcheck"]["test"]
    assert kind == "CMD"
    for start in range(2):
        with service(image, described["command"]) as running:
            until(running, *check)
            if start == 0:
                until(running, "mongo", "--quiet", "--eval", 'db.c.insertOne({_id: 1}, {writeConcern: {w: "majority"}})')
            assert until(running, "mongo", "--quiet", "--eval", "print(db.c.count())").strip() == "1"
    empty(image)


def try_server(image, described):
    environment = {k: re.sub(r"\$\{\w+:-(.*)\}", r"\1", v) for k, v in described["environment"].items()}
    user, password = environment["MONGO_INITDB_ROOT_USERNAME"], environment["MONGO_INITDB_ROOT_PASSWORD"]
    assert any(port.endswith(f":{image.port}") for port in described["ports"])
    (image.root / "docker-entrypoint-initdb.d/1.js").write_text('db.seeds.insertOne({from: "a script"})')
    login = ["-u", user, "-p", password, "--authenticationDatabase", "admin"]
    for _ in range(2):
        with service(image, image.command, environment) as running:
            counted = until(running, "mongo", "--quiet", *login, "--eval", "print(db.seeds.find().itcount())")
            assert counted.strip() == "1", counted
            stranger = running.call("mongo", "--quiet", "--eval", "db.seeds.findOne()")
            assert stranger.returncode != 0 and "auth" in (stranger.stdout + stranger.stderr), stranger
    empty(image)


def empty(image):
    """The volume, for the next service."""
    for entry in (image.root / "data/db").iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def main(programs, root):
    image = Image(pathlib.Path(programs).resolve(), pathlib.Path(root).resolve())
    image.build()
    services = yaml.safe_load((HERE / "compose.yaml").read_text())["services"]
    tries = {"cluster": try_cluster, "server": try_server}
    assert services.keys() == tries.keys()
    for name, described in services.items():
        assert described["build"] == {"context": "../..", "dockerfile": "packages/container/Containerfile"}
        assert all(volume.endswith(":/data/db") for volume in described["volumes"])
        tries[name](image, described)
        print(f"the service {name} works")


if __name__ == "__main__":
    if os.geteuid() == 0:
        main(*sys.argv[1:])
    else:
        print("not run: not root")
