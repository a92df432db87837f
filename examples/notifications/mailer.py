"""The other side of examples/notifications: a service that sends mails.

It keeps the keys under which it has sent: asked again with one, it sends nothing.
"""

import json
import os
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "8018"))


def database():
    db = sqlite3.connect("mails.db", timeout=10)
    db.execute("create table if not exists mails (key text primary key, customer text, text text)")
    db.execute("create table if not exists calls (key text)")
    return db


def send(key, mail):
    """The key and the mail are one transaction."""
    with closing(database()) as db, db:
        db.execute("insert into calls values (?)", (key,))
        text = f"your order {mail['order']} over {mail['amount']} is placed"
        db.execute("insert or ignore into mails values (?, ?, ?)", (key, mail["customer"], text))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet

    def do_POST(self):
        mail = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            send(self.headers["Idempotency-Key"], mail)
            self.send_response(204)
        except sqlite3.OperationalError:
            self.send_response(503)  # not now: it is tried again
        self.end_headers()


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # connections that come at once; of more than 5, the default, some wait for seconds


if __name__ == "__main__":
    database().close()
    server = Server(("127.0.0.1", PORT), Handler)
    print(f"listening on {PORT}", flush=True)
    server.serve_forever()
