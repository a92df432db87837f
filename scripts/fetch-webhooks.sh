#!/bin/sh
# Fetches the real webhook payloads that `make proof-file` delivers (npm
# package @octokit/webhooks-examples, MIT), checks them by hash, and prints the
# path of index.json. They are kept in a temporary folder and never committed.
set -eu

package=@octokit/webhooks-examples@7.6.1
tarball=octokit-webhooks-examples-7.6.1.tgz
sha256=89e6cb1c6345d32e3dd775617fa54effbdc26c859e514898d7728e95e9738280
cache=${TMPDIR:-/tmp}/semel-webhooks-7.6.1
index=$cache/package/api.github.com/index.json

checked() {
	if command -v sha256sum >/dev/null; then
		echo "$sha256  $1" | sha256sum -c - >/dev/null 2>&1
	else
		echo "$sha256  $1" | shasum -a 256 -c - >/dev/null 2>&1
	fi
}

mkdir -p "$cache"
cd "$cache"
if ! checked "$tarball"; then
	command -v npm >/dev/null || {
		echo "fetch-webhooks: npm is missing; install it, or put $tarball into $cache" >&2
		exit 1
	}
	npm pack --silent "$package" >/dev/null
	checked "$tarball" || {
		echo "fetch-webhooks: $cache/$tarball has another SHA-256 than $sha256; delete it and try again" >&2
		exit 1
	}
fi
tar -xzf "$tarball"
echo "$index"
