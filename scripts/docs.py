#!/usr/bin/env python3
"""Tests of the documents: everything that they name exists, and everything that must be documented is documented."""

import functools
import json
import pathlib
import re
import subprocess
import tomllib
import unittest

import settings

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Metaphors that were replaced with plain names. New code must not use them again.
RETIRED_NAMES = """
    Apart Bell CalledOff Ceiling Crowd Desk Fate Gates Growing Happened Joined Keeper Kit Lent Miss OpenBooks Outliving Pace
    Parting Pen Pulse Purse Rack Rehosted Remembered Rope Seat Seats Sheet Shelf Sleeper SocketAsk Speaker Talk Tariff TaskAsk
    Telling Theirs Trial Tunnel Undone Ungathered Unmade Way
    give_way open_books rehost
""".split()
INVARIANTS = ROOT / "docs/invariants.md"
DOCS = ROOT / "docs"
API = DOCS / "api"


@functools.cache
def tracked(*endings):
    """The files of the repository with one of these endings, including new files."""
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
    """The texts between single backquotes, outside of code blocks."""
    return re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


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
        folder = ROOT / "crates/http-server/src/endpoint"
        return "\n".join((folder / name).read_text() for name in ("endpoints.rs", "find.rs"))

    def names(self, path):
        """Whether a page names exactly this path, not only a longer one."""
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

    def test_every_code_has_a_cause_and_a_cure(self):
        # `method_not_allowed` is reserved, so it has no advice.
        for page in ("errors.md", "admin.md"):
            rows = [cells(line) for line in (API / page).read_text().splitlines() if re.match(r"\| [^|]+ \| `[a-z_]+` \|", line)]
            self.assertGreater(len(rows), 10, page)
            empty = [row[1] for row in rows if len(row) != 4 or not row[2] or not row[3] and not row[2].startswith("reserved")]
            self.assertEqual(empty, [], page)

    def test_every_code_of_the_admin_api_is_on_its_page(self):
        sources = "\n".join(path.read_text() for path in (ROOT / "crates/server/src/admin").rglob("*.rs"))
        codes = set(re.findall(r'(?:StatusCode::[A-Z_]+,|conflict\()\s*"([a-z_]+)"', sources))
        self.assertGreater(len(codes), 12)
        table = (API / "admin.md").read_text().partition("## Errors")[2]
        self.assertEqual([code for code in sorted(codes) if f"| `{code}` |" not in table], [])

    def test_every_header_of_ours_is_on_a_page(self):
        """Headers that the gateway reads from callers or sends to them. Those of upstreams are in the crate `upstream`."""
        folders = [ROOT / "crates" / name / "src" for name in ("server", "http-server", "engine", "protocol")]
        text = "\n".join(path.read_text() for folder in folders for path in folder.rglob("*.rs"))
        headers = set(re.findall(r'"(x-[a-z]+(?:-[a-z]+)*)"', text))
        imported = " ".join(re.findall(r"header::\{[^}]*\}", text))
        headers |= {name.lower().replace("_", "-") for name in re.findall(r"\bX_[A-Z_]+", imported)}
        headers |= {"idempotency-key", "tollgate-signature", "traceparent"} & set(re.findall(r'"([a-z-]+)"', text))
        self.assertGreater(len(headers), 12)
        pages = "\n".join(page.read_text() for page in [*API.glob("*.md"), *DOCS.glob("*.md")])
        named = [it for line in pages.splitlines() for it in quoted(line)]
        # After `x-ratelimit-limit-requests`, pages abbreviate further headers as `-remaining-requests`.
        short = {name.removeprefix("x-ratelimit") for name in headers}
        known = {it.partition(":")[0].lower() for it in named} | {f"x-ratelimit{it}" for it in named if it in short}
        self.assertEqual(sorted(headers - known), [])

    def test_every_family_of_endpoints_has_examples_for_curl_python_and_node(self):
        """`conformance/examples` runs them. The excluded pages cover several families, or are for browsers."""
        about_several = {"README", "authentication", "billing", "errors", "limits", "page", "text", "videos"}
        missing = [
            f"{page.name}: {mark}"
            for page in sorted(API.glob("*.md"))
            if page.stem not in about_several
            for mark in ("\n$ curl ", "\n```python", "\n```js\n")
            if mark not in page.read_text()
        ]
        self.assertEqual(missing, [])

    def test_every_page_is_in_the_index(self):
        index = (API / "README.md").read_text()
        pages = {page.name for page in API.glob("*.md")} - {"README.md"}
        self.assertEqual([page for page in sorted(pages) if f"({page})" not in index], [])


