//go:build unix

package kafka

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// stage is a stage of the test after all messages are published. Each stage has different reasons for which messages in
// the inbox may wait.
type stage uint8

const (
	untilMended  stage = iota // messages wait only for gaps and parked messages, until the parked messages are retried
	untilFilled               // messages wait for gaps whose versions come from a file
	untilSkipped              // messages wait for gaps whose versions never come
	untilNothing
)

// poison returns the events whose handlers fail until the fault test repairs the cause. With Order, each failing event
// has a stream of its own, so that messages wait behind each failing event.
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
		unfilled := version{v.stream, 2}.isFilled() && s <= untilFilled
		unskipped := isSkipped(v.stream) && s <= untilSkipped
		if v.number >= 3 && (parked || unfilled || unskipped) {
			held[hexID(event)] = event
		}
	}
	return held
}

// hexID returns an event's id as hexadecimal digits. The id of the event's inbox row ends with the same digits.
func hexID(event int) string { return strings.ReplaceAll(webhooks.ID(event), "-", "") }

// waitingRow is a row of the inbox whose message is not completed.
type waitingRow struct{ id, state, reason, text string }

// findUnheld returns the rows that wait without a reason, and the number of rows that should wait but do not
// wait.
func findUnheld(rows []waitingRow, held map[string]int) (free []waitingRow, missing int) {
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

// waitingRows reads the rows that are not completed.
func (r *run) waitingRows(ctx context.Context) (all []waitingRow, err error) {
	var row waitingRow
	err = ledger.Each(ctx, r.Activity.DB, `select encode(substr(id, 2), 'hex'), state, reason, concat_ws(' ', encode(stream, 'escape'), stream_version, encode(line, 'escape'), place,
		'due in', due_at - now(), 'attempts', finished, last_error) from semel_inbox where state <> 'COMPLETED' order by number`,
		nil, []any{&row.id, &row.state, &row.reason, &row.text}, func() { all = append(all, row) })
	return all, err
}

// waitDrained waits until every waiting row has a reason to wait. The versions of a stream are processed one
// after the other, which takes long. waitDrained therefore gives up only when no effect was added for the time
// patience.
func (r *run) waitDrained(ctx context.Context, s stage) {
	held := r.heldBack(s)
	looked, moved, effects := time.Time{}, time.Now(), int64(-1)
	stands := func() bool { return time.Since(moved) > patience }
	r.Until(ctx, func() bool {
		if time.Since(looked) < 500*time.Millisecond {
			return false
		}
		looked = time.Now()
		if now := r.countEffects(); now != effects {
			effects, moved = now, looked
		}
		if stands() {
			return true
		}
		// a cheap query, which runs before the expensive ones
		const query = "select count(*) from semel_inbox where state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE')"
		moving := 0
		if r.Activity.DB.QueryRowContext(ctx, query).Scan(&moving) != nil || moving > 0 {
			return false
		}
		if r.Plant != "" { // with a fault added on purpose, messages may not wait although they should
			return true
		}
		rows, err := r.waitingRows(ctx)
		free, missing := findUnheld(rows, held)
		return err == nil && len(free) == 0 && missing == 0
	})
	switch {
	case stands():
		r.checkWaiting(ctx, held)
	case r.Plant == "":
		r.Say("%d messages wait, each behind one that is parked or missing, or parked itself", len(held))
	}
}

// checkWaiting counts the rows that wait without a reason. If rows wait without a reason, the ledger reports a fault.
func (r *run) checkWaiting(ctx context.Context, held map[string]int) {
	free, missing := findUnheld(proof.Must(r.waitingRows(ctx)), held)
	r.Say("for %v nothing took effect: %d messages wait although nothing holds them back, and of %d that are held back %d do not wait", patience, len(free), len(held), missing)
	for _, row := range free[:min(len(free), 10)] {
		r.Say("%s is %s", row.id, strings.Join([]string{row.state, row.reason, row.text}, " "))
	}
	r.ledger.Unheld += len(free) + missing
}
