//go:build unix

package kafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// stage says what the waiting messages in the inbox wait for after everything is published.
type stage uint8

const (
	untilMended  stage = iota // for nothing but gaps and parked messages, until the parked messages are retried
	untilFilled               // for gaps whose versions come from a file
	untilSkipped              // for gaps whose versions never come
	untilNothing
)

// poison returns the events whose handlers fail until the proof repairs the cause. With Order each of them is
// in a stream of its own, so that messages wait behind each of them.
func (r *run) poison() (events []int) {
	for n := range poisoned {
		event := n * r.Events / poisoned
		if r.Order {
			event = slices.Index(r.places, version{r.headStream(n), 3})
		}
		events = append(events, event)
	}
	return events
}

func (r *run) headStream(n int) int {
	if r.Keys {
		return streams + 60 + n
	}
	return 60 + n
}

// heldBack returns the events that have a reason to wait at a stage: parked messages, and messages behind a
// parked message or a gap. All other events must have taken effect.
func (r *run) heldBack(s stage) map[string]int {
	held := map[string]int{}
	if s == untilMended {
		for _, event := range r.poison() {
			held[hexID(event)] = event
		}
	}
	heads := r.headStream(0)
	for event, v := range r.places {
		parked := v.stream >= heads && v.stream < heads+poisoned && s == untilMended
		unfilled := version{v.stream, 2}.filled() && s <= untilFilled
		unskipped := skips(v.stream) && s <= untilSkipped
		if v.number >= 3 && (parked || unfilled || unskipped) {
			held[hexID(event)] = event
		}
	}
	return held
}

// hexID returns an event's id as hexadecimal digits. The id of its inbox row ends with these digits.
func hexID(event int) string { return strings.ReplaceAll(webhooks.ID(event), "-", "") }

// waitingRow is a row of the inbox whose message is not completed.
type waitingRow struct{ id, state, reason, text string }

// unheld returns the rows that wait without a reason, and how many rows should wait but do not.
func unheld(rows []waitingRow, held map[string]int) (free []waitingRow, missing int) {
	missing = len(held)
	for _, row := range rows {
		if _, is := held[row.id]; is && (row.state == "BLOCKED" || row.state == "PARKED") {
			missing--
		} else {
			free = append(free, row)
		}
	}
	return free, missing
}

// waiting reads the rows that are not completed.
func (r *run) waiting(ctx context.Context) (all []waitingRow, err error) {
	rows, err := r.Activity.DB.QueryContext(ctx, `select encode(substr(id, 2), 'hex'), state, reason, concat_ws(' ', encode(stream, 'escape'), stream_version, encode(line, 'escape'), place,
		'due in', due_at - now(), 'attempts', finished, last_error) from semel_inbox where state <> 'COMPLETED' order by number`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row waitingRow
		if err := rows.Scan(&row.id, &row.state, &row.reason, &row.text); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// drained waits until every waiting row has a reason to wait. The versions of a stream are processed one
// after the other, which takes long. drained therefore gives up only when no effect was added during
// patience.
func (r *run) drained(ctx context.Context, s stage) error {
	held := r.heldBack(s)
	looked, moved, effects := time.Time{}, time.Now(), int64(-1)
	err := r.Until(ctx, func() (bool, error) {
		if time.Since(looked) < 500*time.Millisecond {
			return false, r.Feed.Err()
		}
		looked = time.Now()
		if now := r.effects(); now != effects {
			effects, moved = now, looked
		}
		if time.Since(moved) > patience {
			return false, errStands
		}
		// a cheap query that runs first
		const query = "select count(*) from semel_inbox where state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE')"
		moving := 0
		if r.Activity.DB.QueryRowContext(ctx, query).Scan(&moving) != nil || moving > 0 {
			return false, r.Feed.Err()
		}
		if r.Plant != "" { // a planted fault may prevent that messages wait that should
			return true, nil
		}
		rows, err := r.waiting(ctx)
		free, missing := unheld(rows, held)
		return err == nil && len(free) == 0 && missing == 0, r.Feed.Err()
	})
	switch {
	case errors.Is(err, errStands):
		return r.stands(ctx, held)
	case err == nil && r.Plant == "":
		r.Say("%d messages wait, each behind one that is parked or missing, or parked itself", len(held))
	}
	return err
}

var errStands = errors.New("nothing takes effect any more")

// stands returns an error that lists the rows that wait without a reason. The ledger then fails.
func (r *run) stands(ctx context.Context, held map[string]int) error {
	rows, err := r.waiting(ctx)
	if err != nil {
		return err
	}
	free, missing := unheld(rows, held)
	r.Say("for %v nothing took effect: %d messages wait although nothing holds them back, and of %d that are held back %d do not wait", patience, len(free), len(held), missing)
	for _, row := range free[:min(len(free), 10)] {
		r.Say("%s is %s", row.id, strings.Join([]string{row.state, row.reason, row.text}, " "))
	}
	r.ledger.Unheld += len(free) + missing
	return nil
}
