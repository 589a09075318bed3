#!/usr/bin/env python3
"""Tests of scripts that no other test uses."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import pathlib
import platform
import stat
import subprocess
import sys
import tempfile
import tomllib
import unittest
from unittest import mock

import book
import circles

ROOT = pathlib.Path(__file__).resolve().parent.parent
PINNED = "1.95.0"


def workspace():
    """The packages of the workspace, from cargo."""
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    result = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)["packages"]


class MaintainerScripts(unittest.TestCase):
    """The scripts of the Debian package with a fake systemctl, which stores one word: enabled or off."""

    SYSTEMCTL = """#!/bin/sh
case "$1" in
    is-enabled) grep -q enabled "$STATE" ;;
    enable) echo enabled >"$STATE" ;;
    disable) echo off >"$STATE" ;;
    is-active) false ;;
esac
"""

    def run_scripts(self, state, *calls):
        """The state after these calls of the scripts, and whether a mark file is left."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            program = folder / "systemctl"
            program.write_text(self.SYSTEMCTL)
            program.chmod(0o755)
            kept = folder / "state"
            kept.write_text(state)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "STATE": str(kept)}
            for name, *arguments in calls:
                text = (ROOT / "deploy/debian" / name).read_text()
                text = text.replace("/run/systemd/system", str(folder)).replace("/var/lib/misc", str(folder / "misc"))
                subprocess.run(["sh", "-c", text, name, *arguments], env=environment, check=True)
            return kept.read_text().strip(), any(folder.glob("misc/*"))

    def test_the_service_is_after_an_installation_what_it_was_before_the_removal(self):
        removal = [("prerm", "remove"), ("postrm", "remove")]
        again = ("postinst", "configure", "1.0")
        self.assertEqual(self.run_scripts("off", ("postinst", "configure", "")), ("enabled", False))
        self.assertEqual(self.run_scripts("enabled", *removal), ("off", True))
        self.assertEqual(self.run_scripts("enabled", *removal, again), ("enabled", False))
        self.assertEqual(self.run_scripts("off", *removal, again), ("off", False))
        self.assertEqual(self.run_scripts("enabled", *removal, ("postrm", "purge")), ("off", False))

    def test_an_upgrade_changes_nothing(self):
        for state in ("enabled", "off"):
            calls = [("prerm", "upgrade", "1.1"), ("postrm", "upgrade", "1.1"), ("postinst", "configure", "1.0")]
            self.assertEqual(self.run_scripts(state, *calls), (state, False))


class Book(unittest.TestCase):
    """`scripts/book.py` with the real pages, as mdBook would send them."""

    @classmethod
    def setUpClass(cls):
        summary = (book.DOCS / "SUMMARY.md").read_text()
        listed = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", summary)
        items = [
            {"Chapter": {"name": name, "content": (book.DOCS / path).read_text(), "sub_items": [], "parent_names": [],
                         "path": path, "source_path": path}}
            for name, path in listed
        ]
        cls.chapters = list(book.chapters(book.prepared({"items": items})["items"]))
        cls.places = {chapter["path"] for chapter in cls.chapters}

    def test_every_page_has_a_place_of_its_own_inside_the_book(self):
        self.assertEqual(len(self.places), len(self.chapters))
        self.assertEqual([it for it in self.places if it.startswith("..")], [])
        decisions = list((book.DOCS / "decisions").glob("[0-9]*.md"))
        self.assertLessEqual({f"decisions/{it.name}" for it in decisions}, self.places)

    def test_every_link_leads_to_a_page_or_a_file_of_the_book(self):
        count = 0
        for chapter in self.chapters:
            folder = pathlib.PurePosixPath(chapter["path"]).parent
            for _, _, link in book.LINK.findall(re.sub(r"(?ms)^```.*?^```", "", chapter["content"])):
                target = link.partition("#")[0]
                if not target or "://" in target:
                    continue
                path = os.path.normpath(folder / target)
                self.assertTrue(path in self.places or (book.DOCS / path).is_file(), f"{chapter['path']}: {link}")
                count += 1
        self.assertGreater(count, 200)

    def test_links_are_led_to_where_the_book_has_their_targets(self):
        pages = {"../README.md", "../CHANGELOG.md", "api/README.md", "api/errors.md", "upgrade.md"}
        for source, link, expected in [
            ("upgrade.md", "../CHANGELOG.md", "CHANGELOG.md"),
            ("../README.md", "docs/api/errors.md#codes", "api/errors.md#codes"),
            ("api/errors.md", "README.md#rules", "index.md#rules"),
            ("api/errors.md", "../../README.md", "../index.md"),
            ("api/errors.md", "../../config/example.toml", None),
            ("api/errors.md", "#codes", "#codes"),
            ("api/errors.md", "https://example.com/a.md", "https://example.com/a.md"),
        ]:
            self.assertEqual(book.rewritten_link(link, source, pages), expected, f"{source}: {link}")


