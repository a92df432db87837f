package policy

import (
	"slices"
	"strings"
)

// refused are policies with their faults.
func refused() []policyCase {
	return slices.Concat(refusedShapes(), refusedValues(), refusedCombinations(), refusedKafka(), refusedDedup(), refusedVersions())
}

func refusedShapes() []policyCase {
	return []policyCase{
		{name: "unknown key, near a known one", edits: inConsumer("wrokers: 3"), shape: true},
		{name: "unknown key, far from all", edits: []string{"sqlite: {path: shop.db}", "sqlite: {path: shop.db, colour: red}"}, shape: true},
		{name: "misspelled required key is reported once", edits: []string{"identity:", "identiy:"}, shape: true},
		{name: "duplicate key", edits: inConsumer("workers: 3", "workers: 4")},
		{name: "missing keys", edits: []string{"    from: payments\n", "", "version: 1\n", ""}, shape: true},
		{name: "list for a mapping", edits: []string{"file: {path: payments.jsonl, format: envelope}", "file: [payments.jsonl]"}, shape: true},
		{name: "text for a mapping", edits: []string{"{id: \"header:ce-id\", source: \"header:ce-source\"}", "ce-id"}, shape: true},
		{name: "nothing", edits: inConsumer("retry:"), shape: true},
		{name: "mapping for a text", edits: []string{"from: payments", "from: {a: b}"}, shape: true},
		{name: "number for a text", edits: []string{"path: shop.db", "path: 12"}, shape: true},
		{name: "text for a number", edits: inConsumer(`workers: "3"`), shape: true},
		{name: "text for a boolean", edits: []string{"sqlite:", "migrate: \"true\"\n    sqlite:"}, shape: true},
		{name: "mapping for a list", edits: []string{"- update", "a: update"}, shape: true},
		{name: "empty list", edits: []string{`id: "header:ce-id"`, `id: []`}, shape: true},
		{name: "key that is a list", edits: []string{"version: 1", "version: 1\n? [a]\n: b"}},
		{name: "merge key", edits: inConsumer("<<: {workers: 3}")},
		{name: "environment in a key", edits: inConsumer("${KEY}: 3"), shape: true},
		{name: "no kind of store", edits: []string{"sqlite: {path: shop.db}", "migrate: true"}, shape: true},
		{name: "two kinds of source", edits: []string{"    file:", "    kafka: {}\n    file:"}, shape: true},
		{name: "name with a space", edits: []string{"  billing:", "  bil ling:"}, shape: true},
		{name: "no consumers", edits: []string{"consumers:\n", "consumers: {}\nx:\n"}, shape: true},
		{name: "key of a later release", edits: inConsumer("replay: {allowed: true}", "alerts: {parked: 1}"), shape: true},
		{name: "store of a later release", edits: []string{"sqlite: {path: shop.db}", "mysql: {url: \"${SECRET}\"}"}, shape: true},
	}
}

