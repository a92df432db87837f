package running

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestLinesReportProgressAtIntervals(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := NewLines(&out, 200, func() time.Time { return now })
	for done := range 100 {
		now = now.Add(time.Second)
		l.Set(done + 1)
	}
	l.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 10 || lines[0] != "10 of 200 messages, 1/s" || lines[9] != "100 of 200 messages, 1/s" {
		t.Errorf("the lines are %q", lines)
	}
}

func TestAClosedBarShowsTheLastCount(t *testing.T) {
	var out bytes.Buffer
	b := NewBar(&out, 10)
	b.Set(4)
	b.Close()
	if !strings.Contains(out.String(), "4 of 10 messages") {
		t.Errorf("the screen shows %q", out.String())
	}
}
