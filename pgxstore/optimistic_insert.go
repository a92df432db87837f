package pgxstore

import (
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/store"
)

// For most consumers, nearly all messages of a batch are new. So a batch may be guessed to be new: its markers are
// inserted without a check of each marker, which halves the server's cost of markers. If one of the markers exists, the
// unique key rejects the whole insert, nothing is written, and the batch begins again with checks. So a batch is
// guessed to be new only after a number of consecutive batches in the same scope (consumer, source and generation)
// whose messages were all new. After each wrong guess, the required number of batches doubles.
const (
	leastGuessed = 16   // smallest number of markers for a guess; with fewer markers, a wrong guess costs more than a right guess saves
	firstRun     = 32   // number of consecutive batches with only new messages before the first guess in a scope
	longestRun   = 4096 // largest number of consecutive batches before another guess
	mostGuessed  = 1024 // largest number of scopes in memory; when it is exceeded, all scopes are forgotten
)

// guesses remembers the consecutive batches of each scope (consumer, source and generation). A nil guesses makes no
// guess.
type guesses struct {
	mutex   sync.Mutex
	byScope map[int64]*guess
}

// guess has two numbers of batches for a scope (consumer, source and generation): the consecutive batches with only new
// messages (run), and the batches that are required before the next guess (takes).
type guess struct{ run, takes int }

// shouldGuess reports whether the store should assume that the next batch of a scope (consumer, source and
// generation) has only new messages.
func (g *guesses) shouldGuess(scope int64) bool {
	if g == nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.byScope[scope]
	return known != nil && known.run >= known.takes
}

// recordNew records a batch with only new messages.
func (g *guesses) recordNew(scope int64) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.guessOf(scope)
	known.run++
	if known.run >= 2*known.takes {
		known.run, known.takes = known.takes, max(known.takes/2, firstRun)
	}
}

// recordDuplicate records a batch with a message that was not new. The parameter guessed is true if a guess failed
// because of this message.
func (g *guesses) recordDuplicate(scope int64, guessed bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.guessOf(scope)
	known.run = 0
	if guessed {
		known.takes = min(2*known.takes, longestRun)
	}
}

func (g *guesses) guessOf(scope int64) *guess {
	if g.byScope == nil || len(g.byScope) >= mostGuessed {
		g.byScope = map[int64]*guess{}
	}
	if g.byScope[scope] == nil {
		g.byScope[scope] = &guess{takes: firstRun}
	}
	return g.byScope[scope]
}

// guessable reports whether a batch may be guessed to be new: it has enough markers, the markers are in the table that
// all consumers share, and no marker belongs to a claimed row or has a previous identity.
func (s *Store) guessable(m *marking) bool {
	return s.guesses != nil && len(m.order) >= leastGuessed && len(m.order) == len(m.marks) && m.former == nil
}

// learn records how many messages of a batch were not new.
func (s *Store) learn(m *marking, seen int) {
	switch {
	case !s.guessable(m):
	case seen > 0:
		s.guesses.recordDuplicate(m.marks[0].Scope, false)
	default:
		s.guesses.recordNew(m.marks[0].Scope)
	}
}

// readCount reads the number of markers that were written. If not all markers were written, a trigger or a
// rule prevents the writes, and the batch begins again with checks.
func (m *marking) readCount(rows pgx.Rows) error {
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
