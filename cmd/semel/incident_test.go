package main

import (
	"os"
	"strings"
	"testing"
)

// TestTheIncidentOfThePageIsTried checks that tests run the commands of the docs. Each command of an
// incident in docs/operate/messages.md must occur in a script. Each command in docs/operate/dead-letters.md
// must occur in the test with Kafka brokers.
func TestTheIncidentOfThePageIsTried(t *testing.T) {
	page := read(t, "../../docs/operate/messages.md") + read(t, "../../docs/operate/dead-letters.md")
	script := read(t, "testdata/script/dead_letters.txtar")
	brokers := read(t, "../../itest/binary/kafka/dead_test.go")
	tried := map[string]bool{}
	for line := range strings.Lines(script) {
		_, command, found := strings.Cut(strings.TrimSpace(line), "semel ")
		if found {
			tried["semel "+command] = true
		}
	}
	commands := 0
	for i, block := range strings.Split(page, "```") {
		if i%2 == 0 || !strings.HasPrefix(block, "sh\n") {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "sh\n")) {
			commands++
			line = strings.TrimSpace(line)
			if !tried[line] && !strings.Contains(brokers, "`"+line+"`") {
				t.Errorf("nothing tries %q", line)
			}
		}
	}
	if commands < 10 {
		t.Errorf("the pages have %d commands", commands)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
