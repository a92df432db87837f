//go:build unix

package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// audit counts the content of the store after both releases have read all messages.
func (r *run) audit(ctx context.Context) {
	by := r.readEffects(ctx)
	r.checkMarkers(ctx, by)
	r.ledger.Rows, r.ledger.Copies = r.countParked(ctx)
	r.ledger.Guards = r.count(ctx, `select count(*) from semel_guard`)
	r.ledger.Astray = proof.Must(r.Source.Astray(ctx, r.Store.Reader(), r.slots))
	for _, release := range []Release{r.First, r.Second} {
		r.checkDuplicates(release, by)
	}
}

// forEachRow calls the function do for each row of a query of the store, after reading the row's columns.
func (r *run) forEachRow(ctx context.Context, query string, columns []any, do func()) {
	proof.Check(ledger.Each(ctx, r.Store.Reader(), query, nil, columns, do))
}

func (r *run) count(ctx context.Context, query string) int {
	return proof.Must(ledger.Count(ctx, r.Store.Reader(), query))
}

// readEffects reads the effect log: for each message, the release that applied it first.
func (r *run) readEffects(ctx context.Context) map[string]string {
	by, name, release := map[string]string{}, "", ""
	r.forEachRow(ctx, `select id, release from effects`, []any{&name, &release}, func() {
		if by[name] != "" {
			r.ledger.Doubled++
			return
		}
		by[name] = release
		r.ledger.By[release]++
	})
	for i := range r.Feed.IDs {
		takes := kindOf(i) == plain || kindOf(i) == conflicting
		switch _, took := by[id(i)]; {
		case takes && took:
			r.ledger.Applied++
		case takes:
			r.ledger.Lost++
		}
	}
	return by
}

// checkMarkers compares the markers with the effect log.
func (r *run) checkMarkers(ctx context.Context, by map[string]string) {
	marked, name := map[string]bool{}, ""
	r.forEachRow(ctx, `select id from semel_markers_readable where outcome = 'applied'`, []any{&name}, func() {
		marked[name] = true
		if by[name] == "" {
			r.ledger.Hollow++
		}
	})
	for id := range by {
		if !marked[id] {
			r.ledger.Unmarked++
		}
	}
}

// countParked returns the number of parked rows, and the number of duplicates that are counted in these rows.
func (r *run) countParked(ctx context.Context) (rows, copies int) {
	r.forEachRow(ctx, `select count(*), coalesce(sum(repeated), 0) from semel_inbox where state = 'PARKED'`, []any{&rows, &copies}, func() {})
	return rows, copies
}

// checkDuplicates reads the logs and counts the messages that one release reported as duplicates and the other
// release had applied. An incomplete log line of a killed process does not count.
func (r *run) checkDuplicates(release Release, by map[string]string) {
	met := map[string]bool{}
	for _, s := range r.slots {
		log, err := os.ReadFile(r.Path(s.log(release)))
		if !os.IsNotExist(err) {
			proof.Check(err)
		}
		for text := range bytes.Lines(log) {
			var line struct{ Msg, ID string }
			if json.Unmarshal(text, &line) == nil && line.Msg == "duplicate" && by[line.ID] == r.otherRelease(release).Name {
				met[line.ID] = true
			}
		}
	}
	r.ledger.Met[release.Name] = len(met)
}

// readAgain makes each release read all messages from the beginning. All messages must be duplicates, independently of
// the release that wrote their markers. A release that refuses the tables reads nothing.
func (r *run) readAgain(ctx context.Context) {
	for _, release := range []Release{r.First, r.Second} {
		_, before := r.countParked(ctx)
		again := r.Source.Again(release.Name)
		for _, s := range r.slots[:r.countFeeds()] {
			s.release = release
			if err := s.migrate(); errors.Is(err, errNewer) {
				r.ledger.Refusals++
				continue
			}
			proof.Check(s.end(again...))
			counts := proof.Must(s.command().Counts("counter"))
			r.ledger.Again[s.release.Name] += int(counts.Deliveries - counts.Duplicates)
			r.ledger.Uncounted += r.Feed.countLateDuplicates()
		}
		_, after := r.countParked(ctx)
		r.ledger.Uncounted -= after - before
	}
}