class Book(unittest.TestCase):
    """Every page, setting and alert is in the book."""

    def test_every_page_is_in_the_summary(self):
        summary = (DOCS / "SUMMARY.md").read_text()
        pages = {str(it.relative_to(DOCS)) for it in DOCS.rglob("*.md") if it.name != "SUMMARY.md"}
        # `scripts/book.py` adds the decisions.
        pages = {it for it in pages if not re.match(r"decisions/\d", it)}
        self.assertEqual([it for it in sorted(pages) if f"({it})" not in summary], [])

    def test_the_page_of_settings_is_current(self):
        is_current = settings.PAGE.read_text() == settings.page()
        self.assertTrue(is_current, "docs/settings.md is out of date; python3 scripts/settings.py writes it")

    def test_every_setting_is_on_its_page(self):
        shown = set()
        for line in settings.PAGE.read_text().splitlines():
            if heading := re.match(r"## `\[+(\w+)\]+`", line):
                section = heading[1]
            elif line.startswith("| `"):
                shown.add(f"{section}.{cells(line)[0].strip('`')}")
        lines = settings.EXAMPLE.read_text().splitlines()
        # Like the test of the program: settings in comments have no default, and entries are entirely in comments.
        lines = [re.sub(r"^# (?=\[\[|[a-z_]+ = )", "", line) for line in lines]
        example = tomllib.loads("\n".join(lines))
        declared = {f"{name}.{key}" for name, table in example.items() for it in ([table] if isinstance(table, dict) else table) for key in it}
        self.assertGreater(len(declared), 100)
        self.assertEqual(sorted(declared - shown), [])

    def test_every_alert_rule_is_on_its_page(self):
        rules = re.findall(r"- alert: (\w+)\n", (ROOT / "deploy/prometheus/alerts.yml").read_text())
        page = (DOCS / "alerts.md").read_text()
        severities = dict(re.findall(r"^\| `(Tollgate\w+)` \| (\w+) \|", page, re.MULTILINE))
        self.assertEqual(sorted(rules), sorted(severities))
        for rule, severity in severities.items():
            block = (ROOT / "deploy/prometheus/alerts.yml").read_text().partition(f"alert: {rule}\n")[2].partition("- alert:")[0]
            self.assertIn(f"severity: {severity} ", block, rule)

    def test_every_kind_of_alert_is_on_its_page(self):
        source = (ROOT / "crates/store/src/records/alerts.rs").read_text()
        kinds = re.findall(r'=> "([a-z_]+)"', source.partition("impl AlertKind")[2].partition("\n}\n")[0])
        self.assertGreater(len(kinds), 4)
        page = (DOCS / "operations.md").read_text().partition("## Alerts")[2]
        self.assertEqual([kind for kind in kinds if f"| `{kind}` |" not in page], [])


