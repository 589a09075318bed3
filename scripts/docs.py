#!/usr/bin/env python3
"""Tests of the documents: everything that they name exists, and everything that must be documented is."""

import functools
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Metaphors that were replaced by plain names. New code must not use them again.
RETIRED_NAMES = """
    Apart Bell CalledOff Ceiling Crowd Desk Fate Gates Growing Happened Joined Keeper Kit Lent Miss OpenBooks Outliving Pace
    Parting Pen Pulse Purse Rack Rehosted Remembered Rope Seat Seats Sheet Shelf Sleeper SocketAsk Speaker Talk Tariff TaskAsk
    Telling Theirs Trial Tunnel Undone Ungathered Unmade Way
    give_way open_books rehost
""".split()
INVARIANTS = ROOT / "docs/invariants.md"
API = ROOT / "docs/api"


@functools.cache
def tracked(*endings):
    """The files of the repository with one of these endings, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    files = [ROOT / name for name in result.stdout.splitlines() if name.endswith(endings)]
    return [it for it in files if it.is_file()]


@functools.cache
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


def spelled_out(text):
    """`a/{b,c}.rs` as `a/b.rs` and `a/c.rs`."""
    before, brace, rest = text.partition("{")
    inside, _, after = rest.partition("}")
    return [before + part + after for part in inside.split(",")] if brace else [text]


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


class Glossary(unittest.TestCase):
    """`docs/glossary.md` against the types and files that it names."""

    @classmethod
    def setUpClass(cls):
        lines = (ROOT / "docs/glossary.md").read_text().splitlines()
        cls.rows = [cells(line) for line in lines if line.startswith("| ")][1:]

    def test_it_is_short_and_in_order(self):
        words = [row[0] for row in self.rows]
        self.assertLessEqual(len(words), 30)
        self.assertEqual(words, sorted(words))

    def test_every_word_lives_where_it_says(self):
        for word, _, place in self.rows:
            for file in re.findall(r"`([a-z_/]+\.rs)`", place):
                self.assertTrue((ROOT / "crates" / file).is_file(), f"{word}: {file}")
            for kind, file in re.findall(r"`([A-Z]\w+)` in `([^`]+)`", place):
                source = (ROOT / "crates" / file).read_text()
                self.assertTrue(re.search(rf"\b(?:struct|enum) {kind}\b", source), f"{word}: {kind}")


class Api(unittest.TestCase):
    """`docs/api` against the router and the error codes. That every documented path is served is tested beside the router."""

    @classmethod
    def setUpClass(cls):
        cls.pages = "\n".join(page.read_text() for page in API.glob("*.md"))

    def test_every_path_of_the_router_is_on_a_page(self):
        router = self.router()
        paths = {path.partition(" ")[0] for path in re.findall(r'"(/[a-z][^"]*)"', router)}
        paths = {path.replace("models/{id}", "models/{model}").removesuffix("{rest}") for path in paths}
        self.assertGreater(len(paths), 30)
        # `/upload` is only recognised to choose the envelope of its 404.
        missing = [path for path in sorted(paths - {"/upload"}) if not self.names(path)]
        self.assertEqual(missing, [])

    def router(self):
        folder = ROOT / "crates/server/src/http/endpoint"
        return "\n".join((folder / name).read_text() for name in ("endpoints.rs", "find.rs"))

    def names(self, path):
        """Whether a page has the path, and not only a longer one."""
        end = "" if path.endswith("/") else r"(?![\w/])"
        return re.search(re.escape(path) + end, self.pages)

    def test_every_action_of_the_router_is_on_a_page(self):
        router = self.router()
        actions = re.findall(r'"([a-z]+[A-Z][a-zA-Z]+)"(?: if aliases)? =>', router)
        self.assertGreater(len(actions), 4)
        self.assertEqual([action for action in actions if f":{action}" not in self.pages], [])

    def test_every_code_of_an_error_is_on_its_page(self):
        source = (ROOT / "crates/protocol/src/failure/code.rs").read_text()
        codes = re.findall(r'=> "([a-z_]+)"', source)
        self.assertGreater(len(codes), 20)
        page = (API / "errors.md").read_text()
        self.assertEqual([code for code in codes if f"`{code}`" not in page], [])

    def test_every_page_is_in_the_index(self):
        index = (API / "README.md").read_text()
        pages = {page.name for page in API.glob("*.md")} - {"README.md"}
        self.assertEqual([page for page in sorted(pages) if f"({page})" not in index], [])


class Decisions(unittest.TestCase):
    """The form of `docs/decisions`, its index, and the citations of it."""

    @classmethod
    def setUpClass(cls):
        cls.files = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
        cls.numbers = {path.name[:3] for path in cls.files}

    def test_each_has_a_question_a_date_and_a_status(self):
        self.assertEqual(len(self.numbers), len(self.files))
        form = re.compile(r"# (\d{3}): [^\n]+\?\n\nDate: \d{4}-\d\d-\d\d\. Status: (accepted|superseded by \d{3})\.\n\n")
        for path in self.files:
            found = form.match(path.read_text())
            self.assertTrue(found, f"{path.name} has another form than docs/decisions/README.md says")
            self.assertEqual(found.group(1), path.name[:3])

    def test_each_is_in_the_index_with_its_question(self):
        index = (ROOT / "docs/decisions/README.md").read_text()
        for path in self.files:
            number, question = re.match(r"# (\d{3}): (.*)", path.read_text()).groups()
            self.assertIn(f"| [{number}]({path.name}) | {question} |", index)

    def test_only_those_that_exist_are_cited(self):
        cited = re.compile(r"\bdecisions?[ /](\d{3})\b", re.IGNORECASE)
        unknown = [
            f"{path.relative_to(ROOT)} cites {number}"
            for path in tracked(".rs", ".sql", ".md", ".toml")
            if path.name != "CHANGELOG.md"
            for number in cited.findall(comments(path))
            if number not in self.numbers
        ]
        self.assertEqual(unknown, [])


class References(unittest.TestCase):
    """Documents and comments cite only what is in the repository."""

    def test_no_document_outside_of_the_tree_is_cited(self):
        outside = re.compile(
            r"\breliability(?:\.md|,? section|,? [A-Z]?\d)|\bdesign(?:\.md\b|, [\"s])|\bcaptures [A-Z]\d"
            r"|\bcontract, \"|\bunified-model-gateway-api\b|\.\./shared|\bprotocols/[a-z-]+\.md",
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

    def test_every_source_that_a_document_names_exists(self):
        """A path counts from `crates/`, or from a folder that the text has named before; `src/` may be left out."""
        crates = {path.name for path in (ROOT / "crates").iterdir()}
        files = {str(path.relative_to(ROOT)).removeprefix("crates/") for path in tracked("")}
        files |= {name.replace("/src/", "/", 1) for name in files}
        folders = {str(parent) for name in files for parent in pathlib.PurePath(name).parents}
        endings = {name[at:] for name in files for at in range(len(name)) if at == 0 or name[at - 1] == "/"}
        missing = [
            f"{path.relative_to(ROOT)} names {name}"
            for path in tracked(".md")
            if path.name != "CHANGELOG.md"
            for quote in quoted(path.read_text())
            for name in spelled_out(quote.removeprefix("crates/"))
            if re.fullmatch(r"[a-z][\w/]*\.(?:rs|sql)", name) and name not in endings
            or re.fullmatch(r"[a-z]\w*(?:/\w+)+/?", name)
            and name.partition("/")[0] in crates
            and name.rstrip("/") not in folders | files
            and f"{name}.rs" not in files
        ]
        self.assertEqual(missing, [])

    def test_every_link_between_documents_leads_somewhere(self):
        dead = [
            f"{path.relative_to(ROOT)} links to {target}"
            for path in tracked(".md")
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text())
            if "://" not in target and not target.startswith("#")
            if not (path.parent / target.partition("#")[0]).exists()
        ]
        self.assertEqual(dead, [])


class Names(unittest.TestCase):
    """The names in the sources are plain."""

    def test_no_retired_name_returns(self):
        retired = re.compile(rf"\b(?:{'|'.join(RETIRED_NAMES)})\b")
        found = [
            f"{path.relative_to(ROOT)}: {line.strip()}"
            for path in tracked(".rs")
            for line in path.read_text().splitlines()
            if retired.search(line) and retired.search(re.sub(r'//.*|"(?:\\.|[^"\\])*"', "", line))
        ]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
