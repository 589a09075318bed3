#!/usr/bin/env python3
"""Finds import cycles among the source files of each crate, and fails if one is too large.

Files that import each other, directly or through others, can only be understood together. The check reads `use`
declarations and inline paths. A name that `lib.rs` or `mod.rs` only re-exports counts as an import of the file that
defines it. Code under `#[cfg(test)]` does not count, because tests may import anything that they test.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES_MAX = 3
# Crates that still have a larger cycle, with its number of files. Lower a number as soon as possible.
LARGER_CYCLES = {}

MODULE_ROOTS = ("lib.rs", "main.rs", "mod.rs")
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']*|[^\'\\])\'', re.DOTALL
)
TEST = re.compile(r"#\[cfg\((?:(?:all|any)\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
USE = re.compile(r"(?P<public>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
INLINE = re.compile(r"(?<![\w:])[a-z_]\w*(?:::\w+)+")


def without_tests(text):
    """The code without comments and literals, and without the items that only tests compile."""
    text = NOISE.sub('""', text)
    while found := TEST.search(text):
        text = text[: found.start()] + text[item_end(text, found.end()) :]
    return text


def item_end(text, start):
    """The end of the item that starts here: after its semicolon or closing brace."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        if depth <= 0 and text[at] in ";}":
            return at + (depth == 0)
    return len(text)


def imports(tree, prefix=()):
    """The paths of a `use` tree, each with the name that it is bound to."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        prefix += tuple(part.strip() for part in head.split("::") if part.strip())
        depth, part = 0, ""
        for sign in rest[: rest.rindex("}")]:
            depth += {"{": 1, "}": -1}.get(sign, 0)
            if sign == "," and depth == 0:
                yield from imports(part, prefix)
                part = ""
            else:
                part += sign
        yield from imports(part, prefix)
    elif tree:
        path, _, name = tree.partition(" as ")
        path = prefix + tuple(part.strip() for part in path.split("::"))
        path = path[:-1] if len(path) > 1 and path[-1] == "self" else path
        yield path, name.strip() or path[-1]


class Module:
    """One source file: its place in the module tree, its imports and its re-exports."""

    def __init__(self, file, path):
        self.file, self.path = file, path
        code = without_tests(file.read_text())
        self.is_module_root = file.name in MODULE_ROOTS
        self.children = set(re.findall(r"\bmod\s+(\w+)\s*;", code))
        self.bound, self.exported, self.globs = {}, {}, []
        for found in USE.finditer(code):
            for target, name in imports(found["tree"]):
                if self.is_module_root and found["public"]:
                    self.exported[name] = target
                    self.globs += [target[:-1]] if name == "*" else []
                else:
                    self.bound[name, target] = target
        names = {name: target for (name, _), target in self.bound.items()}
        inline = (tuple(it.group().split("::")) for it in INLINE.finditer(USE.sub("", code)))
        self.named = set(self.bound.values()) | {names.get(it[0], it[:1]) + it[1:] for it in inline}


class Crate:
    """The modules of one crate, and the imports between its files."""

    def __init__(self, source):
        self.modules = {}
        root = next(source / name for name in ("lib.rs", "main.rs") if (source / name).is_file())
        self.read(root, ())

    def read(self, file, path):
        module = self.modules[path] = Module(file, path)
        folder = file.parent if module.is_module_root else file.with_suffix("")
        for name in module.children:
            for child in (folder / f"{name}.rs", folder / name / "mod.rs"):
                if child.is_file():
                    self.read(child, (*path, name))

    def absolute(self, path, module):
        """The path from the root of the crate; `None` if it leaves the crate."""
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return (*module.path, *path[1:])
        if path[0] == "super":
            above = path.count("super")
            return (*module.path[: len(module.path) - above], *path[above:])
        return (*module.path, *path) if path[0] in module.children else None

    def find(self, path, seen=()):
        """The module that defines the item of this path; re-exports are followed."""
        place = next(path[:end] for end in range(len(path), -1, -1) if path[:end] in self.modules)
        module, rest = self.modules[place], path[len(place) :]
        if not rest or path in seen:
            return module
        targets = [module.exported[rest[0]]] if rest[0] in module.exported else module.globs
        for target in targets:
            target = self.absolute(target, module)
            if target is None:
                continue
            target += rest[1:] if rest[0] in module.exported else rest
            found = self.find(target, (*seen, path))
            if found is not module:
                return found
        return module

    def edges(self):
        """For each file, the files that it imports from."""
        edges = collections.defaultdict(set)
        for module in self.modules.values():
            for path in module.named:
                if path := self.absolute(path, module):
                    found = self.find(path)
                    # An import of a whole folder is not an edge; the paths that start with it are resolved instead.
                    if found is not module and not (found.is_module_root and path == found.path):
                        edges[module.file].add(found.file)
        return edges


def cycles(edges):
    """The sets of nodes of a graph that reach each other, largest first."""

    def reach(start):
        reached, waiting = set(), [start]
        while waiting:
            for node in edges.get(waiting.pop(), ()):
                if node not in reached:
                    reached.add(node)
                    waiting.append(node)
        return reached

    reached = {node: reach(node) for node in list(edges)}
    found = {frozenset(it for it in reached[node] if node in reached.get(it, ())) for node in reached}
    return sorted((sorted(it) for it in found if len(it) > 1), key=lambda it: (-len(it), it))


def main():
    large = False
    for crate in sorted((ROOT / "crates").iterdir()):
        source = crate / "src"
        edges = Crate(source).edges()
        for cycle in cycles(edges):
            allowed = max(FILES_MAX, LARGER_CYCLES.get(crate.name, 0))
            large |= len(cycle) > allowed
            if len(cycle) > allowed or "--all" in sys.argv:
                print(f"{crate.name}: {len(cycle)} files import each other, {allowed} may:")
                for file in cycle:
                    inside = sorted(str(it.relative_to(source)) for it in edges[file] if it in cycle)
                    print(f"    {file.relative_to(source)} -> {', '.join(inside)}")
    return large


if __name__ == "__main__":
    sys.exit(main())
