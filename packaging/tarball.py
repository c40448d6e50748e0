"""Writes tar files whose bytes depend on the content alone.

usage: tarball.py FOLDER NAME FILE.tar.gz

Writes the files in FOLDER to FILE.tar.gz, in a folder NAME. Every file belongs to root and has the time of SOURCE_DATE_EPOCH.
"""

import gzip
import io
import os
import pathlib
import sys
import tarfile


class Tarball:
    """A tar file that is written entry by entry."""

    def __init__(self, stream):
        self.time = int(os.environ["SOURCE_DATE_EPOCH"])
        self.tar = tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.tar.close()

    def folder(self, name, mode=0o755, owner=0):
        self._add(name, tarfile.DIRTYPE, mode, owner)

    def file(self, name, content, mode=0o644, owner=0):
        self._add(name, tarfile.REGTYPE, mode, owner, content)

    def _add(self, name, kind, mode, owner, content=b""):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.mtime, entry.size = kind, mode, self.time, len(content)
        entry.uid = entry.gid = owner
        self.tar.addfile(entry, io.BytesIO(content))


def write_archive(folder, name, target):
    with (open(target, "wb") as stream,
          gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=9, mtime=0) as packed,
          Tarball(packed) as tarball):
        tarball.folder(name)
        for path in sorted(folder.rglob("*")):
            inside = f"{name}/{path.relative_to(folder).as_posix()}"
            if path.is_dir():
                tarball.folder(inside)
            else:
                tarball.file(inside, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)


if __name__ == "__main__":
    write_archive(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3])
