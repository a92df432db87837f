package cli

import (
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
