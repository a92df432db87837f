//go:build unix

package main

import (
	"strings"
	"testing"
)

func TestFlagsThatSayNothingToMeasureAreRefusedWithWhatToSay(t *testing.T) {
	good := flags{base: "abc", rounds: 1, deliveries: 100, dsn: "postgres://x", webhooks: "index.json"}
	for what, c := range map[string]struct {
		change func(*flags)
		want   string
	}{
		"no base":                {func(f *flags) { f.base = "" }, "name a commit with -base"},
		"no rounds":              {func(f *flags) { f.rounds = 0 }, "-rounds 0: at least 1"},
		"no server":              {func(f *flags) { f.postgres, f.dsn = true, "" }, "set SEMEL_POSTGRES or -dsn"},
		"no webhooks":            {func(f *flags) { f.file, f.webhooks = true, "" }, "scripts/fetch-webhooks"},
		"no server behind Kafka": {func(f *flags) { f.kafka, f.dsn = "x:1", "" }, "set SEMEL_POSTGRES or -dsn"},
		"nothing from Kafka":     {func(f *flags) { f.kafka, f.webhooks = "x:1", "" }, "scripts/fetch-webhooks"},
		"Kafka and a file":       {func(f *flags) { f.kafka, f.file = "x:1", true }, "choose one"},
		"few deliveries":         {func(f *flags) { f.file, f.deliveries = true, 9 }, "-deliveries 9: at least 10"},
		"two kinds":              {func(f *flags) { f.file, f.postgres = true, true }, "choose one"},
		"a body":                 {func(f *flags) { f.body = "200B" }, "-body is for -postgres and -kafka"},
		"no length":              {func(f *flags) { f.postgres, f.body = true, "200B, 7x" }, `-body: "7x" is not a length`},
		"two bases":              {func(f *flags) { f.file, f.against = true, "semel" }, "in the place of -base"},
		"a binary alone":         {func(f *flags) { f.base, f.against = "", "semel" }, "names a binary for -file"},
	} {
		f := good
		c.change(&f)
		if err := f.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*flags){
		"benchmarks": func(f *flags) { f.webhooks, f.dsn = "", "" }, "PostgreSQL": func(f *flags) { f.postgres = true },
		"webhooks from Kafka": func(f *flags) { f.kafka = "x:1" }, "bodies from Kafka": func(f *flags) { f.kafka, f.webhooks, f.body = "x:1", "", "1KiB" },
		"a file": func(f *flags) { f.file = true }, "a built binary": func(f *flags) { f.file, f.base, f.against = true, "", "semel" },
	} {
		f := good
		change(&f)
		if err := f.check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAMissingBinaryOrFileIsAnErrorBeforeAnythingIsMeasured(t *testing.T) {
	f := flags{file: true, against: t.TempDir() + "/semel", rounds: 1, deliveries: 10, webhooks: "index.json"}
	if err := f.compare(t.Context()); err == nil || !strings.Contains(err.Error(), "/semel: no such file") {
		t.Error(err)
	}
	f.against = t.TempDir()
	if err := f.compare(t.Context()); err == nil || !strings.Contains(err.Error(), "index.json: no such file") {
		t.Error(err)
	}
}
