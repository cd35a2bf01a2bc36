"""The chain of an audit trail, computed with the key of its service: entries become older as if time had passed."""

import hashlib
import hmac
import json
import sqlite3


def canonical(entry):
    return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def audit_key(data):
    """HKDF-SHA-256 without salt, as common/crypto/key.c has it."""
    master = bytes.fromhex((data / "key").read_text())
    return hmac.digest(hmac.digest(bytes(32), master, "sha256"), b"dayfly/audit\x01", "sha256")


def age(data, at, below=None):
    """The entries with a smaller sequence (all) get this time; the service is stopped, and has cut nothing yet."""
    key, previous = audit_key(data), ""
    with sqlite3.connect(data / "dayfly.db") as database:
        for number, body in database.execute("SELECT id, body FROM audit ORDER BY id").fetchall():
            entry = json.loads(body)
            del entry["hash"], entry["seal"]
            if below is None or number < below:
                entry["at"] = at
            entry["hash"] = hashlib.sha256(canonical(entry) + previous.encode()).hexdigest()
            previous = entry["hash"]
            entry["seal"] = hmac.digest(key, canonical(entry), "sha256").hex()
            database.execute("UPDATE audit SET body = ? WHERE id = ?", (json.dumps(entry, ensure_ascii=False), number))
