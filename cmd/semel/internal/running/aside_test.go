package running

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/reasonname"
)

// listing returns a command in the form in which the summary prints commands.
func listing(verb string, flags ...string) string { return verb + " " + strings.Join(flags, " ") }

func TestTheSummaryOfParkedMessagesNamesReasonsAndCommands(t *testing.T) {
	var aside Aside
	var out bytes.Buffer
	if err := aside.Write(&out, terminal.Unlimited, listing); err != nil || out.Len() > 0 {
		t.Errorf("nothing was set aside: %v, %q", err, out.String())
	}
	for _, e := range []semel.Event{
		{Kind: eventkind.Duplicate, Consumer: "billing", Messages: 9},
		{Kind: semel.EventDeadLettered, Consumer: "audit", Reason: semel.ReasonExhausted, Messages: 40},
		{Kind: semel.EventConflict, Consumer: "billing", Reason: semel.ReasonConflict, Messages: 1},
		{Kind: semel.EventConflict, Consumer: "billing", Reason: semel.ReasonConflict, Messages: 1},
		{Kind: semel.EventConflict, Consumer: "billing", Reason: reasonname.FormerConflict, Messages: 1},
		{Kind: semel.EventParked, Consumer: "billing", Reason: semel.ReasonMalformed, Messages: 3},
		{Kind: semel.EventDiscarded, Consumer: "billing", Reason: "by\x1b[2J\nhand " + semel.Reason(strings.Repeat("x", 100)), Messages: 1},
		{Kind: eventkind.Committed, Consumer: "billing", Messages: 100},
	} {
		aside.Observe(e)
	}
	if err := aside.Write(&out, terminal.Unlimited, listing); err != nil {
		t.Fatal(err)
	}
	want := `
parked, dead-lettered or discarded in this run:
    40  attempts exhausted                         dead_lettered   audit
     3  malformed                                  parked          billing
     2  conflict                                   conflicts       billing
     1  by\x1b[2J\nhand xxxxxxxxxxxxxxxxxxxxxxx…   discarded       billing
     1  conflict with a former identity            conflicts       billing

list them by error, or one by one:
  summary 
  ls --reason malformed
`
	if got := out.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}

func TestMessagesWithoutRowsAreListedWithoutCommands(t *testing.T) {
	aside := Aside{Rowless: func(consumer string) bool { return consumer == "charge" }}
	aside.Observe(semel.Event{Kind: semel.EventDiscarded, Consumer: "charge", Reason: semel.ReasonOutcomeUnknown, Messages: 9})
	var out bytes.Buffer
	if err := aside.Write(&out, terminal.Unlimited, listing); err != nil || strings.Contains(out.String(), "summary") || !strings.Contains(out.String(), "the log names the messages") {
		t.Errorf("%v:\n%s", err, &out)
	}
	aside.Observe(semel.Event{Kind: semel.EventParked, Consumer: "billing", Reason: semel.ReasonMalformed, Messages: 1})
	out.Reset()
	if err := aside.Write(&out, terminal.Unlimited, listing); err != nil || !strings.HasSuffix(out.String(), "  summary \n  ls --reason malformed\n") {
		t.Errorf("%v:\n%s", err, &out)
	}
}

func TestManyReasonsOfHandlersAreLimited(t *testing.T) {
	var aside Aside
	for i := range 3 * mostGroups {
		aside.Observe(semel.Event{Kind: semel.EventParked, Reason: semel.Reason(fmt.Sprint("row ", i)), Messages: 1})
	}
	var out bytes.Buffer
	if err := aside.Write(&out, terminal.Unlimited, listing); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines > mostShown+7 || !strings.Contains(out.String(), "ls --reason row 0\n") || len(aside.counts) != mostGroups+1 || !strings.Contains(out.String(), "  2000  further reasons") {
		t.Errorf("%d lines, %d groups:\n%s", lines, len(aside.counts), out.String())
	}
}

func TestTheTableOfParkedMessagesFitsTheTerminal(t *testing.T) {
	var aside Aside
	aside.Observe(semel.Event{Kind: semel.EventDeadLettered, Consumer: "orders-of-the-german-shop", Reason: "the account of this customer was closed long ago", Messages: 7})
	aside.Observe(semel.Event{Kind: semel.EventParked, Consumer: "b", Reason: semel.ReasonMalformed, Messages: 1})
	for columns := 10; columns < 120; columns++ {
		var out bytes.Buffer
		if err := aside.Write(&out, columns, listing); err != nil {
			t.Fatal(err)
		}
		table, _, _ := strings.Cut(out.String(), "\nlist them")
		_, table, _ = strings.Cut(table, "run:\n")
		for line := range strings.Lines(table) {
			if got := terminal.Columns(strings.TrimRight(line, "\n")); got > columns {
				t.Errorf("%d columns in %d: %s", got, columns, line)
			}
		}
		if columns >= 60 && !strings.Contains(table, "orders-of-the-german-sh…") {
			t.Errorf("in %d columns the consumer is cut:\n%s", columns, table)
		}
	}
}

func TestSumUpKeepsLinesThatAreNotAboutOneMessage(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(SumUp(slog.NewTextHandler(terminal.Text(&out), nil), &out, terminal.Unlimited)).With("consumer", "billing").WithGroup("g")
	for _, kind := range messageEvents {
		log.Warn(string(kind), "id", "1")
	}
	if out.Len() > 0 {
		t.Errorf("single messages are logged: %s", out.String())
	}
	log.Error(string(eventkind.Failed))
	log.Warn("store does not work")
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("%d lines, want 2: %s", got, out.String())
	}
}
