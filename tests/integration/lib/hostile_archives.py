"""Archives that no honest program writes, made on the spot: each with what must become of it."""

import bz2
import gzip
import io
import lzma
import stat
import struct
import subprocess
import tarfile
import zipfile
import zlib

REFUSED = None  # in place of the files that must be there


def entry(name, data=b"", kind=tarfile.REGTYPE, link="", mode=0o644, pax=None):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(data)
    info.pax_headers = pax or {}
    return info, data


def tar(*entries, layout=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=layout) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def raw_header(name, size_field=b"00000000000\0", kind=b"0", extra=b""):
    """A ustar or GNU header with any bytes in its size field and behind its magic."""
    head = bytearray(512)
    head[0:len(name)] = name
    head[100:108], head[108:116], head[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    head[124:136], head[136:148], head[156:157] = size_field, b"00000000000\0", kind
    head[257:265] = b"ustar  \0" if extra or kind == b"S" else b"ustar\x0000"
    head[386:386 + len(extra)] = extra
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def base256(number):
    return b"\x80" + number.to_bytes(11, "big")


END = bytes(1024)


def old_gnu_sparse():
    """One byte of data at 1 TiB, as GNU tar's old sparse format says it."""
    def number(n):
        return base256(n)
    pieces = number((1 << 40) - 1) + number(1) + bytes(24 * 3) + b"\0" + number(1 << 40)
    return raw_header(b"sparse", b"00000000001\0", b"S", pieces) + b"x".ljust(512, b"\0") + END


def pax_sparse():
    fields = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "sparse",
              "GNU.sparse.realsize": str(1 << 40)}
    return tar(entry("x", b"1\n1099511627775\n1\n".ljust(512, b"\0") + b"x", pax=fields))


def many(count):
    """So many times the same directory: entries that cost nothing but their number."""
    return gzip.compress(raw_header(b"d/", kind=b"5") * count + END, 1)


def unended():
    """A tar without its end mark, cut between two entries: every file in it is whole."""
    return tar(entry("a", b"1"), entry("b", b"2"))[:1024]


