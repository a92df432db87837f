package running

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
)

// fixedConsumer is a consumer that returns fixed values for a live line.
type fixedConsumer struct {
	counts      semel.Counts
	why, source string
}

func (w *fixedConsumer) Counts() semel.Counts  { return w.counts }
func (w *fixedConsumer) Ready() (bool, string) { return w.why == "", w.why }
func (w *fixedConsumer) Source() string        { return w.source }

func TestTheMeterShowsTheRateOfTheLastSeconds(t *testing.T) {
	now, consumer := time.Unix(1, 0), &fixedConsumer{source: "behind 2.5 MB"}
	m := meter{now: func() time.Time { return now }, consumer: consumer, at: now}
	line := func() string { return terminal.Parts(terminal.Unlimited, m.parts(longestReason)...) }
	if got := line(); got != "0/s  behind 2.5 MB  deliveries 0" {
		t.Errorf("at the start: %s", got)
	}
	for range 60 {
		now = now.Add(time.Second)
		consumer.counts.Deliveries, consumer.counts.Applied = consumer.counts.Deliveries+500, consumer.counts.Applied+500
		line()
	}
	if got := line(); got != "500/s  behind 2.5 MB  deliveries 30000  applied 30000" {
		t.Errorf("after a minute at 500 a second: %s", got)
	}
}

func TestALiveLineFitsAndShowsTheMostUrgentCountsFirst(t *testing.T) {
	consumer := &fixedConsumer{source: "behind 2.5 MB", why: "store: connection refused\n" + strings.Repeat("x", 100),
		counts: semel.Counts{Deliveries: 99_999, Applied: 90_000, Duplicates: 9_000, Conflicts: 7, Parked: 900, Failed: 1, InFlight: 91}}
	m := meter{now: time.Now, consumer: consumer}
	if got, want := terminal.Parts(80, m.parts(longestReason)...), "not ready: store: connection refused\\nx…  failed 1  parked 900  conflicts 7  …"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	consumer.why = ""
	for columns := 1; columns < 200; columns++ {
		if got := terminal.Parts(columns, m.parts(longestReason)...); terminal.Columns(got) > columns {
			t.Errorf("%q does not fit into %d columns", got, columns)
		}
	}
}

func TestANarrowLiveLineStillSaysThatAConsumerIsNotReady(t *testing.T) {
	consumer := &fixedConsumer{why: "store: database shop at db:5432: connection refused", counts: semel.Counts{Deliveries: 99, Parked: 7, InFlight: 92}}
	m := meter{now: time.Now, consumer: consumer}
	for columns := 50; columns < 120; columns++ {
		got := m.line("orders-of-the-german-shop", columns)
		if terminal.Columns(got) > columns || !strings.Contains(got, "not ready: ") {
			t.Errorf("in %d columns: %s", columns, got)
		}
	}
}

func TestLiveLinesShowCountsAndLetTheLogPass(t *testing.T) {
	var screen bytes.Buffer
	live := NewLive(&screen)
	live.Add("billing", &fixedConsumer{counts: semel.Counts{Deliveries: 7, Applied: 7}})
	if _, err := live.Write([]byte("a line of the log\n")); err != nil {
		t.Fatal(err)
	}
	live.Close()
	for _, want := range []string{"a line of the log", "billing", "deliveries 7  applied 7"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("%q is missing in %q", want, screen.String())
		}
	}
}

// After an interrupt, the terminal shows ^C below the lines, and the cursor is behind that text. The next
// redraw would start in the column of the cursor.
func TestALiveLineIsClearedAfterAnInterrupt(t *testing.T) {
	var screen bytes.Buffer
	live := NewLive(&screen)
	screen.WriteString("billing  0/s\r\n^C")
	live.Interrupted()
	if got := screen.String(); !strings.HasSuffix(got, "^C\r\x1b[K") {
		t.Errorf("%q", got)
	}
	live.Close()
}
