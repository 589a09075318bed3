"""Installs the locked SDKs of each language, and programs of Debian packages, once into the workspace."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALL_SECONDS_MAX = 600


def python(workspace: Path, lock: str = "requirements.txt", driver: str = "drive.py") -> list:
    """The command that runs a driver in Python. Its arguments, such as the dialect, are appended."""
    lock = HERE / "python" / lock
    home = workspace / f"python-{digest(lock.read_bytes(), sys.version.encode())}"
    interpreter = home / "bin/python"

    def install():
        run(sys.executable, "-m", "venv", "--clear", home)
        quiet = ["--quiet", "--disable-pip-version-check"]
        run(interpreter, "-m", "pip", "install", *quiet, "--no-deps", "-r", lock)

    once(home, install)
    return [interpreter, "-B", HERE / "python" / driver]


def node(workspace: Path) -> list:
    """The command that runs the driver in JavaScript."""
    return ["node", packages(workspace, "node", "drivers") / "drivers" / "drive.mjs"]


def browser(workspace: Path) -> Path:
    """The folder with the browser driver. The checks of the console are in `checks` below it."""
    return packages(workspace, "browser", "checks")


def packages(workspace: Path, folder: str, sources: str) -> Path:
    """Installs the locked packages of a folder. Node resolves modules relative to the source, so the sources are
    copied beside them."""
    names = ["package.json", "package-lock.json"]
    version = subprocess.run(["node", "--version"], check=True, stdout=subprocess.PIPE).stdout
    locks = [(HERE / folder / name).read_bytes() for name in names]
    home = workspace / f"{folder}-{digest(*locks, version)}"

    def install():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        for name in names:
            shutil.copy(HERE / folder / name, home)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", cwd=home)

    once(home, install)
    shutil.rmtree(home / sources, ignore_errors=True)
    shutil.copytree(HERE / folder, home / sources, ignore=shutil.ignore_patterns("package*.json"))
    return home


class NotDebian(RuntimeError):
    """A program is missing, and this system cannot download Debian packages."""


def debian(workspace: Path, package: str, program: str) -> Path:
    """A program of the system, or from a Debian package that is unpacked into the workspace without being installed."""
    found = shutil.which(program)
    if found:
        return Path(found)
    home = workspace / f"debian-{package}"

    def install():
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            raise NotDebian(f"there is no {program}: install it, or run this on Debian, which has it in {package}")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        download = ["apt-get", "download", "-qq", package]
        # If the download fails, the package lists may be missing or too old.
        for command in (download, ["apt-get", "update", "-qq"], download):
            subprocess.run(command, cwd=home, timeout=INSTALL_SECONDS_MAX)
            if archive := next(home.glob("*.deb"), None):
                break
        else:
            raise RuntimeError(f"there is no {program}, and Debian's package {package} cannot be downloaded")
        run("dpkg-deb", "--extract", archive, home)
        archive.unlink()

    once(home, install)
    return home / "usr/bin" / program


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def once(home: Path, install):
    # Written last, so that an incomplete installation is repeated.
    complete = home / "complete"
    if not complete.exists():
        print(f"installing {home.name}", flush=True)
        install()
        complete.touch()


def run(*command, cwd=None):
    subprocess.run(command, cwd=cwd, check=True, timeout=INSTALL_SECONDS_MAX)
