//go:build unix

package upgrade

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// audit counts the content of the store after both releases have read all messages.
func (r *run) audit(ctx context.Context) error {
	by, err := r.effects(ctx)
	if err != nil {
		return err
	}
	if err := r.markers(ctx, by); err != nil {
		return err
	}
	l := r.ledger
	if l.Rows, l.Copies, err = r.parked(ctx); err != nil {
		return err
	}
	if err := r.Store.Reader().QueryRowContext(ctx, `select count(*) from semel_guard`).Scan(&l.Guards); err != nil {
		return err
	}
	if l.Astray, err = r.Source.Astray(ctx, r.Store.Reader(), r.slots); err != nil {
		return err
	}
	for _, release := range []Release{r.First, r.Second} {
		if err := r.duplicates(release, by); err != nil {
			return err
		}
	}
	return nil
}

// effects reads the effect log: for each message, the release that applied it first.
func (r *run) effects(ctx context.Context) (by map[string]string, err error) {
	rows, err := r.Store.Reader().QueryContext(ctx, `select id, release from effects`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	by = map[string]string{}
	for rows.Next() {
		var id, release string
		if err := rows.Scan(&id, &release); err != nil {
			return nil, err
		}
		if by[id] != "" {
			r.ledger.Doubled++
			continue
		}
		by[id] = release
		r.ledger.By[release]++
	}
	for i := range r.Feed.IDs {
		takes := kindOf(i) == plain || kindOf(i) == conflicting
		switch _, took := by[id(i)]; {
		case takes && took:
			r.ledger.Applied++
		case takes:
			r.ledger.Lost++
		}
	}
	return by, rows.Err()
}

// markers compares the markers with the effect log.
func (r *run) markers(ctx context.Context, by map[string]string) error {
	rows, err := r.Store.Reader().QueryContext(ctx, `select id from semel_markers_readable where outcome = 'applied'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	marked := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		marked[id] = true
		if by[id] == "" {
			r.ledger.Hollow++
		}
	}
	for id := range by {
		if !marked[id] {
			r.ledger.Unmarked++
		}
	}
	return rows.Err()
}

// parked returns the number of parked rows, and the number of copies that are counted in these rows.
func (r *run) parked(ctx context.Context) (rows, copies int, err error) {
	err = r.Store.Reader().QueryRowContext(ctx,
		`select count(*), coalesce(sum(repeated), 0) from semel_inbox where state = 'PARKED'`).Scan(&rows, &copies)
	return rows, copies, err
}

// duplicates counts the messages that one release reported as duplicates and the other release had applied.
// It reads the logs. A line that a kill cut off does not count.
func (r *run) duplicates(release Release, by map[string]string) error {
	met := map[string]bool{}
	for _, s := range r.slots {
		log, err := os.Open(filepath.Join(r.Folder, s.log(release)))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Msg, ID string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "duplicate" && by[line.ID] == r.other(release).Name {
				met[line.ID] = true
			}
		}
		if err := log.Close(); err != nil {
			return err
		}
	}
	r.ledger.Met[release.Name] = len(met)
	return nil
}

// readAgain makes each release read all messages from the beginning. All messages must then be duplicates,
// whichever release wrote their markers. A release that refuses the tables reads nothing.
func (r *run) readAgain(ctx context.Context) error {
	for _, release := range []Release{r.First, r.Second} {
		_, before, err := r.parked(ctx)
		if err != nil {
			return err
		}
		again := r.Source.Again(release.Name)
		for _, s := range r.slots[:r.feeds()] {
			s.release = release
			if err := s.migrate(); errors.Is(err, errNewer) {
				r.ledger.Refusals++
				continue
			}
			if err := r.readFeed(s, again); err != nil {
				return err
			}
			r.ledger.Uncounted += r.Feed.later()
		}
		_, after, err := r.parked(ctx)
		if err != nil {
			return err
		}
		r.ledger.Uncounted -= after - before
	}
	return nil
}

// readFeed makes a slot's release read its feed from the beginning.
func (r *run) readFeed(s *slot, again []string) error {
	if err := s.end(again...); err != nil {
		return err
	}
	counts, err := s.command().Counts("counter")
	if err != nil {
		return err
	}
	r.ledger.Again[s.release.Name] += int(counts.Deliveries - counts.Duplicates)
	return nil
}
