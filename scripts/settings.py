#!/usr/bin/env python3
"""Writes docs/settings.md from config/example.toml, which a test of the program compares with the declared settings.

    scripts/settings.py            # writes the page; scripts/docs.py fails if it is not up to date
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "config/example.toml"
PAGE = ROOT / "docs/settings.md"
HEAD = """# Settings

Every setting of the configuration file. `scripts/settings.py` writes this page from `config/example.toml`, which a test compares with the
declarations in the program.

A file may be as short as its channels and models: what it leaves out has the default. Settings that end in `_ms` are milliseconds, those
that end in `_bytes` are bytes. Relative paths count from the folder of the file. `tollgate check --config FILE` reports all problems of a
file at once. Channels and models are reloaded when the file changes or on SIGHUP, together with `upstream_*_ms`; other changes need a restart.

"""
ENTRIES = """
## Examples of channels and models

The rest of `config/example.toml`: a channel of each kind, and a model of each kind with its price card and its profile. What is set here
is an example; [operations](operations.md) explains routes, clouds and the catalog of known models.

"""
SETTING = re.compile(r"([a-z0-9_]+) = (.+)")
# Members of the first channel and the first model that have no comment in the file.
DESCRIPTIONS = {
    "channel.name": "The name of the channel, for routes, reports and operators. Callers never see it.",
    "channel.preset": "The vendor, cloud or kind of server: one of `catalog/presets.toml`.",
    "channel.account": "What tells the account at a cloud from others; see [operations](operations.md#models-that-a-cloud-hosts).",
    "model.id": "The public id, `maker/model`, that callers name.",
    "model.price": "The price card: credits by price key ([billing](api/billing.md)). Left out, it comes from the catalog.",
    "model.profile": "What the model can do, and its limits. Left out, it comes from the catalog.",
}


def cell(text):
    return text.replace("|", r"\|")


def row(key, value, comment):
    return f"| `{key}` | {value} | {cell(comment)} |\n"


def tables(text):
    """One table for each `[section]`. A setting in a comment has no default."""
    page, comment = [], []
    for line in text.splitlines():
        section = re.fullmatch(r"\[(\w+)\]", line)
        optional = line.startswith("# ") and SETTING.fullmatch(line[2:])
        setting = optional or SETTING.fullmatch(line)
        if section:
            page.append(f"\n## `[{section[1]}]`\n\n| setting | default | meaning |\n|---|---|---|\n")
            comment = []
        elif setting and comment:
            value = f"none; such as `{cell(setting[2])}`" if optional else f"`{cell(setting[2])}`"
            page.append(row(setting[1], value, " ".join(comment)))
            comment = []
        elif line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
    return "".join(page).lstrip("\n")


def entry(text, kind):
    """The table of the settings of one kind of entry. Each setting is taken from the first entry that has it."""
    shown, comment, inside = {}, [], False
    for line in text.splitlines():
        line = line.removeprefix("#").removeprefix(" ")
        if line.startswith("[["):
            inside = line == f"[[{kind}]]"
            comment = []
        elif line.startswith("# "):
            comment.append(line[2:].strip())
        elif setting := SETTING.fullmatch(line):
            description = DESCRIPTIONS.get(f"{kind}.{setting[1]}") or " ".join(comment)
            if inside and setting[1] not in shown and description:
                shown[setting[1]] = row(setting[1], f"`{cell(setting[2])}`", description)
            comment = []
        else:
            comment = []
    return f"\n## `[[{kind}]]`\n\n| setting | example | meaning |\n|---|---|---|\n{''.join(shown.values())}"


def page():
    text = EXAMPLE.read_text()
    _, _, rest = text.partition("\n[server]\n")
    settings, mark, entries = rest.partition("\n# Channels:")
    entries = mark.lstrip("\n") + entries
    parts = [HEAD, tables("[server]\n" + settings), entry(entries, "channel"), entry(entries, "model")]
    return "".join([*parts, ENTRIES, f"```toml\n{entries.rstrip()}\n```\n"])


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE.relative_to(ROOT)}: {sum(line.startswith('| `') for line in page().splitlines())} settings", file=sys.stderr)
