"""Whether a folder is the user's own: nobody else can put a file into it, or another folder in its place."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path

MOST_LINKS = 40  # on the way to a file, as Linux has it


@cache
def others_can_write(folder: Path) -> str:
    """Why others could have written what lies in a folder, in words; "" where they could not.

    The folder and its files have to be the user's own; folders above it may also be the system's. None may be writable
    by others, but for folders above it with the sticky bit (/tmp) and the group that a user has alone.
    """
    replaced = others_can_replace(folder)
    if replaced:
        return replaced
    try:
        with os.scandir(folder.resolve(strict=True)) as entries:
            for entry in entries:
                at = entry.stat(follow_symlinks=False)
                if at.st_uid != os.geteuid() or stat.S_ISLNK(at.st_mode):
                    return f"{entry.path} is not your own"
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
    return ""


def others_can_replace(path: Path, owner: int | None = None) -> str:
    """Why others than its owner (default: the user) could change a file or folder or put another in its place, in
    words; "" where they could not.

    What lies in a folder is not looked at. Links on the way count with the folders that they lie in: whoever could
    point one elsewhere could put anything in the place of what it leads to.
    """
    mine = os.geteuid() if owner is None else owner
    try:
        place, parts, links = Path("/"), list(path.absolute().parts[1:]), 0
        trouble = _trouble(place, mine)
        while parts and not trouble:
            part = parts.pop(0)
            if part == "..":
                place = place.parent
                continue
            at = (place / part).lstat()
            if not stat.S_ISLNK(at.st_mode):
                place /= part
                trouble = _trouble(place, mine, last=not parts)
            elif at.st_uid not in (mine, 0):
                trouble = f"{place / part} is a link of user {at.st_uid}"
            elif (links := links + 1) > MOST_LINKS:
                trouble = f"{path} leads through more than {MOST_LINKS} links"
            else:
                target = (place / part).readlink()
                place = Path("/") if target.is_absolute() else place
                parts = [*(target.parts[1:] if target.is_absolute() else target.parts), *parts]
        return trouble or _trouble(place, mine, last=True)
    except OSError as error:
        return f"{path}: {error.strerror or error}"


def _trouble(place: Path, mine: int, last: bool = False) -> str:
    """Why others than a user could put something into a folder on the way to theirs, or with `last` change theirs."""
    at = place.stat()
    if at.st_uid not in ((mine,) if last else (mine, 0)):
        return f"{place} belongs to user {at.st_uid}"
    if not last and at.st_mode & stat.S_ISVTX:
        return ""
    if at.st_mode & stat.S_IWOTH or (at.st_mode & stat.S_IWGRP and not _alone_in(at.st_gid, mine)):
        return f"{place} can be written by others (mode {stat.S_IMODE(at.st_mode):o})"
    return ""


@cache
def _alone_in(group: int, owner: int) -> bool:
    """Whether a group has no member but a user and root, as where every user has a group of the same name."""
    import grp
    import pwd

    try:
        names = {*grp.getgrgid(group).gr_mem}
    except KeyError:
        names = set()
    try:
        members = {pwd.getpwnam(name).pw_uid for name in names}
        members |= {user.pw_uid for user in pwd.getpwall() if user.pw_gid == group}  # whose own group it is
        return members <= {owner, 0} and (group == 0 or pwd.getpwuid(owner).pw_gid == group)
    except KeyError:
        return False


def user_name(uid: int) -> str:
    """The system's name of a user, or uid:N where it has none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid:{uid}"
