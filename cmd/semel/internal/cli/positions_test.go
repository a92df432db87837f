package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestI7WhatSetsPositionsRightIsAStepThatDoesIt(t *testing.T) {
	c := &common{config: "semel.yaml", consumer: "billing"}
	for name, want := range map[string]struct {
		ahead, byPerson int
		says            string
		flag            bool
	}{
		"restored":                {2, 0, "stop the consumers, then: semel positions reset", false},
		"set by a person":         {2, 2, "has set them so: if that was a mistake, stop the consumers, then: semel positions reset", true},
		"one set by a person":     {1, 1, "has set it so", true},
		"some restored, some set": {3, 1, "of them 1 set so by a person, or an older release: --ahead sets", false},
	} {
		got := c.remedy(&bareGroup{}, want.ahead, want.byPerson)
		if !strings.Contains(got, want.says) || strings.HasSuffix(got, "--ahead") != want.flag || !strings.Contains(got, "--consumer billing") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A Go program has no policy: its operators say in flags what a policy would say.
func TestPositionsWithoutAPolicy(t *testing.T) {
	folder := t.TempDir()
	run := func(words ...string) (int, string) {
		var out, err bytes.Buffer
		code := Main(t.Context(), append([]string{"positions"}, words...), Streams{Out: &out, Err: &err, Env: func(string) (string, bool) { return "", false }})
		return code, out.String() + err.String()
	}
	whole := []string{"--store", "sqlite:" + folder + "/shop.db", "--consumer", "billing", "--brokers", "127.0.0.1:1", "--topics", "payments"}
	for name, c := range map[string]struct {
		words []string
		code  int
		says  string
	}{
		"the_consumer_is_missing":    {whole[:2], exitUsage, "--store needs --consumer, --brokers and --topics"},
		"the_topics_are_missing":     {whole[:6], exitUsage, "--store needs --consumer, --brokers and --topics"},
		"brokers_belong_to_a_store":  {whole[4:], exitUsage, "need --store"},
		"a_name_is_no_database":      {append([]string{"--store", "shop"}, whole[2:]...), exitUsage, "--store is a database here"},
		"the_database_is_asked_then": {whole, exitFailed, "shop.db"},
	} {
		t.Run("case_13_"+name, func(t *testing.T) {
			if code, said := run(append([]string{"plan"}, c.words...)...); code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
	t.Run("case_13_the_next_step_has_the_same_flags_and_no_password", func(t *testing.T) {
		bare := &bareGroup{store: "postgres://u:secret@db/shop", group: "g", brokers: []string{"k:9092"}, topics: []string{"payments"}}
		line := (&common{consumer: "billing"}).resetLine(bare)
		if line != "semel positions reset --store DATABASE --brokers k:9092 --topics payments --group g --consumer billing --because 'restored from a backup'" {
			t.Error(line)
		}
	})
}
