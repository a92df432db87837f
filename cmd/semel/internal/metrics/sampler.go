package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// sampleEvery is the interval between samples of a store.
const sampleEvery = 15 * time.Second

// Store is a store that a Sampler reads. Each statement has a time limit.
type Store interface {
	Name() string
	SampleRows(ctx context.Context, state store.RowState) (sqlstore.Sampled, error)
	SampleReaping(ctx context.Context) (map[string]sqlstore.SampledReaping, error)
	SampleReplays(ctx context.Context) (map[string]int64, error)
	SampleTables(ctx context.Context) (map[string]sqlstore.SampledTable, error)
	SampleOutcomes(ctx context.Context) (map[store.Outcome]int64, error)
	// Connections returns the number of open connections of this process. Connections does not wait.
	Connections() (used, idle, most int)
}

// sampledStates are the states of rows that wait, are parked or are dead-lettered. Completed rows are not
// counted, because they are numerous and need no action.
var sampledStates = []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable,
	store.StateBlocked, store.StateParked, store.StateDeadLettered}

// Sampler reads a store at intervals and keeps the last values. Scrapes read the last values, even while the
// store does not respond.
type Sampler struct {
	store Store
	log   *slog.Logger

	// failureCount is the number of consecutive samples with an error. Only the goroutine of work uses
	// failureCount.
	failureCount int

	mutex   sync.Mutex
	parts   map[string]func(*scrape) // the last values, by part; guarded by mutex
	read    map[string]time.Time     // time of the last read of each part; guarded by mutex
	failing map[string]bool          // parts whose last read failed; guarded by mutex
}

func newSampler(s Store, log *slog.Logger) *Sampler {
	return &Sampler{store: s, log: log, parts: map[string]func(*scrape){}, read: map[string]time.Time{}, failing: map[string]bool{}}
}