func refusedValues() []policyCase {
	return []policyCase{
		{name: "version of a later format", edits: []string{"version: 1", "version: 2"}, shape: true},
		{name: "word", edits: inConsumer("on_conflict: parc"), shape: true},
		{name: "followers that wait for nothing", edits: inConsumer("on_parked: block", "lanes: none")},
		{name: "followers without markers", edits: append([]string{"strategy: marker", "strategy: {natural: {because: \"order: irrelevant\"}}"}, inConsumer("on_parked: block")...)},
		{name: "followers beside versions", edits: inConsumer("on_parked: block", "version: {stream: \"body:/order\", number: \"body:/version\"}")},
		{name: "word of a later release", edits: inConsumer("on_store_down: apply"), shape: true},
		{name: "retention of a later release", edits: inConsumer("retention: 30d"), shape: true},
		{name: "retention", edits: inConsumer("retention: long"), shape: true},
		{name: "duration without unit", edits: inConsumer("timeout: 30"), shape: true},
		{name: "duration out of range", edits: inConsumer("timeout: 2d", "hold: 0s")},
		{name: "negative duration", edits: inConsumer("drain: -1s"), shape: true},
		{name: "size without unit", edits: inConsumer("max_unsettled: {bytes: 1000}"), shape: true},
		{name: "size beyond all bounds", edits: inConsumer("max_unsettled: {bytes: 99999999999GiB}")},
		{name: "number out of range", edits: inConsumer("workers: 0", "batch: {most: 10001}"), shape: true},
		{name: "number with a fraction", edits: inConsumer("workers: 1.5"), shape: true},
		{name: "selector", edits: []string{`"body:/account"`, `"bdy:/account"`}, shape: true},
		{name: "selector without its rest", edits: []string{`"header:ce-id"`, `"header:"`}, shape: true},
		{name: "unset variable", edits: []string{"shop.db", `"${NOWHERE}.db"`}},
		{name: "variable without quotes in braces", edits: []string{"shop.db", "${NOWHERE}.db"}},
		{name: "no name of a variable", edits: []string{"shop.db", `"${1}.db"`}},
		{name: "types without one", edits: byType("{}"), shape: true},
		{name: "types of nothing", edits: byType(`"": {sql: {statements: [select 1]}}`, `"@2": {sql: {statements: [select 1]}}`), shape: true},
		{name: "a type without its version", edits: byType(`"made@": {sql: {statements: [select 1]}}`)},
		{name: "a type without a handler", edits: byType(`made: {}`), shape: true},
		{name: "a type twice", edits: byType(`made: {sql: {statements: [select 1]}}`, `made: {sql: {statements: [select 2]}}`)},
		{name: "types beside sql", edits: []string{"      sql:\n", "      types: {made: {sql: {statements: [select 1]}}}\n      sql:\n"}, shape: true},
		{name: "statements of types", edits: byType(`a.b: {sql: {params: {x: "body:/x"}, statements: ["update t set n = :y", commit]}}`,
			`a: {sql: {params: {unused: key}, statements: [{sql: "select 1", rows: 1}]}}`)},
		{name: "variable in a default", edits: []string{"shop.db", `"${NOWHERE:-${SECRET}}.db"`}},
		{name: "variable in a default that is not needed", edits: []string{"shop.db", `"${SECRET:-${EMPTY:-x}}.db"`}},
		{name: "unknown tags", edits: []string{"path: shop.db", "path: !path shop.db, prefix: !!binary YQ=="}},
		{name: "a tag on a mapping", edits: []string{"    sqlite: {", "    sqlite: !db {"}},
		{name: "identity by type", edits: []string{`id: "header:ce-id"`, `id: type`}},
		{name: "identity by source and type", edits: []string{`id: "header:ce-id"`, `id: [source, type]`}},
		{name: "identity by a header of the time", edits: []string{`id: "header:ce-id"`, `id: "header:ce-time"`}},
		{name: "variable without end", edits: []string{"shop.db", `"${SECRET.db"`}},
		{name: "values of the environment are not shown", edits: append(inConsumer("workers: ${SECRET}", "lanes: ${SECRET}", "timeout: ${SECRET}", "retention: ${SECRET}"),
			`"header:ce-id"`, `"${SECRET}"`, `"header:ce-source"`, `"x${SECRET}"`, "from: payments", `from: "${SECRET}"`, "store: shop", "store: ${SECRET}")},
		{name: "table prefix", edits: []string{"path: shop.db", "path: shop.db, prefix: 1-"}, shape: true},
		{name: "connection string", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"mysql://shop:secret@db/shop\"}"}, shape: true},
		{name: "connection string of the environment", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"${SECRET}\"}"}},
		{name: "password that is no part of a connection string", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"postgres://shop:${SECRET}%@db/shop\"}"}},
		{name: "no connection string", edits: []string{"sqlite: {path: shop.db}", "postgres: {prefix: a_}"}, shape: true},
		{name: "schema and prefix", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"postgres://db/shop\", schema: 'a\"b', prefix: App_}"}, shape: true},
		{name: "parameter name", edits: []string{"account:", "ac-count:", ":account", ":ac"}, shape: true},
		{name: "text with a line break", edits: []string{"payments.jsonl", `"pay\nments"`}},
		{name: "empty text", edits: []string{"payments.jsonl", `""`}, shape: true},
	}
}

