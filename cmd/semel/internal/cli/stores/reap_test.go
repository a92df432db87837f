package stores

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/commandtest"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func TestABareDatabaseKnowsWhomAReaperIsCalledFor(t *testing.T) {
	var out, log bytes.Buffer
	c, p, a := commandtest.Bare(t, &out, &log)
	for _, r := range []store.Retention{{Consumer: "billing", Keep: time.Hour}, {Consumer: "bodies", Bodies: time.Hour}, {Consumer: "ledger"}} {
		if err := a.Stores[0].Retain(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	names, err := reapedIn(t.Context(), c, p, a.Stores[0])
	if want := []string{"billing", "bodies"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	c.Consumer = "other"
	if names, err = reapedIn(t.Context(), c, p, a.Stores[0]); err != nil || !slices.Equal(names, []string{"other"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestAReaperIsCalledForTheGenerationThatIsActive(t *testing.T) {
	var out, log bytes.Buffer
	c, p, a := commandtest.Bare(t, &out, &log)
	s, by := a.Stores[0], store.Act{Verb: "switch", Who: "ana", Why: "x"}
	err := s.BeginGenerations(t.Context(), "billing")
	if err == nil {
		_, err = s.OpenGeneration(t.Context(), "billing", by)
	}
	for n := range int64(2) {
		err = errors.Join(err, s.FenceGeneration(t.Context(), "billing", n, time.Minute),
			s.Retain(t.Context(), store.Retention{Consumer: admin.GenerationName("billing", n), Keep: time.Hour}))
	}
	if err = errors.Join(err, s.SwitchGeneration(t.Context(), "billing", 0, 1, by)); err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{"": "billing@1", "billing": "billing@1", "billing@0": "billing", "billing@1": "billing@1"} {
		c.Consumer = asked
		if names, err := reapedIn(t.Context(), c, p, s); err != nil || !slices.Equal(names, []string{want}) {
			t.Errorf("of %q: %q, %v, want %q", asked, names, err, want)
		}
	}
	c.Consumer = "billing@7"
	if names, err := reapedIn(t.Context(), c, p, s); err == nil {
		t.Errorf("of a generation that is not there: %q", names)
	}
}

func TestAStoreThatDoesNotAnswerIsNotSaidToKeepAll(t *testing.T) {
	var out, log bytes.Buffer
	c, p, a := commandtest.Bare(t, &out, &log)
	if err := reap(t.Context(), c, a, &reapFlags{}); err != nil || log.String() != "no consumer has recorded a retention: all is kept for ever\n" {
		t.Errorf("%v: %s", err, &log)
	}
	log.Reset()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := reap(t.Context(), c, a, &reapFlags{}); err == nil || out.Len()+log.Len() > 0 {
		t.Errorf("%v: %s%s", err, &out, &log)
	}
	if names, err := reapedIn(t.Context(), c, p, a.Stores[0]); err == nil {
		t.Errorf("got %q and no error", names)
	}
}

func TestWhatIsKeptFitsAUsualTerminal(t *testing.T) {
	low := time.Date(2026, 10, 26, 0, 28, 0, 0, time.UTC)
	views := []operate.KeptView{{Consumer: "payments-of-all-shops", Keep: 30 * 86400, Horizon: 14 * 86400, Low: &low, Behind: 3600, LastDay: 100000, Days: &operate.DaysView{Kept: 33, First: low}}}
	for _, c := range []struct {
		columns int
		has     string
	}{{command.UsualWidth, " 33 "}, {terminal.Unlimited, " 33 from 2026-10-26 "}} {
		var out bytes.Buffer
		if err := output.Table(&out, views, keptColumns(views, c.columns == terminal.Unlimited), c.columns); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, c.has) || !strings.HasSuffix(text, " 100000\n") {
			t.Errorf("in %d columns:\n%s", c.columns, text)
		}
	}
}