// work samples until ctx ends.
func (s *Sampler) work(ctx context.Context) {
	timer := time.NewTicker(sampleEvery)
	defer timer.Stop()
	for {
		s.logFailure(ctx, s.sample(ctx))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// logFailure writes a log line when two consecutive samples of a store have failed, and when the store works
// again. Load alone can cause a single failure, so a single failure is not logged.
func (s *Sampler) logFailure(ctx context.Context, fault error) {
	switch {
	case ctx.Err() != nil:
	case fault != nil:
		if s.failureCount++; s.failureCount == 2 {
			s.log.Warn("the store cannot be sampled, so its metrics keep their last values and semel_store_sample_stale is 1", "store", s.store.Name(), "error", fault)
		}
	default:
		if s.failureCount >= 2 {
			s.log.Info("the store can be sampled again", "store", s.store.Name())
		}
		s.failureCount = 0
	}
}

// sample reads each part separately, so that a slow part does not delay the others. sample returns the first
// error.
func (s *Sampler) sample(ctx context.Context) (first error) {
	part := func(name string, read func() (func(*scrape), error)) {
		if err := s.part(ctx, name, read); first == nil {
			first = err
		}
	}
	for _, state := range sampledStates {
		part(string(state), func() (func(*scrape), error) {
			rows, err := s.store.SampleRows(ctx, state)
			return func(to *scrape) { s.reportRows(to, state, rows) }, err
		})
	}
	part("reaping", func() (func(*scrape), error) {
		all, err := s.store.SampleReaping(ctx)
		return func(to *scrape) { s.reportReaping(to, all) }, err
	})
	part("replays", func() (func(*scrape), error) {
		all, err := s.store.SampleReplays(ctx)
		return func(to *scrape) {
			for consumer, n := range ofConsumers(to, all, func(a, b int64) int64 { return a + b }) {
				to.report("semel_store_replays", float64(n), s.store.Name(), consumer)
			}
		}, err
	})
	part("outcomes", func() (func(*scrape), error) {
		all, err := s.store.SampleOutcomes(ctx)
		return func(to *scrape) { s.reportOutcomes(to, all) }, err
	})
	part("tables", func() (func(*scrape), error) {
		all, err := s.store.SampleTables(ctx)
		return func(to *scrape) {
			for table, t := range all {
				to.report("semel_store_estimated_rows", float64(t.Rows), s.store.Name(), table)
				to.report("semel_store_estimated_dead_rows", float64(t.Dead), s.store.Name(), table)
			}
		}, err
	})
	return first
}

func (s *Sampler) part(ctx context.Context, name string, read func() (func(*scrape), error)) error {
	if ctx.Err() != nil {
		return nil
	}
	said, err := read()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.failing[name] = err != nil; err == nil {
		s.parts[name], s.read[name] = said, time.Now()
	}
	return err
}

// report exports the last values of the store without waiting.
func (s *Sampler) report(to *scrape) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	stale, oldest := len(s.read) == 0, time.Time{}
	for _, failing := range s.failing {
		stale = stale || failing
	}
	for name, said := range s.parts {
		said(to)
		if at := s.read[name]; oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	to.report("semel_store_sample_stale", boolValue(stale), s.store.Name())
	if !oldest.IsZero() {
		to.report("semel_store_sample_age_seconds", to.now.Sub(oldest).Seconds(), s.store.Name())
	}
	used, idle, most := s.store.Connections()
	to.report("semel_store_connections", float64(used), s.store.Name(), "used")
	to.report("semel_store_connections", float64(idle), s.store.Name(), "idle")
	to.report("semel_store_connections", float64(most), s.store.Name(), "most")
}

func (s *Sampler) reportRows(to *scrape, state store.RowState, rows sqlstore.Sampled) {
	st := s.store.Name()
	to.report("semel_store_rows_at_least", boolValue(rows.AtLeast), st, string(state))
	all := ofConsumers(to, rows.Consumers, func(a, b sqlstore.SampledRows) sqlstore.SampledRows {
		return sqlstore.SampledRows{Rows: a.Rows + b.Rows, Oldest: max(a.Oldest, b.Oldest), Gap: max(a.Gap, b.Gap), Suppressed: a.Suppressed + b.Suppressed}
	})
	for consumer := range to.watch.counts { // export 0 for consumers without rows, because alerts compare with 0
		r := all[consumer]
		to.report("semel_store_rows", float64(r.Rows), st, consumer, string(state))
		to.report("semel_store_oldest_seconds", r.Oldest.Seconds(), st, consumer, string(state))
		if state == store.StateParked {
			to.report("semel_store_suppressed_effects", float64(r.Suppressed), st, consumer)
		}
		if state == store.StateBlocked {
			to.report("semel_store_gap_oldest_seconds", r.Gap.Seconds(), st, consumer)
		}
	}
}

// reportOutcomes exports the estimated number of markers by outcome. The database estimates from a sample. An
// outcome that the sample lacks is rare and is exported as 0. If the database has no estimate, reportOutcomes
// exports nothing.
func (s *Sampler) reportOutcomes(to *scrape, all map[store.Outcome]int64) {
	if len(all) == 0 {
		return
	}
	for o := store.Applied; o <= store.Discarded; o++ {
		to.report("semel_store_estimated_markers", float64(all[o]), s.store.Name(), o.String())
	}
}

func (s *Sampler) reportReaping(to *scrape, all map[string]sqlstore.SampledReaping) {
	worst := func(a, b sqlstore.SampledReaping) sqlstore.SampledReaping {
		return sqlstore.SampledReaping{Progress: min(a.Progress, b.Progress), Lag: max(a.Lag, b.Lag), Walked: a.Walked || b.Walked}
	}
	for consumer, r := range ofConsumers(to, all, worst) {
		to.report("semel_store_reaper_progress_seconds", r.Progress.Seconds(), s.store.Name(), consumer)
		if r.Walked {
			to.report("semel_store_reaper_lag_seconds", r.Lag.Seconds(), s.store.Name(), consumer)
		}
	}
}

// ofConsumers returns the values of the consumers in this process. The values of a consumer's generations are
// joined. Values of other consumers in the store are dropped: the processes of these consumers export these
// values, and labels may only have names from this process's policy.
func ofConsumers[V any](to *scrape, all map[string]V, join func(a, b V) V) map[string]V {
	ours := map[string]V{}
	for name, v := range all {
		public := name
		if _, known := to.watch.counts[name]; !known {
			public, _ = admin.GenerationOf(name)
		}
		if _, known := to.watch.counts[public]; !known {
			continue
		}
		if before, known := ours[public]; known {
			v = join(before, v)
		}
		ours[public] = v
	}
	return ours
}