func refusedCombinations() []policyCase {
	return []policyCase{
		{name: "a line longer than a body", edits: append(inConsumer("max_body: 1MiB"), "format: envelope", "format: envelope, max_line: 2MiB")},
		{name: "a line longer than the body's default", edits: []string{"format: envelope", "format: envelope, max_line: 32MiB"}},
		{name: "a body too short", edits: inConsumer("max_body: 1KiB")},
		{name: "only without a condition", edits: inConsumer("only: {}"), shape: true},
		{name: "only of what is no condition", edits: inConsumer("only: {types: [payment], header: [x]}"), shape: true},
		{name: "only of an empty type", edits: inConsumer(`only: {type: [payment, ""]}`), shape: true},
		{name: "only of a header twice", edits: inConsumer(`only: {"header:Region": eu, "header:region": us}`)},
		{name: "only of a type where lines have none", edits: append(inConsumer("only: {type: payment}"), "format: envelope", "format: json")},
		{name: "only of a header where lines have none", edits: append(inConsumer(`only: {"header:region": eu}`), "format: envelope", "format: json")},
		{name: "otherwise without only", edits: inConsumer("otherwise: skip")},
		{name: "otherwise dead letters of a file", edits: inConsumer("only: {type: payment}", "otherwise: dead_letter")},
		{name: "unknown source and store", edits: []string{"from: payments", "from: payment", "store: shop", "store: other"}},
		{name: "no identity", edits: []string{"    identity: {id: \"header:ce-id\", source: \"header:ce-source\"}\n", ""}},
		{name: "identity of constants", edits: []string{`id: "header:ce-id"`, `id: "const:a"`}},
		{name: "natural beside the marker", edits: []string{"strategy: marker", "strategy: {marker: true, natural: {order: irrelevant}}"}},
		{name: "natural without a reason", edits: []string{"strategy: marker", "strategy: natural"}, shape: true},
		{name: "natural with an empty declaration", edits: []string{"strategy: marker", "strategy: {natural: {}}"}, shape: true},
		{name: "business key without constraint", edits: []string{"strategy: marker", "strategy: business_key"}, shape: true},
		{name: "no strategy", edits: []string{"strategy: marker", "strategy: {marker: false}"}},
		{name: "keys of lines that have none", edits: append(inConsumer("lanes: key"), "format: envelope", "format: cloudevents")},
		{name: "the age of what cannot wait", edits: append(inConsumer("alerts: {pending_age: 1m}"), "strategy: marker", "strategy: {natural: {because: I say so}}")},
		{name: "conflicts without fingerprint", edits: inConsumer("fingerprint: none", "on_conflict: park")},
		{name: "fingerprint without marker", edits: append(inConsumer("fingerprint: body"), "strategy: marker", "strategy: {business_key: {constraint: a.b}}")},
		{name: "conflicts without marker", edits: append(inConsumer("on_conflict: halt"), "strategy: marker", "strategy: {business_key: {constraint: a.b}}")},
		{name: "fingerprint of what differs between copies", edits: inConsumer("fingerprint: [offset]")},
		{name: "wait longer than hold without a marker", edits: append([]string{"strategy: marker", "strategy: {business_key: {constraint: payments.id}}"},
			inConsumer("hold: 5s", "retry: {most: 5m}")...)},
		{name: "receipt without an alert", edits: append([]string{"strategy: marker", "strategy: inbox"}, inConsumer("settle: after_receipt", "alerts: {}")...)},
		{name: "receipt with a marker only", edits: inConsumer("settle: after_effect")},
		{name: "inbox beside its marker", edits: []string{"strategy: marker", "strategy: {marker: true, inbox: true}"}},
		{name: "inbox without a marker", edits: append([]string{"strategy: marker", "strategy: {natural: {order: irrelevant}}", "balance = balance + :amount", "balance = :amount"},
			inConsumer("inbox: {poll: 1s}")...)},
		{name: "an absurd lease", edits: append([]string{"strategy: marker", "strategy: inbox"},
			inConsumer("inbox: {lease: 0s, poll: -1s, starts: 0}")...)},
		{name: "first wait longer than the longest", edits: inConsumer("retry: {first: 5s, most: 1s}")},
		{name: "two readers of standard input", edits: []string{"payments.jsonl", `"-"`, "consumers:\n", "consumers:\n  audit: {from: payments, store: shop, identity: {id: id}, handler: {sql: {statements: [select 1]}}}\n"}},
		{name: "standard input followed", edits: []string{"payments.jsonl", `"-", follow: true`}},
		{name: "parameter never bound", edits: []string{", amount: \"body:/amount\"", ""}},
		{name: "parameter never used", edits: []string{"account:", "left: key, account:"}},
		{name: "statement that commits", edits: []string{"- update", "- begin\n          - \"COMMIT;\"\n          - update"}},
		{name: "one fault hides no other", edits: []string{"- update", "- begin\n          - update", "account:", "left: key, account:", "from: payments", "from: pay", "billing:\n", "billing:\n    timeout: 1\n"}},
		{name: "a setting of the transaction in batches", edits: append(inConsumer("batch: {most: 2}"), "sqlite: {path: shop.db}", "postgres: {url: \"postgres://db/shop\"}",
			"- update", "- select set_config('app.tenant', :account, true)\n          - update")},
		{name: "a statement with NUL", edits: []string{"- update", "- |-\n            select 1\n          - \"delete from a\\0; commit\"\n          - update"}},
		{name: "a handler that never runs", edits: append(byType(`undo: {sql: {statements: [select 1]}}`, `pay@2: {sql: {statements: [select 1]}}`),
			"    handler:\n", "    only: {type: [pay, refund]}\n    handler:\n")},
		{name: "several statements", edits: []string{"- update accounts set", "- delete from log; update accounts set"}},
		{name: "statement without end", edits: []string{":account\n", ":account and name = 'x\n"}},
		{name: "placeholder of the database", edits: []string{"id = :account", "id = :account and b = ?"}},
		{name: "placeholder of PostgreSQL", edits: []string{"sqlite: {path: shop.db}", "postgres: {url: \"postgres://db/shop\"}", "id = :account", "id = :account and b = $1"}},
		{name: "otherwise without rows", edits: []string{"- update", "- otherwise: park\n            sql: update"}},
		{name: "rows of a query", edits: []string{"- update", "- {sql: select 1, rows: 1}\n          - update"}},
	}
}

