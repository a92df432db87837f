package sqltext

import "testing"

func TestExactTexts(t *testing.T) {
	for text, want := range map[string]string{
		"select f(x), public.g(x)":                              "select pg_catalog.f(x), public.g(x)",
		"insert into t as a (b) select coalesce(max(b), 0)":     "insert into t as a (b) select coalesce(pg_catalog.max(b), 0)",
		"select 'f(x)' -- f(x)":                                 "select 'f(x)' -- f(x)",
		"now() + $1::bigint * interval '1 millisecond'":         "pg_catalog.now() + $1::bigint::float8 * interval '1 millisecond'",
		"(extract(epoch from min(a.at)) * 1000)::bigint":        "(extract(epoch from pg_catalog.min(a.at)) * 1000.0)::bigint",
		"oid = to_regclass('t') or pg_catalog.to_regclass('u')": "oid = pg_catalog.to_regclass('t')::oid or pg_catalog.to_regclass('u')::oid",
		"from unnest(a), unnest(a, b)":                          "from pg_catalog.unnest(a), unnest(a, b)",
		"do $d$ execute $s$ select f(x) $s$; $d$":               "do $d$ execute $s$ select pg_catalog.f(x) $s$; $d$",
	} {
		if got, err := Postgres().Exact(text); err != nil || got != want {
			t.Errorf("%s\nis   %s\nwant %s, %v", text, got, want, err)
		}
		if got, err := SQLite().Exact(text); err != nil || got != text {
			t.Errorf("SQLite: %s, %v", got, err)
		}
	}
}
