"""Decides which bookings a transfer needs. Semel writes the bookings once.

Uses only Python's standard library, and no database. Start this program, and then `semel run`.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "8018"))
EFFECTS = "application/vnd.semel.effects+json"


def effects(transfer):
    """Returns the statements of the policy that Semel runs, in this order, in one transaction."""
    amount = transfer["amount"]
    return [
        {"statement": "book", "params": {"account": transfer["from"], "amount": -amount}},
        {"statement": "book", "params": {"account": transfer["to"], "amount": amount}},
        {"statement": "note", "params": {"account": transfer["to"], "text": transfer.get("text")}},
    ]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for many calls
    wbufsize = -1  # send a response in one packet

    def do_POST(self):
        transfer = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if transfer["amount"] <= 0:  # permanent: Semel parks the message
            return self.answer(422, "application/problem+json", {"title": "There is nothing to transfer"})
        self.answer(200, EFFECTS, {"effects": effects(transfer)})

    def answer(self, status, kind, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the default of 5, further new connections can wait for seconds


if __name__ == "__main__":
    server = Server(("127.0.0.1", PORT), Handler)
    print(f"listening on {PORT}", flush=True)
    server.serve_forever()
