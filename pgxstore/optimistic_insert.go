package pgxstore

import (
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/store"
)

// A guess is that all marks of a batch are new, as those of nearly all batches of most
// consumers are. Their insert then asks nothing of each mark, which halves what marks cost
// the server. It judges nothing: where one mark is there the unique key refuses all, nothing
// has happened, and the batch begins again and asks. So a guess is made only of a scope whose
// last batches were all new, and of one that was wrong the next time after twice as many.
const (
	leastGuessed = 16   // marks of a batch; of fewer, a guess gains less than an error costs
	firstRun     = 32   // batches in a row, all new, before the first guess
	longestRun   = 4096 // before the next one, whatever went wrong
	mostGuessed  = 1024 // scopes that are known; of more, all are forgotten
)

// guesses are what is known of scopes; nil, none is made.
type guesses struct {
	mutex sync.Mutex
	of    map[int64]*guess
}

// guess is how many batches of a scope were all new in a row, and how many it takes.
type guess struct{ run, takes int }

// likely reports whether all marks of a batch of this scope are new, as far as can be told.
func (g *guesses) likely(scope int64) bool {
	if g == nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.of[scope]
	return known != nil && known.run >= known.takes
}

// new: all marks of a batch of this scope were.
func (g *guesses) new(scope int64) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	known := g.known(scope)
	known.run++
	if known.run >= 2*known.takes {
		known.run, known.takes = known.takes, max(known.takes/2, firstRun)
	}
}

// seen: some were there. guessed says that this was found out by an error.
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

// guessable reports whether a guess can be made of marks: some, none of which is a claim, in
// the table of all, where each has one identity.
func (s *Store) guessable(m *marking) bool {
	return s.guesses != nil && len(m.order) >= leastGuessed && len(m.order) == len(m.marks) && m.former == nil
}

// learn takes note of what became of a batch's marks, of which so many were there.
func (s *Store) learn(m *marking, seen int) {
	switch {
	case !s.guessable(m):
	case seen > 0:
		s.guesses.seen(m.marks[0].Scope, false)
	default:
		s.guesses.new(m.marks[0].Scope)
	}
}

// counted reads how many of the marks that were taken to be new were written. Where that is
// not all of them, something keeps markers out: each is asked for then.
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
