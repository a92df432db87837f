// Decides which bookings a transfer needs. Semel writes the bookings once.
//
// Uses only Node's own modules, and no database. Start this program, and then `semel run`.
"use strict";

const http = require("node:http");

const port = Number(process.env.PORT || 8018);
const EFFECTS = "application/vnd.semel.effects+json";

// Returns the statements of the policy that Semel runs, in this order, in one transaction.
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
  if (transfer.amount <= 0) { // permanent: Semel parks the message
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
