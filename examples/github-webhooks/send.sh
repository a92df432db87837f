#!/bin/sh
# Signs a body like GitHub and sends the body with its signature.
#
#     ./send.sh DELIVERY BODY
set -eu
signature=$(printf %s "$2" | openssl dgst -sha256 -hmac "$GITHUB_SECRET" | sed 's/^.*= *//')
curl -s "http://127.0.0.1:${PORT:-8080}/hooks/github" \
  -H "X-GitHub-Event: issues" -H "X-GitHub-Delivery: $1" \
  -H "X-Hub-Signature-256: sha256=$signature" -H 'Content-Type: application/json' \
  --data-binary "$2"
