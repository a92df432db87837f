// Package lines computes, for every store, how a batch changes the queues of the inbox. A queue, called a line in the
// code, contains the messages of one key or lane. The package computes for which messages the store must check whether
// an earlier message of the same line waits, which rows enter a line, and which claims leave a line.
package lines

import (
	"cmp"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// Asked returns the indexes of the messages that may run only if no message of their line waits, or nil if there is no
// message to check. The store must check the line of each message in the result. If several messages have the same
// line, the line is checked several times, which costs less than removing duplicates.
func Asked(marks []store.Mark) (asked []int) {
	for i := range marks {
		if !asks(&marks[i]) {
			continue
		}
		if asked == nil {
			asked = make([]int, 0, len(marks)-i)
		}
		asked = append(asked, i)
	}
	return asked
}

// asks reports whether a message may run only if no message of its line waits.
func asks(m *store.Mark) bool {
	return len(m.Line) > 0 && m.As == store.Applied && m.Claim.Token == 0
}

// Judge changes the store's answer for a message to Behind if an earlier message of the same line waits. The earlier
// message is in the inbox already, or in the same batch. The parameter busy contains the indexes of the messages for
// which the store has found an earlier message that waits.
func Judge(marks []store.Mark, busy []int, verdicts []store.Verdict) {
	for _, i := range busy {
		if verdicts[i].Kind == store.Fresh {
			verdicts[i].Kind = store.Behind
		}
	}
	var kept map[string]bool
	for i := range marks {
		m := &marks[i]
		switch {
		case len(m.Line) == 0 || m.Claim.Token != 0 || verdicts[i].Kind != store.Fresh:
		case m.As == store.Waiting || m.As == store.Parked:
			if kept == nil {
				kept = map[string]bool{}
			}
			kept[string(m.Line)] = true
		case m.As == store.Applied && kept[string(m.Line)]:
			verdicts[i].Kind = store.Behind
		}
	}
}

// Entry is a row that enters its line (the queue of its key or lane).
type Entry struct {
	Line string
	// Mark is the index of the row's message in the batch. Behind is the number of rows of the same batch that enter
	// the same line later.
	Mark   int
	Behind int64
}

// Entering returns those rows of a batch's ending that enter a line, sorted by line and then by index.
func Entering(marks []store.Mark, e *store.Ending) (all []Entry) {
	for i := range e.Rows {
		r := &e.Rows[i]
		m := &marks[r.Mark]
		if len(m.Line) == 0 || r.Repeat || r.Conflict || r.Surrogate || r.State != store.StateParked && r.State.Outcome() != store.Waiting {
			continue
		}
		all = append(all, Entry{Line: string(m.Line), Mark: r.Mark})
	}
	slices.SortFunc(all, func(x, y Entry) int {
		return cmp.Or(strings.Compare(x.Line, y.Line), cmp.Compare(x.Mark, y.Mark))
	})
	for i := len(all) - 2; i >= 0; i-- {
		if all[i].Line == all[i+1].Line {
			all[i].Behind = all[i+1].Behind + 1
		}
	}
	return all
}

// Received returns those received rows that enter a line (the queue of a key or lane).
func Received(marks []store.Mark, verdicts []store.Verdict) []Entry {
	var e store.Ending
	for i, v := range verdicts {
		if v.Kind == store.Fresh {
			e.Rows = append(e.Rows, store.Row{Mark: i, State: store.StateReceived})
		}
	}
	return Entering(marks, &e)
}

// Count is a line (the queue of a key or lane) and the number of rows that enter the line.
type Count struct {
	Line string
	Rows int64
}

// Counted returns the lines of the given rows in the same order, with the number of rows for each line.
func Counted(all []Entry) (counts []Count) {
	for i := range all {
		if i == 0 || all[i].Line != all[i-1].Line {
			counts = append(counts, Count{all[i].Line, all[i].Behind + 1})
		}
	}
	return counts
}

// Leaving returns the numbers of the rows that leave their lines when the given claims end.
func Leaving(claims []store.ClaimEnding) (numbers []int64) {
	for i := range claims {
		c := &claims[i]
		if c.Lined && c.State.Ended() {
			numbers = append(numbers, c.Number)
		}
	}
	slices.Sort(numbers)
	return numbers
}