def zipped(*files, mode=zipfile.ZIP_DEFLATED):
    """files: (name, data, unix mode or None)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", mode) as archive:
        for name, data, unix in files:
            info = zipfile.ZipInfo("placeholder")
            info.filename, info.orig_filename, info.compress_type = name, name, mode
            info.create_system = 3
            info.external_attr = (unix or (stat.S_IFREG | 0o644)) << 16
            archive.writestr(info, data)
    return out.getvalue()


def patched(data, old, new, which):
    """Replaces one occurrence (0: in the local header, 1: in the central directory)."""
    assert len(old) == len(new)
    at = data.index(old)
    if which:
        at = data.index(old, at + 1)
    return data[:at] + new + data[at + len(old):]


def overlapping_zip(count):
    """Many names for one and the same compressed megabyte of zeros."""
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = body.compress(bytes(1 << 20)) + body.flush()
    crc = zlib.crc32(bytes(1 << 20))
    common = (20, 0, 8, 0, 0, crc, len(packed), 1 << 20)
    local = struct.pack("<4s5H3L2H", b"PK\3\4", *common, 6, 0) + b"000000" + packed
    central = b"".join(struct.pack("<4s6H3L5H2L", b"PK\1\2", (3 << 8) | 20, *common, 6, 0, 0, 0, 0,
                                   (stat.S_IFREG | 0o644) << 16, 0) + b"%06d" % i for i in range(count))
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(central), len(local), 0)
    return local + central + end


def encrypted_zip():
    data = bytearray(zipped(("secret.tf", b"x" * 40, None), mode=zipfile.ZIP_STORED))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def corpus():
    """{name: (bytes, files that must be there or REFUSED)}"""
    fine = entry("fine.tf", b"fine")
    symlink, hardlink, directory = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
    gnu = tarfile.GNU_FORMAT
    link = stat.S_IFLNK | 0o777
    whole = tar(fine, entry("b.tf", b"b" * 5000))
    packed = gzip.compress(whole)
    zipfile_ = zipped(("a.tf", b"a", None), ("b.tf", b"b" * 5000, None))
    long_name = "d/" * 30 + ("n" * 200 + "/") * 4 + "x.tf"
    cases = {
        "tar dotdot": tar(fine, entry("../canary/file", b"dead")),
        "tar inner dotdot": tar(fine, entry("a/b/../../../canary/file", b"dead")),
        "tar dotdot by pax": tar(fine, entry("harmless", b"dead", pax={"path": "../canary/file"})),
        "tar dotdot by long name": tar(fine, entry("x/" * 60 + "../" * 61 + "canary/file", b"dead"), layout=gnu),
        "tar absolute": tar(fine, entry("/tmp/dayfly-hostile", b"dead")),
        "tar absolute by pax": tar(fine, entry("x", b"dead", pax={"path": "/tmp/dayfly-hostile"})),
        "tar link absolute": tar(fine, entry("l", kind=symlink, link="/etc/passwd")),
        "tar link up": tar(fine, entry("l", kind=symlink, link="../canary")),
        "tar link by pax": tar(fine, entry("l", kind=symlink, link="fine.tf", pax={"linkpath": "../canary"})),
        "tar link, then written through": tar(entry("l", kind=symlink, link="../canary"), entry("l/file", b"dead")),
        "tar link, then replaced": tar(entry("l", kind=symlink, link="../canary/file"), entry("l", b"dead")),
        "tar link, then directory": tar(entry("l", kind=symlink, link=".."), entry("l/", kind=directory),
                                        entry("l/canary/file", b"dead")),
        "tar chain of links": tar(entry("top/x", b""), entry("a/b/c/up", kind=symlink, link="../../../top"),
                                  entry("out", kind=symlink, link="a/b/c/up/../../canary")),
        "tar hard link out": tar(fine, entry("h", kind=hardlink, link="../canary/file")),
        "tar hard link absolute": tar(fine, entry("h", kind=hardlink, link="/etc/passwd")),
        "tar hard link inside": tar(fine, entry("h", kind=hardlink, link="fine.tf")),
        "tar hard link to link": tar(entry("l", kind=symlink, link="../canary/file"),
                                     entry("h", kind=hardlink, link="l"), entry("h", b"dead")),
        "tar character device": tar(fine, entry("null", kind=tarfile.CHRTYPE)),
        "tar block device": tar(fine, entry("disk", kind=tarfile.BLKTYPE)),
        "tar fifo": tar(fine, entry("pipe", kind=tarfile.FIFOTYPE)),
        "tar setuid": tar(fine, entry("su", b"#!", mode=0o4755)),
        "tar setgid": tar(fine, entry("sg", b"#!", mode=0o2755)),
        "tar line feed in name": tar(fine, entry("a\nb", b"")),
        "tar escape in name": tar(fine, entry("a\x1b[31mb", b"")),
        "tar name not UTF-8": raw_header(b"caf\xe9") + END,
        "tar name too long": tar(fine, entry("n" * 2000, b"")),
        "tar path too long": tar(fine, entry("d/" * 600 + "x", b"")),
        "tar too deep": tar(fine, entry("d/" * 65 + "x", b"")),
        "tar twice": tar(fine, entry("fine.tf", b"other")),
        "tar case": tar(fine, entry("FINE.tf", b"other")),
        "tar case of directory": tar(entry("Dir/a", b""), entry("dir/b", b"")),
        "tar file as directory": tar(fine, entry("fine.tf/x", b"")),
        "tar sparse, old": old_gnu_sparse(),
        "tar sparse, pax": pax_sparse(),
        "tar size beyond file": raw_header(b"big", base256(1 << 40)) + END,
        "tar size negative": raw_header(b"big", b"\xff" * 12) + END,
        "tar size huge": raw_header(b"big", b"\x80" + b"\x7f" + b"\xff" * 10) + END,
        "tar pax header endless": raw_header(b"p", b"77777777777\0", b"x") + b"99999999999 path=x" + END,
        "tar header damaged": whole[:5] + b"!" + whole[6:],
        "tar without end": unended(),
        "tar cut in data": whole[:2000],
        "tar cut in header": whole[:700],
        "tar.gz cut early": packed[:40],
        "tar.gz cut": packed[:len(packed) // 2],
        "tar.gz flipped": packed[:30] + bytes([packed[30] ^ 255]) + packed[31:],
        "tar.gz twice packed": gzip.compress(packed),
        "tar.gz bomb": gzip.compress(tar(entry("zeros", bytes(40 << 20))), 9),
        "tar.gz many entries": many(100001),
        "tar.bz2": bz2.compress(whole),
        "tar.xz": lzma.compress(whole),
        "zip dotdot": zipped(("../canary/file", b"dead", None)),
        "zip absolute": zipped(("/tmp/dayfly-hostile", b"dead", None)),
        "zip link up": zipped(("l", b"../canary", link)),
        "zip link absolute": zipped(("l", b"/etc", link)),
        "zip link, then written through": zipped(("l", b"../canary", link), ("l/file", b"dead", None)),
        "zip device": zipped(("d", b"", stat.S_IFCHR | 0o666)),
        "zip setuid": zipped(("su", b"#!", stat.S_IFREG | 0o4755)),
        "zip twice": patched(patched(zipped(("a.tf", b"1", None), ("b.tf", b"2", None)), b"b.tf", b"a.tf", 1),
                             b"b.tf", b"a.tf", 0),
        "zip case": zipped(("a.tf", b"1", None), ("A.tf", b"2", None)),
        "zip encrypted": encrypted_zip(),
        "zip local name leads out": patched(zipped(("aaaa/bbbb", b"x", None)), b"aaaa/bbbb", b"../../bbb", 0),
        "zip bomb": zipped(("zeros", bytes(40 << 20), None)),
        "zip cut": zipfile_[:-30],
        "zip cut in data": zipfile_[:60],
        "zip wrong checksum": patched(zipped(("a.tf", b"hello", None), mode=zipfile.ZIP_STORED), b"hello", b"hallo", 0),
        "nothing": b"",
        "text": b"<html>404</html>" * 100,
        "zeros": bytes(10240),
    }
    result = {name: (data, REFUSED) for name, data in cases.items()}
    ok = {
        "tar": (whole, {"fine.tf": b"fine", "b.tf": b"b" * 5000}),
        "tar.gz": (packed, {"fine.tf": b"fine", "b.tf": b"b" * 5000}),
        "tar.gz in two members": (gzip.compress(whole[:1000]) + gzip.compress(whole[1000:]),
                                  {"fine.tf": b"fine", "b.tf": b"b" * 5000}),
        "tar.zst": (subprocess.run(["zstd", "-q", "-c"], input=whole, capture_output=True, check=True).stdout,
                    {"fine.tf": b"fine", "b.tf": b"b" * 5000}),
        "tar, another behind it": (packed + gzip.compress(tar(entry("../canary/file", b"dead"))),
                                   {"fine.tf": b"fine", "b.tf": b"b" * 5000}),
        "tar, GNU layout": (tar(fine, entry(long_name, b"x"), layout=gnu), {"fine.tf": b"fine", long_name: b"x"}),
        "tar, long pax names": (tar(fine, entry(long_name, b"x")), {"fine.tf": b"fine", long_name: b"x"}),
        "tar, names beyond ASCII": (tar(entry("m\u00fcller/\u20ac.tf", b"x"), fine),
                                    {"m\u00fcller/\u20ac.tf": b"x", "fine.tf": b"fine"}),
        "tar with attributes": (tar(entry("fine.tf", b"fine", pax={"SCHILY.xattr.user.evil": "1", "uname": "root",
                                                                   "SCHILY.acl.access": "user::rwx"})),
                                {"fine.tf": b"fine"}),
        "tar with a global header": (tar(entry("top/fine.tf", b"fine", pax={"comment": "abc"})), {"fine.tf": b"fine"}),
        "tar with links inside": (tar(fine, entry("d/l", kind=symlink, link="../fine.tf"), entry("d/x", b"x")),
                                  {"fine.tf": b"fine", "d/l": b"fine", "d/x": b"x"}),
        "tar with other tools' data": (tar(fine, entry(".git/config", b"evil"), entry("a/.terraform/providers/x", b"evil"),
                                           entry("a/b.tf", b"b")), {"fine.tf": b"fine", "a/b.tf": b"b"}),
        "zip": (zipfile_, {"a.tf": b"a", "b.tf": b"b" * 5000}),
        # Where the two headers of a file disagree, the one beside its data counts, and is judged like any other.
        "zip, central name leads out": (patched(zipped(("aaaa/bbbb", b"x", None), ("c", b"c", None)), b"aaaa/bbbb",
                                                b"../../bbb", 1), {"aaaa/bbbb": b"x", "c": b"c"}),
        "zip, one piece under many names": (overlapping_zip(3000), {"000000": bytes(1 << 20)}),
        "zip, stored": (zipped(("top/a.tf", b"a", None), mode=zipfile.ZIP_STORED), {"a.tf": b"a"}),
        "zip with links inside": (zipped(("d/a.tf", b"a", None), ("l.tf", b"d/a.tf", link)),
                                  {"d/a.tf": b"a", "l.tf": b"a"}),
    }
    return {**result, **ok}