func refusedDedup() []policyCase {
	second := "  shipping:\n    from: payments\n    store: shop\n    identity: {id: \"header:ce-id\"}\n    handler: {sql: {statements: [insert into a values (1)]}}\n"
	dedup := "dedup: {table: processed, columns: {id: id, consumer: handler}}"
	return []policyCase{
		{name: "an adopted table without its columns", edits: adopts("dedup: {table: processed}"), shape: true},
		{name: "an adopted table without the id", edits: adopts("dedup: {table: processed, columns: {source: origin}}"), shape: true},
		{name: "an adopted value that is none", edits: adopts("dedup: {table: processed, columns: {id: id, source: origin}, values: {a: [b]}}"), shape: true},
		{name: "adopted values that are a list", edits: adopts("dedup: {table: processed, columns: {id: id, source: origin}, values: [a]}"), shape: true},
		{name: "an adopted table without a column for sources", edits: adopts("dedup: {table: processed, columns: {id: id}}")},
		{name: "an adopted table in SQLite", edits: inConsumer("dedup: {table: processed, columns: {id: id, source: origin}}")},
		{name: "an adopted table without markers", edits: append(adopts("dedup: {table: processed, columns: {id: id, source: origin}}"),
			"strategy: marker", "strategy: {business_key: {constraint: payments.id}}")},
		{name: "an adopted table that two share", edits: append(adopts("dedup: {table: processed, columns: {id: id, source: origin}}"), "consumers:\n",
			"consumers:\n"+strings.Replace(second, "    handler", "    dedup: {table: processed, columns: {id: id}}\n    handler", 1))},
		{name: "an adopted table in which two have one value", edits: append(adopts(strings.Replace(dedup, "}}", ", source: origin}, values: {handler: shipping}}", 1)), "consumers:\n",
			"consumers:\n"+strings.Replace(second, "    handler", "    "+dedup+"\n    handler", 1))},
	}
}
