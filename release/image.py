#!/usr/bin/env python3
"""The second half of the Containerfile without a container engine: image.py PROGRAM.

Makes a Debian in a folder (debootstrap), does there what the Containerfile's last stage says, with PROGRAM as the one that
its first stage would build, and starts the server as an engine would: as the user of the image, with a run of a family that
was learnt outside, on a network of its own. The health check and a question over HTTP must succeed. Needs root.
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
BASE = HERE / "target/tools/bookworm.tar"


def last_stage(text):
    """Instructions of the last stage, with their lines joined."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    begins = max(at for at, line in enumerate(lines) if line.startswith("FROM "))
    return [line.split(None, 1) for line in lines[begins:]]


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def base():
    """A minimal Debian, made once."""
    if BASE.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        run("debootstrap", "--variant=minbase", "bookworm", folder, stdout=subprocess.DEVNULL)
        BASE.parent.mkdir(parents=True, exist_ok=True)
        run("tar", "-C", folder, "-cf", BASE, "--exclude=./dev/*", "--exclude=./var/cache/apt/*", ".")


class Image:
    def __init__(self, root, program):
        self.root, self.program, self.user, self.health = root, program, None, None
        self.entry, self.command = [], []

    def step(self, instruction, rest):
        if instruction == "COPY":
            *sources, target = shlex.split(rest.replace("--from=build ", ""))
            target = self.root / target.lstrip("/") / "" if target.endswith("/") else self.root / target.lstrip("/")
            into = rest.endswith("/")
            (target if into else target.parent).mkdir(parents=True, exist_ok=True)
            for source in sources:
                inside = source.removeprefix("/source/")
                run("cp", self.program if inside.startswith("target/") else HERE / inside, target)
        elif instruction == "RUN":
            run("chroot", self.root, "/bin/sh", "-c", rest)
        elif instruction == "USER":
            self.user = rest
        elif instruction == "HEALTHCHECK":
            self.health = json.loads(rest[rest.index("CMD") + 3 :])
        elif instruction == "ENTRYPOINT":
            self.entry = json.loads(rest)
        elif instruction == "CMD":
            self.command = json.loads(rest)
        elif instruction not in ("FROM", "EXPOSE"):
            sys.exit(f"Containerfile: {instruction} is not understood here")

    def inside(self, *command):
        """A command as the user of the image."""
        passwd = (self.root / "etc/passwd").read_text()
        uid, gid = re.search(rf"^{self.user}:[^:]*:(\d+):(\d+):", passwd, re.M).groups()
        return ["chroot", f"--userspec={uid}:{gid}", "--groups=", self.root, *command]


def learn(program, folder):
    """A small run, readable by everybody, as `--volume …:/run-directory:ro` would show it."""
    data = folder / "family"
    run(program, "generate", "family", "--people", "120", "--seed", "1", "--out", data, "--quiet", stdout=subprocess.DEVNULL)
    run(program, "run", data, "--set", "system=rules", "--out", folder / "run", "--quiet", stdout=subprocess.DEVNULL)
    subject, relation, _ = (data / "test.tsv").read_text().splitlines()[0].split("\t")
    return subject, relation


def main():
    if len(sys.argv) == 2:
        base()
        # Ports of this machine may be taken, so the server has a network of its own.
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, __file__, sys.argv[1], "inside"])
    program = pathlib.Path(sys.argv[1]).resolve()
    run("ip", "link", "set", "lo", "up")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        root = folder / "root"
        root.mkdir()
        run("tar", "-C", root, "-xf", BASE)
        root.chmod(0o755)
        (root / "dev/null").touch()
        image = Image(root, program)
        for instruction, rest in last_stage((HERE / "Containerfile").read_text()):
            image.step(instruction, rest)
        subject, relation = learn(program, folder)
        run("cp", "-r", folder / "run", root / "run-directory")
        run("chmod", "-R", "a+rX", root / "run-directory")
        run("mount", "--bind", "/dev/null", root / "dev/null")
        try:
            serves(image, subject, relation)
        finally:
            run("umount", root / "dev/null")


def serves(image, subject, relation):
    server = subprocess.Popen([str(part) for part in image.inside(*image.entry, *image.command)], stderr=subprocess.PIPE)
    try:
        for _ in range(100):
            if subprocess.run([str(part) for part in image.inside(*image.health)], capture_output=True).returncode == 0:
                break
            if server.poll() is not None:
                sys.exit(f"the server ended: {server.stderr.read().decode()}")
            time.sleep(0.1)
        else:
            sys.exit("the health check of the Containerfile never succeeds")
        uid = os.stat(f"/proc/{server.pid}").st_uid
        if uid == 0:
            sys.exit("the server runs as root")
        answer = ask(subject, relation)
        print(f"image: healthy, served by uid {uid}; {subject} {relation} {answer['entity']}")
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(10)
    if subprocess.run([str(part) for part in image.inside(*image.health)], capture_output=True).returncode == 0:
        sys.exit("the health check succeeds without a server")


def ask(subject, relation):
    from urllib.parse import urlencode
    from urllib.request import urlopen

    address = "http://127.0.0.1:7878/api/v1"
    name = json.load(urlopen(f"{address}/runs"))["runs"][0]["name"]
    return json.load(urlopen(f"{address}/{name}/predict?" + urlencode({"subject": subject, "relation": relation})))["answers"][0]


if __name__ == "__main__":
    main()
