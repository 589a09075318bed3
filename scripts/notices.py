#!/usr/bin/env python3
"""Prints the licences of all crates in the program: `scripts/notices.py > THIRD-PARTY.txt`.

Each text is printed once, with the crates it belongs to. A crate without a licence file is listed with the licence
expression of its manifest. Equal sources give equal bytes.
"""

import collections
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "tollgate-server"
# The C library that is part of a static program.
MUSL = ROOT / "deploy/notices/musl.txt"
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")
HEAD = "Tollgate is built from the crates below. Each licence is followed by the crates that it covers.\n"


def run(*command):
    result = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout


def host():
    return re.search(r"^host: (.+)$", run("rustc", "-vV"), re.MULTILINE)[1]


def built():
    """Name and version of each third-party crate that is linked into the program."""
    tree = run("cargo", "tree", "--locked", "--package", PACKAGE, "--edges", "normal", "--prefix", "none", "--format", "{p}")
    words = (line.split() for line in tree.splitlines() if line.strip())
    return {(name, version.removeprefix("v")) for name, version, *_ in words if not name.startswith("tollgate-")}


def licence_files(folder):
    """The licence files of a crate, including those of code that it bundles."""
    found = [it for it in folder.rglob("*") if it.is_file() and it.name.upper().startswith(NAMES)]
    return sorted(it for it in found if it.suffix not in (".rs", ".py", ".json") and "tests" not in it.parts)


def text(with_musl=False):
    """The notices of a program, `with_musl` if musl is linked into it."""
    wanted = built()
    covered = collections.defaultdict(list)
    without = []
    # Without a platform, cargo would need the crates of all platforms.
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host()]
    for package in json.loads(run(*command))["packages"]:
        name, version = package["name"], package["version"]
        if (name, version) not in wanted:
            continue
        crate = f"{name} {version}"
        files = licence_files(pathlib.Path(package["manifest_path"]).parent)
        for file in files:
            covered[file.read_text(errors="replace").replace("\r\n", "\n").strip()].append(crate)
        if not files:
            without.append(f"{crate}: {package['license'] or 'see its repository'}")
    if with_musl:
        covered[MUSL.read_text().strip()].append("musl (the C library)")
    parts = [HEAD]
    for licence, crates in sorted(covered.items(), key=lambda it: sorted(it[1])):
        parts.append(f"{'=' * 100}\n{', '.join(sorted(set(crates)))}\n{'=' * 100}\n\n{licence}\n")
    if without:
        parts.append(f"{'=' * 100}\nWithout a licence file of their own\n{'=' * 100}\n\n" + "\n".join(sorted(without)) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(text(), end="")
