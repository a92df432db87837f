package pgxstore

import (
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/store"
)

// A guess assumes that all marks of a batch are new, which is true for nearly all batches of
// most consumers. A guessed insert does not check each mark, which halves the server's cost of
// marks. If a marker exists, the unique key rejects the whole insert, nothing has happened,
// and the batch begins again with checks. So a batch is guessed only after a run of batches in
// the same scope whose marks were all new. After each wrong guess, the required run doubles.
const (
	leastGuessed = 16   // minimum marks of a guessed batch; with fewer, a guess gains less than an error costs
	firstRun     = 32   // batches in a row, all new, before the first guess of a scope
	longestRun   = 4096 // maximum run before another guess
	mostGuessed  = 1024 // maximum scopes to remember; with more, all are forgotten
)

// guesses remembers the runs of scopes. A nil guesses makes no guess.
type guesses struct {
	mutex sync.Mutex
	of    map[int64]*guess
}

// guess counts the batches of a scope in a row whose marks were all new (run), and how many
// are required (takes).
type guess struct{ run, takes int }

// likely reports whether the next batch of a scope should be guessed.
func (g *guesses) likely(scope int64) bool {
	if g == nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.of[scope]
	return known != nil && known.run >= known.takes
}

// new records a batch whose marks were all new.
func (g *guesses) new(scope int64) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.known(scope)
	known.run++
	if known.run >= 2*known.takes {
		known.run, known.takes = known.takes, max(known.takes/2, firstRun)
	}
}

// seen records a batch with a mark that was not new. guessed means that a guess failed.
func (g *guesses) seen(scope int64, guessed bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.known(scope)
	known.run = 0
	if guessed {
		known.takes = min(2*known.takes, longestRun)
	}
}

func (g *guesses) known(scope int64) *guess {
	if g.of == nil || len(g.of) >= mostGuessed {
		g.of = map[int64]*guess{}
	}
	if g.of[scope] == nil {
		g.of[scope] = &guess{takes: firstRun}
	}
	return g.of[scope]
}

// guessable reports whether a batch may be guessed: it has enough marks in the common table,
// none of which is a claim or has a previous identity.
func (s *Store) guessable(m *marking) bool {
	return s.guesses != nil && len(m.order) >= leastGuessed && len(m.order) == len(m.marks) && m.former == nil
}

// learn records how many marks of a batch were not new.
func (s *Store) learn(m *marking, seen int) {
	switch {
	case !s.guessable(m):
	case seen > 0:
		s.guesses.seen(m.marks[0].Scope, false)
	default:
		s.guesses.new(m.marks[0].Scope)
	}
}

// counted reads how many guessed marks were written. If that is not all, something prevents
// markers from being written, and the batch begins again with checks.
func (m *marking) counted(rows pgx.Rows) error {
	for rows.Next() {
		var n *int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		m.missed = n != nil && *n != int64(len(m.order))
	}
	if !m.missed {
		for _, i := range m.order {
			m.verdicts[i].Kind = store.Fresh
		}
	}
	return rows.Err()
}
