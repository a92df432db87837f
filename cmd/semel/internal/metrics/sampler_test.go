package metrics

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// twoGenerations is a store with two generations of a consumer. Reads of the rows and reads about the reaper can
// fail separately.
type twoGenerations struct {
	fakeStore
	rowsFail, reapingFails error
	reaping                map[string]sqlstore.SampledReaping
}

func (h *twoGenerations) SampleRows(ctx context.Context, state store.RowState) (sqlstore.Sampled, error) {
	if state == store.StateBlocked {
		return h.rows, h.rowsFail
	}
	rows, err := h.fakeStore.SampleRows(ctx, state)
	return rows, errors.Join(err, h.rowsFail)
}

func (h *twoGenerations) SampleReaping(context.Context) (map[string]sqlstore.SampledReaping, error) {
	return h.reaping, h.reapingFails
}

// scrapeSampler returns a scrape with a single sampler.
func scrapeSampler(t *testing.T, s *Sampler) string {
	t.Helper()
	return gatherText(t, newCollector(newWatch([]string{"billing"}), func() map[string]Consumer { return nil }, []*Sampler{s}, Options{}))
}

// wantLines checks that a scrape contains the given lines.
func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
}

func TestASampleIsAsOldAsItsOldestPart(t *testing.T) {
	synctestRun(t, "K4_one_statement_that_fails_is_neither_hidden_nor_made_younger_by_the_others", func(t *testing.T) {
		store := &twoGenerations{}
		s := newSampler(store, slog.New(slog.DiscardHandler))
		s.sample(t.Context())
		wantLines(t, scrapeSampler(t, s), `semel_store_sample_stale{store="shop"} 0`, `semel_store_sample_age_seconds{store="shop"} 0`)
		for name, fails := range map[string]*error{"rows": &store.rowsFail, "reaping": &store.reapingFails} {
			*fails = errors.New("canceling statement due to statement timeout")
			for range 3 {
				pass(sampleEvery)
				s.sample(t.Context())
			}
			t.Log(name)
			wantLines(t, scrapeSampler(t, s), `semel_store_sample_stale{store="shop"} 1`, `semel_store_sample_age_seconds{store="shop"} 45`)
			*fails = nil
			s.sample(t.Context())
			wantLines(t, scrapeSampler(t, s), `semel_store_sample_stale{store="shop"} 0`, `semel_store_sample_age_seconds{store="shop"} 0`)
		}
	})
}

func TestGenerationsOfAConsumerAreJoined(t *testing.T) {
	for name, both := range map[string][2]string{"K4_the_worse_one_first": {"billing", "billing@2"}, "K4_the_worse_one_last": {"billing@2", "billing"}} {
		t.Run(name, func(t *testing.T) {
			store := &twoGenerations{fakeStore: fakeStore{rows: sqlstore.Sampled{Consumers: map[string]sqlstore.SampledRows{
				both[0]: {Rows: 5, Oldest: time.Hour, Gap: time.Minute, Suppressed: 2}, both[1]: {Rows: 3, Oldest: time.Minute, Gap: time.Hour, Suppressed: 1}}}},
				reaping: map[string]sqlstore.SampledReaping{both[0]: {Progress: time.Hour, Lag: 2 * time.Hour, Walked: true}, both[1]: {Progress: time.Minute}}}
			s := newSampler(store, slog.New(slog.DiscardHandler))
			s.sample(t.Context())
			wantLines(t, scrapeSampler(t, s), `semel_store_rows{consumer="billing",state="PARKED",store="shop"} 8`, `semel_store_oldest_seconds{consumer="billing",state="PARKED",store="shop"} 3600`,
				`semel_store_suppressed_effects{consumer="billing",store="shop"} 3`, `semel_store_gap_oldest_seconds{consumer="billing",store="shop"} 3600`,
				`semel_store_reaper_progress_seconds{consumer="billing",store="shop"} 60`, `semel_store_reaper_lag_seconds{consumer="billing",store="shop"} 7200`,
				`semel_store_rows_at_least{state="PARKED",store="shop"} 0`)
		})
	}
}
