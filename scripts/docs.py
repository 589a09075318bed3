#!/usr/bin/env python3
"""Tests of the documents: what they name exists, and what must be documented is."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
INVARIANTS = ROOT / "docs/invariants.md"


def tracked(*endings):
    """The files of the repository with one of these endings, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    files = [ROOT / name for name in told.stdout.splitlines() if name.endswith(endings)]
    return [it for it in files if it.is_file()]


def comments(path):
    """The comment lines of a Rust or SQL file, the whole text of any other."""
    text = path.read_text()
    if path.suffix not in (".rs", ".sql"):
        return text
    return "\n".join(re.findall(r"(?://|--)[^\n]*", text))


def cells(line):
    """The cells of a row of a table."""
    return [it.strip() for it in line.strip().strip("|").split("|")]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


class Invariants(unittest.TestCase):
    """`docs/invariants.md` against the sources that cite it and the files and tests that it names."""

    @classmethod
    def setUpClass(cls):
        rows = [cells(line) for line in INVARIANTS.read_text().splitlines() if re.match(r"\| [A-Z]\d+ \|", line)]
        cls.rows = {row[0]: row for row in rows}
        cls.count = len(rows)

    def test_a_code_has_one_row(self):
        self.assertEqual(len(self.rows), self.count)

    def test_every_cited_code_has_a_row(self):
        letters = "".join(sorted({code[0] for code in self.rows}))
        codes = rf"[{letters}]\d+(?:, [{letters}]\d+)*"
        cited = re.compile(rf"\(({codes})\)|^//[/!]? ({codes})[:. ]", re.MULTILINE)
        unknown = [
            f"{path.relative_to(ROOT)} cites {code}"
            for path in tracked(".rs", ".sql", ".md")
            for found in cited.finditer(comments(path))
            for code in re.findall(r"[A-Z]\d+", found.group())
            if code not in self.rows
        ]
        self.assertEqual(unknown, [])

    def test_every_file_that_enforces_one_exists(self):
        for code, row in self.rows.items():
            files = quoted(row[-2])
            self.assertTrue(files, code)
            for name in files:
                self.assertTrue((ROOT / "crates" / name).is_file(), f"{code} names {name}")

    def test_every_test_that_shows_one_exists(self):
        sources = "\n".join(path.read_text() for path in tracked(".rs"))
        names = set(re.findall(r"\bfn (\w+)", sources))
        for code, row in self.rows.items():
            tests = quoted(row[-1])
            self.assertTrue(tests, code)
            self.assertEqual([name for name in tests if name not in names], [], f"tests of {code}")


class References(unittest.TestCase):
    """What the tree points to is in the tree."""

    def test_no_document_outside_of_the_tree_is_cited(self):
        outside = re.compile(
            r"\breliability(?:\.md|,? section|,? [A-Z]?\d)|\bdesign(?:\.md\b|, [\"s])|\bcaptures [A-Z]\d"
            r"|\bunified-model-gateway-api\b|\.\./shared|\bprotocols/[a-z-]+\.md",
            re.IGNORECASE,
        )
        own = (pathlib.Path(__file__).resolve(), ROOT / "CHANGELOG.md")
        cited = [
            f"{path.relative_to(ROOT)}: {line.strip()}"
            for path in tracked(".rs", ".sql", ".md", ".toml", ".py")
            if path not in own
            for line in comments(path).splitlines()
            if outside.search(line)
        ]
        self.assertEqual(cited, [])

    def test_every_link_between_documents_leads_somewhere(self):
        dead = [
            f"{path.relative_to(ROOT)} links to {target}"
            for path in tracked(".md")
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text())
            if "://" not in target and not target.startswith("#")
            if not (path.parent / target.partition("#")[0]).exists()
        ]
        self.assertEqual(dead, [])


if __name__ == "__main__":
    unittest.main()