class Toolchain(unittest.TestCase):
    """`scripts/toolchain` with a fake rustc and a fake rustup."""

    def choose(self, rustc, rustup=None, **variables):
        """Runs the script with these `rustc --version` and `rustup` commands; returns its output, status and messages."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            self.command(place / "rustc", f"echo 'rustc {rustc} (0123456 2026-01-01)'")
            if rustup is not None:
                self.command(place / "rustup", rustup)
            env = {"PATH": f"{folder}:/usr/bin:/bin", **variables}
            result = subprocess.run([ROOT / "scripts/toolchain"], env=env, capture_output=True, text=True)
            return result.stdout.strip(), result.returncode, result.stderr

    def command(self, path, body):
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def test_a_default_toolchain_of_the_pinned_version_will_do(self):
        self.assertEqual(self.choose(PINNED, "exit 1")[:2], ("", 0))
        self.assertEqual(self.choose(PINNED)[:2], ("", 0))

    def test_an_installed_one_is_chosen(self):
        installed = f'[ "$1" = run ] && echo "rustc {PINNED} (0123456 2026-01-01)"'
        self.assertEqual(self.choose("1.99.0", installed)[:2], (PINNED, 0))

    def test_one_that_can_be_fetched_is_installed(self):
        fetched = '[ "$1 $2" = "toolchain install" ]'
        self.assertEqual(self.choose("1.99.0", fetched)[:2], (PINNED, 0))

    def test_without_it_the_default_is_used_and_said(self):
        for rustup in (None, "exit 1"):
            chosen, status, message = self.choose("1.99.0", rustup)
            self.assertEqual((chosen, status), ("", 0))
            self.assertIn("1.99.0", message)
            self.assertIn(PINNED, message)

    def test_without_it_continuous_integration_fails(self):
        chosen, status, message = self.choose("1.99.0", "exit 1", CI="true")
        self.assertEqual((chosen, status), ("", 1))
        self.assertIn("scripts/toolchain", message)

    def test_a_choice_is_kept(self):
        self.assertEqual(self.choose("1.99.0", "exit 1", RUSTUP_TOOLCHAIN="nightly")[:2], ("nightly", 0))

    def test_the_workspace_may_be_built_with_it(self):
        for package in workspace():
            oldest, pinned = ([int(it) for it in text.split(".")] for text in (package["rust_version"], PINNED))
            self.assertLessEqual(oldest, pinned)


class ReleaseTargets(unittest.TestCase):
    """What `scripts/release` says about targets, with a fake rustc and fake compilers. Nothing is built."""

    HERE = platform.machine()
    OTHER = "x86_64" if HERE == "aarch64" else "aarch64"
    STATIC = f"{HERE}-unknown-linux-musl"
    OTHER_STATIC = f"{OTHER}-unknown-linux-musl"
    OTHER_GNU = f"{OTHER}-unknown-linux-gnu"
    RUSTC = """#!/bin/sh
case "$*" in
    -vV) echo "host: {host}" ;;
    *target-libdir*) for target; do :; done; echo "{folder}/$target" ;;
    *) exit 1 ;;
