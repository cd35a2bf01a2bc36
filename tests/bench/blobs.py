"""The parts of tests/bench/run about what is stored: a blob in a bucket, a state in a directory."""

import hashlib
import os
import pathlib
import shutil
import statistics
import subprocess
import time

from lib import buckets
from lib import dayfly as d

GIB = 1 << 30
LIMIT_KIB = 16 * 1024


def spent(*args, env=None):
    """(seconds, output) of a program that must succeed."""
    began = time.monotonic()
    result = subprocess.run(args, env={"PATH": os.environ["PATH"], **(env or {})}, check=True, stdout=subprocess.PIPE, text=True)
    return time.monotonic() - began, result.stdout


def make_random(path, size):
    """As a sealed plan is: nothing can be compressed."""
    with open(path, "wb") as f:
        for _ in range(size // (1 << 20)):
            f.write(os.urandom(1 << 20))


def blob(row, quick, work):
    """One large blob to and from a real S3 server, against curl with the same bytes, alternating."""
    size, rounds = (GIB // 8 if quick else GIB), 5
    fast = pathlib.Path("/dev/shm" if shutil.disk_usage("/dev/shm").free > 6 * size else work)
    base = fast / f"dayfly-blob-{os.getpid()}"
    base.mkdir()
    try:
        with buckets.S3(base / "s3") as s3:
            measure_blob(row, size, rounds, base, s3)
    finally:
        shutil.rmtree(base)


def measure_blob(row, size, rounds, base, s3):
    """The upload's peer sends the digest of the content as well, so that the store compares it as it does ours; making
    it is not counted."""
    source, target = base / "source", base / "target"
    make_random(source, size)
    with open(source, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    curl = [shutil.which("curl"), "--silent", "--show-error", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3",
            "--user", f"{buckets.ACCESS}:{buckets.SECRET}", "--header"]
    verified, plain = f"x-amz-content-sha256: {digest}", "x-amz-content-sha256: UNSIGNED-PAYLOAD"
    env = {"TMPDIR": str(base), "BUCKET": "blobs", "BUCKET_ENDPOINT": s3.url, **s3.env}
    copy, url = d.BUILD / "tools/blob_copy", f"{s3.url}/blobs/bare"
    up, down, peaks = [], [], []
    for _ in range(rounds):
        given = base / "given"
        os.link(source, given)
        ours, peak = spent(copy, "put", "plans/bench", given, env=env)
        theirs, _ = spent(*curl, verified, "--upload-file", source, "--output", "/dev/null", url)
        up.append(theirs / ours)
        ours, other = spent(copy, "get", "plans/bench", env=env)
        theirs, _ = spent(*curl, plain, "--output", target, url)
        down.append(theirs / ours)
        peaks += [int(words.split()[1]) for words in (peak, other)]  # "VmHWM: 14664 kB"
    spent(copy, "get", "plans/bench", target, env=env)
    subprocess.run(["cmp", source, target], check=True)
    name = f"{size >> 20} MiB"
    for words, ratios in (("up", up), ("down", down)):
        ratio = statistics.median(ratios)
        row(f"blob of {name} {words} against curl, S3: throughput", f"{ratio:.2f} (n={len(ratios)})", ">= 0.9 of curl's", ratio >= 0.9)
    row(f"blob of {name}: resident memory", f"{max(peaks) / 1024:.1f} MiB", "<= 16 MiB", max(peaks) <= LIMIT_KIB)


PARTS = {"blob": blob}
