package operate

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func TestTheCommandsThatMayChangeARow(t *testing.T) {
	all := []admin.Verb{admin.Retry, admin.Resolve, admin.Edit, admin.Release, admin.Skip, admin.Discard, admin.Reopen}
	for name, c := range map[string]struct {
		change func(r *store.StoredRow)
		want   string
	}{
		"parked":                   {func(*store.StoredRow) {}, "retry edit discard"},
		"parked with an effect":    {func(r *store.StoredRow) { r.Key.ID = "applied" }, "discard"},
		"parked without a handler": {func(r *store.StoredRow) { r.Key.Consumer = "other" }, "edit discard"},
		"parked without identity":  {func(r *store.StoredRow) { r.Surrogate, r.Reason = true, semel.ReasonMalformed }, "discard"},
		"parked in a line":         {func(r *store.StoredRow) { r.Line, r.Place = "k", 1 }, "retry edit skip discard"},
		"parked after a call":      {func(r *store.StoredRow) { r.CallsStarted, r.Reason = 1, semel.ReasonOutcomeUnknown }, "resolve discard"},
		"running":                  {func(r *store.StoredRow) { r.State, r.LockedUntil = store.StateInProgress, time.Now().Add(time.Hour) }, "release discard"},
		"due":                      {func(r *store.StoredRow) { r.State = store.StateReceived }, "retry discard"},
		"discarded":                {func(r *store.StoredRow) { r.State = store.StateDiscarded }, "reopen"},
		"applied":                  {func(r *store.StoredRow) { r.State = store.StateCompleted }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newParkedInbox(1)
			f.rows[0].Message = &semel.Message{}
			c.change(&f.rows[0])
			legal, err := Box{Store: "shop", Inbox: f, Markers: markers{"applied": true}}.Legal(t.Context(), 1, all, onlyBilling)
			var words []string
			for _, v := range legal {
				words = append(words, string(v))
			}
			if got := strings.Join(words, " "); err != nil || got != c.want {
				t.Errorf("got %q: %v, want %q", got, err, c.want)
			}
		})
	}
}
