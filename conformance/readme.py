"""Writes the grid into the README of this folder, between its markers."""

from pathlib import Path

README = Path(__file__).resolve().parent / "README.md"
BEGIN = "<!-- conformance: made by conformance/run -->\n```\n"
END = "```\n"


def shown() -> str:
    return parts()[1].rstrip()


def write(table: str):
    before, _, after = parts()
    README.write_text(f"{before}{BEGIN}{table}\n{END}{after}")


def parts() -> tuple[str, str, str]:
    before, _, rest = README.read_text().partition(BEGIN)
    table, _, after = rest.partition(END)
    return before, table, after
