package sqlform

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Replay is a stored replay with the token of the process that runs the replay. The methods implement the operations of
// admin.Replays for every store. A method that returns an error has changed nothing.
type Replay struct {
	admin.Replay
	Token store.Token
}

// checkToken returns store.ErrClaimLost if the process with the given token does not run the replay.
func (r *Replay) checkToken(t store.Token) error {
	if r.State.Ended() || r.Token != t {
		return fmt.Errorf("replay %d: %w", r.Number, store.ErrClaimLost)
	}
	return nil
}

// Take assigns the replay to the process with the given token.
func (r *Replay) Take(t store.Token, lease time.Duration) error {
	switch {
	case r.State == admin.ReplayDone:
		return fmt.Errorf("replay %d: %w", r.Number, admin.ErrReplayEnded)
	case !r.State.Ended() && r.Left > 0:
		return fmt.Errorf("replay %d, for at most another %v: %w", r.Number, r.Left.Round(time.Second), admin.ErrReplayHeld)
	}
	r.State, r.Token, r.Left, r.Ended = admin.ReplayRunning, t, lease, time.Time{}
	return nil
}

// Save stores the progress.
func (r *Replay) Save(t store.Token, lease time.Duration, p admin.ReplayProgress, now time.Time) error {
	if err := r.checkToken(t); err != nil {
		return err
	}
	r.Left, r.Progress, r.Saved = lease, p, now
	return nil
}

// End ends the replay.
func (r *Replay) End(t store.Token, s admin.ReplayState, p admin.ReplayProgress, now time.Time) error {
	if err := r.Save(t, 0, p, now); err != nil {
		return err
	}
	if !s.Ended() {
		return fmt.Errorf("replay %d: %q is not a final state", r.Number, s)
	}
	r.State, r.Token, r.Ended = s, 0, now
	return nil
}

// StopBy stops the replay.
func (r *Replay) StopBy(a store.Act, now time.Time) error {
	if r.State != admin.ReplayRunning {
		return fmt.Errorf("replay %d is %s: %w", r.Number, r.State, admin.ErrReplayEnded)
	}
	r.Stop, r.State = admin.Order{By: a.Who, Why: a.Why, At: now}, admin.ReplayStopping
	if r.Left <= 0 {
		r.State, r.Token, r.Ended = admin.ReplayStopped, 0, now
	}
	return nil
}

// OfReplay returns the audit record of an operator's change to a replay: the record a, with the consumer's name and the
// replay's number in Why.
func OfReplay(a store.Act, r *admin.Replay) store.Act {
	return OfConsumer(a, fmt.Sprintf("%s, replay %d", r.Consumer, r.Number))
}

// Told returns the text that a column stores for the progress of a replay.
func Told(p admin.ReplayProgress) (string, error) {
	text, err := json.Marshal(p)
	return Plain(string(text)), err
}

// Untold is the inverse of Told. Fields that only newer releases know are ignored.
func Untold(text string, p *admin.ReplayProgress) error { return json.Unmarshal([]byte(text), p) }
