package sqlform

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Replay is a replay as a store has it, with the token of who runs it. Its methods are what
// every store does with one; they change it, or nothing with an error.
type Replay struct {
	admin.Replay
	Token store.Token
}

// mine refuses who does not run it.
func (r *Replay) mine(t store.Token) error {
	if r.State.Ended() || r.Token != t {
		return fmt.Errorf("replay %d: %w", r.Number, store.ErrClaimLost)
	}
	return nil
}

// Take has it run on under a token.
func (r *Replay) Take(t store.Token, lease time.Duration) error {
	switch {
	case r.State == admin.ReplayDone:
		return fmt.Errorf("replay %d: %w", r.Number, admin.ErrReplayEnded)
	case !r.State.Ended() && r.Left > 0:
		return fmt.Errorf("replay %d, for %v more at most: %w", r.Number, r.Left.Round(time.Second), admin.ErrReplayHeld)
	}
	r.State, r.Token, r.Left, r.Ended = admin.ReplayRunning, t, lease, time.Time{}
	return nil
}

// Save keeps its progress.
func (r *Replay) Save(t store.Token, lease time.Duration, p admin.ReplayProgress, now time.Time) error {
	if err := r.mine(t); err != nil {
		return err
	}
	r.Left, r.Progress, r.Saved = lease, p, now
	return nil
}

// End ends it.
func (r *Replay) End(t store.Token, s admin.ReplayState, p admin.ReplayProgress, now time.Time) error {
	if err := r.Save(t, 0, p, now); err != nil {
		return err
	}
	if !s.Ended() {
		return fmt.Errorf("replay %d: %q is no end", r.Number, s)
	}
	r.State, r.Token, r.Ended = s, 0, now
	return nil
}

// StopBy has it stopped.
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

// OfReplay is an act on a replay as it is recorded.
func OfReplay(a store.Act, r *admin.Replay) store.Act {
	return OfConsumer(a, fmt.Sprintf("%s, replay %d", r.Consumer, r.Number))
}

// Told is a replay's progress as a column has it; Untold reads it.
func Told(p admin.ReplayProgress) (string, error) {
	text, err := json.Marshal(p)
	return Plain(string(text)), err
}

// Untold reads what Told wrote. What a newer release adds is passed over.
func Untold(text string, p *admin.ReplayProgress) error { return json.Unmarshal([]byte(text), p) }
