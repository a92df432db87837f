"""Decides what a transfer does, and leaves it to Semel to do it once.

Python's standard library alone, and no database. Run it, and beside it `semel run`.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "8018"))
EFFECTS = "application/vnd.semel.effects+json"


def effects(transfer):
    """The statements of the policy that are to run, in this order, all or none."""
    amount = transfer["amount"]
    return [
        {"statement": "book", "params": {"account": transfer["from"], "amount": -amount}},
        {"statement": "book", "params": {"account": transfer["to"], "amount": amount}},
        {"statement": "note", "params": {"account": transfer["to"], "text": transfer.get("text")}},
    ]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for many calls
    wbufsize = -1  # an answer is one packet

    def do_POST(self):
        transfer = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if transfer["amount"] <= 0:  # for good: it is parked
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
    request_queue_size = 128  # connections that come at once; of more than 5, the default, some wait for seconds


if __name__ == "__main__":
    server = Server(("127.0.0.1", PORT), Handler)
    print(f"listening on {PORT}", flush=True)
    server.serve_forever()
