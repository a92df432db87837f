//go:build unix

package alerts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Time limits: until all alerts of a round fire, until they are resolved, and, before a round, until the
// alerts of earlier rounds are resolved.
const (
	untilFiring   = 5 * time.Minute
	untilResolved = 4 * time.Minute
	untilQuiet    = time.Minute
)

// round waits until no alert fires and then starts the faults. After each expected alert has fired, round
// repairs the faults and waits until no alert fires.
func (r *run) round(ctx context.Context, number int, faults []fault) error {
	if _, err := r.turns(ctx, untilQuiet, r.quiet); err != nil {
		return err
	}
	wanted := map[string]*Alert{}
	for i := range faults {
		f := &faults[i]
		r.Say("round %d: %s", number, f.says)
		for _, name := range f.alerts {
			at := slices.IndexFunc(r.ledger.Alerts, func(a Alert) bool { return a.Name == name })
			if at < 0 {
				return fmt.Errorf("there is no rule %s", name)
			}
			wanted[name] = &r.ledger.Alerts[at]
			wanted[name].Fault = f.says
		}
		if f.breaks == nil {
			continue
		}
		if err := f.breaks(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.says, err)
		}
	}
	began, fired := time.Now(), map[string]bool{}
	_, err := r.turns(ctx, untilFiring, func(ctx context.Context) (bool, error) {
		for _, f := range faults {
			if f.on == nil {
				continue
			}
			if err := f.on(ctx, time.Since(began)); err != nil {
				return false, fmt.Errorf("%s: %w", f.says, err)
			}
		}
		return r.all(wanted, fired)
	})
	if err != nil {
		return err
	}
	mended := time.Now()
	for _, f := range faults {
		if f.mends == nil {
			continue
		}
		if err := f.mends(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.says, err)
		}
	}
	r.Say("round %d: mended after %.0f s; not fired: %v", number, time.Since(began).Seconds(), without(wanted, fired))
	over, err := r.turns(ctx, untilResolved, func(context.Context) (bool, error) { return r.none(wanted) })
	if err != nil {
		return err
	}
	return r.tell(wanted, began, mended, over)
}

// without returns the names of expected alerts that did not fire.
func without(wanted map[string]*Alert, fired map[string]bool) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range wanted {
			if !fired[name] && !yield(name) {
				return
			}
		}
	})
}

// turns publishes a few messages again and again until the condition holds, for at most the time `most`.
// turns reports whether the condition holds.
func (r *run) turns(ctx context.Context, most time.Duration, so func(context.Context) (bool, error)) (bool, error) {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := proof.Until(within, pause, func() (bool, error) {
		r.trickle()
		return so(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil // no error here: the ledger reports the alert that did not fire
	}
	return err == nil, err
}

// firing returns the names of the firing alerts among the rules with shortened durations.
func (r *run) firing() (map[string]bool, error) {
	now, err := r.prometheus.Now(`ALERTS{time="scaled", alertstate="firing"}`)
	names := map[string]bool{}
	for _, s := range now {
		names[s.Labels["alertname"]] = true
	}
	return names, err
}

// all adds the firing alerts to fired and reports whether all expected alerts have fired.
func (r *run) all(wanted map[string]*Alert, fired map[string]bool) (bool, error) {
	now, err := r.firing()
	for name := range now {
		if wanted[name] != nil && !fired[name] {
			fired[name] = true
			r.Say("%s fires, %d of %d", name, len(fired), len(wanted))
		}
	}
	return len(fired) == len(wanted), err
}

// quiet reports whether no alert fires.
func (r *run) quiet(context.Context) (bool, error) {
	now, err := r.firing()
	return len(now) == 0, err
}

// none reports whether none of the expected alerts fires.
func (r *run) none(wanted map[string]*Alert) (bool, error) {
	now, err := r.firing()
	for name := range now {
		if wanted[name] != nil {
			return false, err
		}
	}
	return true, err
}

// tell records when each alert was pending, firing and resolved in Prometheus. over is true if no alert fires
// now.
func (r *run) tell(wanted map[string]*Alert, began, mended time.Time, over bool) error {
	now := time.Now()
	states, err := r.prometheus.Range(`ALERTS{time="scaled"}`, began, now, time.Second)
	if err != nil {
		return err
	}
	of := map[*Alert]map[string]bool{}
	for _, s := range states {
		a := wanted[s.Labels["alertname"]]
		if a == nil || len(s.Points) == 0 {
			continue
		}
		first, last := s.Points[0].At-stampOf(began), s.Points[len(s.Points)-1].At
		if s.Labels["alertstate"] == "pending" {
			a.Pending = earlier(a.Pending, first)
			continue
		}
		a.Firing = earlier(a.Firing, first)
		a.last = max(a.last, last)
		if of[a] == nil {
			of[a] = map[string]bool{}
		}
		of[a][strings.TrimSpace(s.Labels["consumer"]+" "+s.Labels["store"])] = true
	}
	for a, names := range of {
		a.Of = strings.Join(slices.Sorted(maps.Keys(names)), ", ")
		if over || a.last+2 < stampOf(now) {
			a.Resolved = proof.Seconds(max(a.last+1-stampOf(mended), 0.1))
		}
	}
	return nil
}

func stampOf(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// earlier returns the earlier of two times. A known time of 0 means that no time is known.
func earlier(known proof.Seconds, at float64) proof.Seconds {
	at = max(at, 0.1)
	if known == 0 || proof.Seconds(at) < known {
		return proof.Seconds(at)
	}
	return known
}
