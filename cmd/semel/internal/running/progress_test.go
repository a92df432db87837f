package running

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

func TestTheMeterShowsTheRateOfTheLastSeconds(t *testing.T) {
	now := time.Unix(1, 0)
	counts := semel.Counts{}
	m := meter{now: func() time.Time { return now }, counts: func() semel.Counts { return counts }, source: func() string { return "behind 2.5 MB" }}
	if got := m.line(); !strings.HasPrefix(got, "0/s  behind 2.5 MB  deliveries 0") {
		t.Errorf("at the start: %s", got)
	}
	for range 60 {
		now = now.Add(time.Second)
		counts.Deliveries, counts.Applied = counts.Deliveries+500, counts.Applied+500
		m.line()
	}
	if got := m.line(); !strings.HasPrefix(got, "500/s  behind 2.5 MB  deliveries 30000  applied 30000") {
		t.Errorf("after a minute at 500 a second: %s", got)
	}
}

func TestLiveLinesShowCountsAndLetTheLogPass(t *testing.T) {
	var terminal bytes.Buffer
	live := NewLive(&terminal)
	live.Add("billing", func() semel.Counts { return semel.Counts{Deliveries: 7, Applied: 7} }, func() string { return "" })
	if _, err := live.Write([]byte("a line of the log\n")); err != nil {
		t.Fatal(err)
	}
	live.Close()
	for _, want := range []string{"a line of the log", "billing", "deliveries 7  applied 7"} {
		if !strings.Contains(terminal.String(), want) {
			t.Errorf("%q is missing in %q", want, terminal.String())
		}
	}
}
