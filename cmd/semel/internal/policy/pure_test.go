package policy

import (
	"slices"
	"strings"
)

// withPure returns the edits for a consumer whose endpoint changes nothing, with further keys of
// the consumer.
func withPure(keys ...string) []string {
	return slices.Concat([]string{"    strategy: marker\n", "    " + strings.Join(append([]string{"strategy: marker"}, keys...), "\n    ") + "\n"}, endpoint("pure: true", effects))
}

func acceptedPure() []policyCase {
	return []policyCase{
		{name: "an endpoint that only answers", edits: withPure()},
		{name: "an endpoint that only answers, with keys of its own", edits: append(withPure("lanes: key", "workers: 3", "effect: {kind: projection, says: x}"), "pure: true", "pure: true\n        key: none")},
		{name: "an endpoint that only answers, over fewer connections than workers", edits: append(withPure("workers: 64"), "pure: true", "pure: true\n        connections: 16")},
		{name: "an endpoint that only answers, in batches", edits: withPure("batch: {max_size: 10}"),
			want: "13:12: warning: consumers.billing.batch: each call is for one message, and batches are sized automatically; remove it"},
		{name: "an endpoint that only answers, under a lease", edits: withHTTPKeys("pure: true", effects),
			want: "18:15: warning: consumers.billing.handler.http.pure: with lease, each call is claimed and recorded first, which an endpoint that changes nothing does not need; write strategy: marker"},
	}
}

func refusedPure() []policyCase {
	return []policyCase{
		{name: "an endpoint that only answers, and with nothing", edits: append(withHTTP("strategy: marker"), `charge"`, "charge\"\n        pure: true")},
		{name: "an endpoint that answers under a marker", edits: slices.Concat(withHTTP("strategy: marker")[:2], endpoint(effects))},
		{name: "versions of an endpoint that only answers", edits: withPure(`version: {stream: "body:/order", number: "body:/version"}`)},
		{name: "two identities of an endpoint that only answers", edits: append(withPure(), `source: "header:ce-source"}`, `source: "header:ce-source", previous: {id: "header:order"}}`)},
		{name: "an adopted table of an endpoint that only answers", edits: append(withPure("dedup: {table: processed, columns: {id: id, source: origin}}"), "sqlite: {path: shop.db}", "postgres: {url: \"postgres:///shop\"}")},
		{name: "a window of an endpoint that only answers", edits: append(withPure(), "pure: true", "pure: true\n        window: 7d")},
		{name: "an effect outside of an endpoint that only answers", edits: withPure("effect: {kind: external, says: x}", "retention: forever")},
		{name: "days of an endpoint that only answers", edits: append(withPure("retention: {keep: 30d, id_time: uuidv7, daily_partitions: true}"), "sqlite: {path: shop.db}", "postgres: {url: \"postgres:///shop\"}")},
		{name: "an endpoint that only answers for longer than its consumer waits", edits: append(withPure(), "pure: true", "pure: true\n        timeout: 1m")},
		{name: "an endpoint that only answers, over more connections than workers", edits: append(withPure("workers: 8"), "pure: true", "pure: true\n        connections: 16")},
		{name: "an endpoint that is called under a lease, over so many connections", edits: withHTTPKeys("pure: true\n        connections: 4", effects)},
		{name: "an endpoint that only answers, and a word that is none", edits: append(withPure(), "pure: true", "pure: yes")},
	}
}
