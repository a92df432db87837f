package runs

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

func TestI7WhatSetsPositionsRightIsAStepThatDoesIt(t *testing.T) {
	c := &command.CLI{Config: "semel.yaml", Consumer: "billing"}
	for name, want := range map[string]struct {
		ahead, byPerson int
		says            string
		flag            bool
	}{
		"restored":                {2, 0, "stop the consumers, then: semel consumers positions reset", false},
		"set by a person":         {2, 2, "has set them so: if that was a mistake, stop the consumers, then: semel consumers positions reset", true},
		"one set by a person":     {1, 1, "has set it so", true},
		"some restored, some set": {3, 1, "of them 1 set so by a person, or an older release: --ahead sets", false},
	} {
		got := remedy(c, &groupFlags{}, want.ahead, want.byPerson)
		if !strings.Contains(got, want.says) || strings.HasSuffix(got, "--ahead") != want.flag || !strings.Contains(got, "positions reset billing ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatSetsPositionsRightWithoutAPolicy(t *testing.T) {
	t.Run("case_13_the_next_step_has_the_same_flags_and_no_password", func(t *testing.T) {
		bare := &groupFlags{store: "postgres://u:secret@db/shop", group: "g", brokers: []string{"k:9092"}, topics: []string{"payments"}}
		line := resetLine((&command.CLI{Consumer: "billing"}), bare)
		if line != "semel consumers positions reset billing --brokers k:9092 --topics payments --group g --because 'restored from a backup'" {
			t.Error(line)
		}
	})
}