class Commands(unittest.TestCase):
    """The command lines on all pages against `docs/commands.md`, which a test of the program keeps correct."""

    @classmethod
    def setUpClass(cls):
        cls.flags, command = {"tollgate": {"--help"}}, "tollgate"
        for line in (DOCS / "commands.md").read_text().splitlines():
            if heading := re.fullmatch(r"## `(tollgate .+)`", line):
                command = heading[1]
                cls.flags[command] = set()
            elif line.startswith("| `"):
                cls.flags[command] |= set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", cells(line)[0]))

    def lines(self, page):
        """The command lines of a page, in code blocks and between backquotes, without the name of the program."""
        text = page.read_text()
        for block in re.findall(r"(?ms)^ *```.*?^ *```", text):
            yield from re.findall(r"(?m)^\s*(?:\$ |\w+=\S+ )?(?:\./|/usr/bin/)?tollgate (.+)$", block.replace("\\\n", " "))
        for quote in quoted(re.sub(r"(?ms)^ *```.*?^ *```", "", text)):
            if found := re.match(r"tollgate ([\s\S]+)", quote):
                yield found[1]

    def wrong(self, line):
        """The first part of a command line that the program does not know."""
        # Global options may precede the command.
        command, words = "tollgate", re.sub(r"^--config \S+ ", "", line.partition(" # ")[0]).split()
        for word in words:
            below = [f"{command} {it}" for it in word.split("|")]
            if not all(it in self.flags for it in below):
                break
            command = below[0]
        if command == "tollgate" and not words[0].startswith(("-", "…", "COMMAND")):
            return words[0]
        known = self.flags[command] | self.flags["tollgate"]
        return next((it for it in words if re.fullmatch(r"--?[a-z][\w-]*", it) and it not in known), None)

    def test_every_command_and_flag_that_a_page_names_exists(self):
        pages = [it for it in tracked(".md") if it.name not in ("CHANGELOG.md", "commands.md")]
        found = [(page, line) for page in pages for line in self.lines(page)]
        self.assertGreater(len(found), 100)
        wrong = [f"{page.relative_to(ROOT)}: tollgate {line}: {it}" for page, line in found if (it := self.wrong(line))]
        self.assertEqual(wrong, [])

    def test_every_subcommand_is_explained_outside_of_its_reference(self):
        """The book says when to use a command, not only that it exists."""
        pages = [it for it in DOCS.rglob("*.md") if it.name != "commands.md" and "decisions" not in it.parts]
        text = "\n".join(page.read_text() for page in [*pages, ROOT / "README.md"])
        tops = [it for it in self.flags if it.count(" ") == 1]
        self.assertGreater(len(tops), 15)
        self.assertEqual([it for it in tops if it not in text], [])


class Decisions(unittest.TestCase):
    """The form of `docs/decisions`, its index, and citations of decisions."""

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


class Version(unittest.TestCase):
    """The version of the workspace is the same everywhere."""

    @classmethod
    def setUpClass(cls):
        cls.version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

    def test_it_is_the_newest_section_of_the_changelog(self):
        headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        versions = [it for it in headings if it != "Unreleased"]
        self.assertRegex(versions[0], rf"^{re.escape(self.version)} \(\d{{4}}-\d\d-\d\d\)$")

    def test_lock_files_chart_and_descriptions_have_it(self):
        for name in ("Cargo.lock", "fuzz/Cargo.lock"):
            locked = re.findall(r'name = "tollgate-(?!fuzz)[\w-]+"\nversion = "(.+)"', (ROOT / name).read_text())
            self.assertEqual(set(locked), {self.version}, name)
        chart = (ROOT / "deploy/helm/tollgate/Chart.yaml").read_text()
        self.assertEqual(re.findall(r'(?i)^(?:app)?version: "?([\d.]+)"?$', chart, re.MULTILINE), [self.version] * 2)
        admin = json.loads((API / "admin.openapi.json").read_text())
        self.assertEqual(admin["info"]["version"], self.version)


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
        """A path is relative to `crates/`, or to a folder that the text has named before. `src/` may be left out."""
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
            if re.fullmatch(r"[a-z][\w/]*\.(?:rs|sql|js)", name) and name not in endings
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


    def test_every_link_to_a_heading_finds_it(self):
        dead = [
            f"{path.relative_to(ROOT)} links to {target}"
            for path in tracked(".md")
            for target in re.findall(r"\]\(([^)\s]*#[^)\s]+)\)", path.read_text())
            if "://" not in target
            if target.partition("#")[2] not in self.headings(path, target.partition("#")[0])
        ]
        self.assertEqual(dead, [])

    def headings(self, path, target):
        """The anchors of the headings of a page, as GitHub and mdBook make them."""
        text = ((path.parent / target) if target else path).read_text()
        headings = re.findall(r"^#+ (.+)$", re.sub(r"(?ms)^```.*?^```", "", text), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


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