esac
"""

    @contextlib.contextmanager
    def machine(self, libraries=(), programs=(), **variables):
        """The environment of a machine with these `TARGET/CRATE`s of the standard library and these compilers."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            rustc = self.RUSTC.format(host=f"{self.HERE}-unknown-linux-gnu", folder=folder)
            for name, text in [("rustc", rustc), *((it, "") for it in programs)]:
                (folder / name).write_text(text)
                (folder / name).chmod(0o755)
            for library in libraries:
                target, _, crate = library.partition("/")
                (folder / target).mkdir(exist_ok=True)
                (folder / target / f"lib{crate}-0123.rlib").touch()
            yield {"PATH": str(folder), **variables}

    def refusal(self, *arguments, **machine):
        """The last line that the script prints when it ends with these arguments."""
        with self.machine(**machine) as environment:
            command = [sys.executable, ROOT / "scripts/release", "--dirty", *arguments]
            result = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertNotIn(result.returncode, (0, None))
        self.assertNotIn("Traceback", result.stderr)
        return result.stderr.splitlines()[-1]

    def release(self):
        """The script as a module."""
        loader = importlib.machinery.SourceFileLoader("release", str(ROOT / "scripts/release"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
        loader.exec_module(module)
        return module

    def test_arguments_that_contradict_each_other_are_refused(self):
        two = ("--target", self.STATIC, "--target", f"{self.HERE}-unknown-linux-gnu")
        both = ("--target", self.STATIC, "--target", self.OTHER_STATIC)
        for arguments, told in [
            (two, "the same machine"),
            ((*both, "--profile", __file__), "the folder"),
            ((*both, "--program", __file__), "for one target"),
            (("--profile", __file__, "--no-profile"), "not allowed with"),
            (("--target", "riscv64gc-unknown-linux-gnu"), "invalid choice"),
        ]:
            self.assertIn(told, self.refusal(*arguments))

    def test_what_is_missing_is_named_before_anything_is_built(self):
        target = ("--target", self.OTHER_STATIC)
        self.assertIn(f"`rustup target add {self.OTHER_STATIC}`", self.refusal(*target))
        machine = {"libraries": [f"{self.OTHER_STATIC}/std"]}
        told = self.refusal(*target, **machine)
        self.assertIn(f"no {self.OTHER}-linux-musl-gcc", told)
        self.assertIn(f"gcc-{self.OTHER.replace('_', '-')}-linux-gnu", told)
        self.assertIn("musl-dev:", told)
        machine["programs"] = [f"{self.OTHER}-linux-musl-gcc", f"{self.OTHER}-linux-gnu-gcc"]
        variable = f"CARGO_TARGET_{self.OTHER_STATIC.upper().replace('-', '_')}_RUNNER"
        self.assertIn(variable, self.refusal(*target, **machine))
        machine[variable] = "emulator"
        self.assertIn("profiler_builtins", self.refusal(*target, **machine))

    def test_a_static_program_is_built_if_it_can_be(self):
        release = self.release()
        for libraries, expected in [([f"{self.STATIC}/std"], "musl"), ([], "gnu")]:
            with self.machine(libraries=libraries) as environment, mock.patch.dict(os.environ, environment):
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    self.assertEqual(release.default_target(), f"{self.HERE}-unknown-linux-{expected}")
                self.assertEqual(len(said.getvalue().splitlines()), 0 if expected == "musl" else 1)

    def test_c_code_is_compiled_for_the_target(self):
        release = self.release()
        musl, gnu = f"{self.OTHER}-linux-musl-gcc", f"{self.OTHER}-linux-gnu-gcc"
        with self.machine(programs=[musl, gnu, "musl-gcc"]) as environment, mock.patch.dict(os.environ, environment):
            tools = {it: sorted(release.Target(it).tools().values()) for it in release.TARGETS}
        self.assertEqual(tools[f"{self.HERE}-unknown-linux-gnu"], [])
        self.assertEqual(tools[self.STATIC], ["musl-gcc"])
        self.assertEqual(tools[self.OTHER_STATIC], [gnu, musl])
        self.assertEqual(tools[self.OTHER_GNU], [gnu, gnu])

    def test_a_compiler_that_the_caller_names_is_used(self):
        name = f"CC_{self.STATIC.replace('-', '_')}"
        with self.machine(**{name: "clang"}) as environment, mock.patch.dict(os.environ, environment):
            self.assertEqual(self.release().Target(self.STATIC).tools(), {name: "clang"})

    def test_each_target_has_its_own_profile(self):
        release = self.release()
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            target, other = release.Target(self.STATIC), release.Target(self.OTHER_STATIC)
            profile = folder / release.profile_name(target)
            profile.touch()
            self.assertEqual(release.recorded_before(folder, target), profile.resolve())
            self.assertEqual(release.recorded_before(profile, other), profile.resolve())
            with self.assertRaises(SystemExit):
                release.recorded_before(folder, other)


class Profiles(unittest.TestCase):
    """What we ship is optimised fully, whatever the quicker profiles leave out."""

    def test_the_shipped_program_inherits_no_exception(self):
        profiles = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
        self.assertEqual(profiles["dist"]["inherits"], "dev")
        self.assertEqual(profiles["dist"]["opt-level"], 3)
        self.assertFalse(profiles["dist"]["debug-assertions"])
        self.assertFalse(profiles["dist"]["overflow-checks"])
        self.assertNotIn("package", profiles["dist"])
        for name, settings in profiles["dev"]["package"].items():
            self.assertIn(settings, [{"opt-level": 3}, {"debug": False}], name)


class BillOfMaterials(unittest.TestCase):
    """`scripts/sbom` against the lock file and the manifests."""

    @classmethod
    def setUpClass(cls):
        result = subprocess.run([ROOT / "scripts/sbom"], check=True, stdout=subprocess.PIPE)
        cls.bytes = result.stdout
        cls.bill = json.loads(result.stdout)
        cls.components = {it["name"]: it for it in cls.bill["components"]}

    def test_it_is_a_cyclonedx_document(self):
        self.assertEqual((self.bill["bomFormat"], self.bill["specVersion"]), ("CycloneDX", "1.5"))
        self.assertRegex(self.bill["serialNumber"], r"^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        known = {"type", "bom-ref", "name", "version", "purl", "licenses", "hashes", "externalReferences"}
        for it in [self.bill["metadata"]["component"], *self.bill["components"]]:
            self.assertLessEqual(set(it), known)
            self.assertIn(it["type"], ("application", "library"))
            self.assertEqual(it["purl"], f"pkg:cargo/{it['name']}@{it['version']}")
            self.assertTrue(it["licenses"][0]["expression"])
        refs = [it["bom-ref"] for it in self.bill["components"]]
        self.assertEqual(len(refs), len(set(refs)))

    def test_every_crate_is_the_locked_one(self):
        lock = re.sub(r'source = ".*"\n', "", (ROOT / "Cargo.lock").read_text())
        for it in self.bill["components"]:
            locked = f'name = "{it["name"]}"\nversion = "{it["version"]}"\n'
            if not it["name"].startswith("tollgate-"):
                checksum = it["hashes"][0]["content"]
                locked += f'checksum = "{checksum}"\n'
            self.assertIn(locked, lock)

    def test_every_crate_is_reached_from_the_binary(self):
        edges = {it["ref"]: it["dependsOn"] for it in self.bill["dependencies"]}
        reached, waiting = set(), [self.bill["metadata"]["component"]["bom-ref"]]
        while waiting:
            ref = waiting.pop()
            if ref not in reached:
                reached.add(ref)
                waiting.extend(edges[ref])
        self.assertEqual(reached, set(edges))
        self.assertEqual(len(reached), len(self.bill["components"]) + 1)

    def test_all_dependencies_of_our_crates_are_there_and_those_of_tests_are_not(self):
        packages = {it["name"]: it for it in workspace()}
        ours = {"tollgate-server", *filter(packages.get, self.components)}
        self.assertEqual(len(ours), 8)
        used = lambda kind: {
            dep["name"]
            for name in ours
            for dep in packages[name]["dependencies"]
            if dep["kind"] == kind and not dep["optional"]
        }
        self.assertLessEqual(used(None), set(self.components))
        for name in ("proptest", "insta", "s3s"):
            self.assertIn(name, used("dev"))
            self.assertNotIn(name, self.components)

    def test_it_does_not_change_by_itself(self):
        again = subprocess.run([ROOT / "scripts/sbom"], check=True, stdout=subprocess.PIPE)
        self.assertEqual(again.stdout, self.bytes)


class Circles(unittest.TestCase):
    """`scripts/circles.py` on small crates."""

    def found(self, **files):
        """The import cycles of a crate with these files; `folder__file` is a file in a folder."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder)
            for name, text in files.items():
                path = source / (name.replace("__", "/") + ".rs")
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            result = circles.cycles(circles.Crate(source).edges())
            return [[str(file.relative_to(source)) for file in circle] for circle in result]

    def test_files_that_import_each_other_are_a_circle(self):
        both = [["a.rs", "b.rs"]]
        self.assertEqual(self.found(lib="mod a;mod b;", a="use crate::b::B;", b="use crate::a::{self, A};"), both)
        self.assertEqual(self.found(lib="mod a;mod b;", a="use super::{b::B};", b="fn b() { crate::a::a() }"), both)
        self.assertEqual(self.found(lib="mod a;mod b;", a="use crate::b;", b=""), [])

    def test_a_re_export_is_an_import_of_the_file_that_defines_it(self):
        face = "mod a;mod b; pub use a::A; pub(crate) use b::{B as C};"
        self.assertEqual(self.found(lib=face, a="", b="use crate::A;"), [])
        self.assertEqual(self.found(lib=face, a="use crate::C;", b="use crate::A;"), [["a.rs", "b.rs"]])
        inside = {"x__mod": "mod a; pub use a::*;", "x__a": "use crate::b;", "b": "use crate::x; fn b() { x::A }"}
        self.assertEqual(self.found(lib="mod x;mod b;", **inside), [["b.rs", "x/a.rs"]])

    def test_a_face_that_defines_something_is_a_file_like_any_other(self):
        self.assertEqual(self.found(lib="mod a; use a::A; struct B;", a="use crate::B;"), [["a.rs", "lib.rs"]])

    def test_tests_comments_and_literals_do_not_count(self):
        for text in ("// crate::b::B", '"crate::b::B"', "#[cfg(test)]\nmod tests { use crate::b::B; fn f() { } }"):
            self.assertEqual(self.found(lib="mod a;mod b;", a=text, b="use crate::a::A;"), [], text)
        self.assertEqual(self.found(lib="mod a; #[cfg(test)] mod b;", a="use crate::b::B;", b="use crate::a::A;"), [])


if __name__ == "__main__":
    os.environ["CARGO_TERM_COLOR"] = "never"
    unittest.main()
