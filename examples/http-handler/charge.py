"""Charges the card of an order, once for each idempotency key.

Uses only Python's standard library. Start this program, and then `semel run`.
"""

import base64
import hashlib
import hmac
import json
import os
import sqlite3
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "8017"))
SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


def database():
    db = sqlite3.connect("charges.db", timeout=10)
    db.execute("create table if not exists charges (key text primary key, card text, amount integer)")
    return db


def charge(key, order):
    """Writes key and charge in one transaction, so a repeated call charges nothing."""
    with closing(database()) as db, db:
        db.execute("insert or ignore into charges values (?, ?, ?)", (key, order["card"], order["amount"]))


def signed(headers, body):
    """Returns whether Semel signed the request recently (https://www.standardwebhooks.com)."""
    at = headers.get("webhook-timestamp", "0")
    what = f"{headers.get('webhook-id')}.{at}.".encode() + body
    want = "v1," + base64.b64encode(hmac.new(SECRET, what, hashlib.sha256).digest()).decode()
    given = headers.get("webhook-signature", "").split(" ")
    fresh = at.isdigit() and abs(time.time() - int(at)) < 300
    return fresh and any(hmac.compare_digest(want, one) for one in given)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for many calls
    wbufsize = -1  # send a response in one packet

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not signed(self.headers, body):
            return self.answer(401, "The signature does not fit")
        order = json.loads(body)
        if order["amount"] <= 0:
            return self.answer(422, "There is nothing to charge")  # permanent: Semel parks the message
        try:
            charge(self.headers["Idempotency-Key"], order)
        except sqlite3.OperationalError:
            return self.answer(503, "The database is busy")  # temporary: Semel retries
        self.answer(200)

    def answer(self, status, title=None):
        problem = json.dumps({"title": title}).encode() if title else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(problem)))
        self.end_headers()
        self.wfile.write(problem)


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the default of 5, further new connections can wait for seconds


if __name__ == "__main__":
    database().close()
    server = Server(("127.0.0.1", PORT), Handler)
    print(f"listening on {PORT}", flush=True)
    server.serve_forever()
