"""The crates that are linked into the binary, as `cargo tree` and Cargo.lock name them."""

import dataclasses
import json
import pathlib
import re
import subprocess
import tomllib

SOURCE = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(order=True)
class Crate:
    name: str
    version: str
    licence: str
    checksum: str | None
    folder: pathlib.Path
    uses: set = dataclasses.field(default_factory=set)

    @property
    def key(self):
        return (self.name, self.version)


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=SOURCE, check=True, stdout=subprocess.PIPE, text=True).stdout


def host():
    verbose = subprocess.run(["rustc", "-vV"], cwd=SOURCE, check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"^host: (.*)$", verbose, re.MULTILINE).group(1)


def linked_crates():
    """Returns {(name, version): Crate}. Neither build scripts nor macros, which run at compile time, nor what tests use."""
    lock = tomllib.loads((SOURCE / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    metadata = json.loads(cargo("metadata", "--locked", "--format-version=1", f"--filter-platform={host()}"))
    packages = {(p["name"], p["version"]): p for p in metadata["packages"]}

    crates, path = {}, []
    tree = cargo("tree", "--locked", "--edges=normal,no-proc-macro", f"--target={host()}", "--prefix=depth", "--format={p}")
    for line in tree.splitlines():
        depth, name, version = re.match(r"(\d+)(\S+) v(\S+)", line).groups()
        key = (name, version)
        if key not in crates:
            package = packages[key]
            licence = (package["license"] or "").replace("/", " OR ")
            crates[key] = Crate(name, version, licence, checksums[key], pathlib.Path(package["manifest_path"]).parent)
        path[int(depth):] = [key]
        if int(depth) > 0:
            crates[path[-2]].uses.add(key)
    return crates
