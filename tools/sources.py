"""Which files of the tree a check looks at: what git tracks or would track, or, without git, what is no build folder."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tree(root=ROOT):
    """Paths relative to the root, with forward slashes, sorted."""
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=True).stdout.decode()
        paths = [p for p in listed.split("\0") if p]
    except (OSError, subprocess.CalledProcessError):
        paths = [p.relative_to(root).as_posix() for p in pathlib.Path(root).rglob("*")]
        paths = [p for p in paths if not p.startswith(("build/", "build-", ".git/")) and "__pycache__" not in p]
    return sorted({p for p in paths if (pathlib.Path(root) / p).is_file()})


def cplusplus(root=ROOT):
    return [p for p in tree(root) if p.endswith((".h", ".cc", ".cu"))]
