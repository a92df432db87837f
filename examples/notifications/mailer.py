"""A service that sends mails, for the example notifications.

The service stores the key of each mail. A second request with the same key sends nothing.
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
    """Writes key and mail in one transaction."""
    with closing(database()) as db, db:
        db.execute("insert into calls values (?)", (key,))
        text = f"your order {mail['order']} over {mail['amount']} is placed"
        db.execute("insert or ignore into mails values (?, ?, ?)", (key, mail["customer"], text))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # send a response in one packet

    def do_POST(self):
        mail = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            send(self.headers["Idempotency-Key"], mail)
            self.send_response(204)
        except sqlite3.OperationalError:
            self.send_response(503)  # temporary: Semel retries
        self.end_headers()


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the default of 5, further new connections can wait for seconds


if __name__ == "__main__":
    database().close()
    server = Server(("127.0.0.1", PORT), Handler)
    print(f"listening on {PORT}", flush=True)
    server.serve_forever()
