// Decides what a transfer does, and leaves it to Semel to do it once.
//
// Node's own modules alone, and no database. Run it, and beside it `semel run`.
"use strict";

const http = require("node:http");

const port = Number(process.env.PORT || 8018);
const EFFECTS = "application/vnd.semel.effects+json";

// The statements of the policy that are to run, in this order, all or none.
function effects({ from, to, amount, text }) {
  return [
    { statement: "book", params: { account: from, amount: -amount } },
    { statement: "book", params: { account: to, amount } },
    { statement: "note", params: { account: to, text } },
  ];
}

function answer(response, status, kind, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, { "Content-Type": kind, "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

function handle(transfer, response) {
  if (transfer.amount <= 0) { // for good: it is parked
    answer(response, 422, "application/problem+json", { title: "There is nothing to transfer" });
  } else {
    answer(response, 200, EFFECTS, { effects: effects(transfer) });
  }
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    console.log(`${request.method} ${request.url}`);
    handle(JSON.parse(Buffer.concat(parts)), response);
  });
});

server.listen(port, "127.0.0.1", () => console.log(`listening on ${port}`));
