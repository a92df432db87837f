//go:build unix

package alerts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Time limits: until all alerts of a round fire, until these alerts are resolved, and, before a round, until the alerts
// of earlier rounds are resolved.
const (
	untilFiring   = 5 * time.Minute
	untilResolved = 4 * time.Minute
	untilQuiet    = time.Minute
)

// round waits until no alert fires and then starts the faults. After each expected alert has fired, round
// repairs the faults and waits until no alert fires.
func (r *run) round(ctx context.Context, number int, faults []fault) {
	r.publishUntil(ctx, untilQuiet, func() bool { return len(r.firingAlerts()) == 0 })
	wanted := map[string]*Alert{}
	for i := range faults {
		f := &faults[i]
		r.Say("round %d: %s", number, f.says)
		for _, name := range f.alerts {
			at := slices.IndexFunc(r.ledger.Alerts, func(a Alert) bool { return a.Name == name })
			if at < 0 {
				proof.Check(fmt.Errorf("there is no rule %s", name))
			}
			wanted[name] = &r.ledger.Alerts[at]
			wanted[name].Fault = f.says
		}
		if f.start != nil {
			proof.During(f.says, func() { f.start(ctx) })
		}
	}
	began, fired := time.Now(), map[string]bool{}
	r.publishUntil(ctx, untilFiring, func() bool {
		for _, f := range faults {
			if f.on != nil {
				proof.During(f.says, func() { f.on(ctx, time.Since(began)) })
			}
		}
		for name := range r.firingAlerts() {
			if wanted[name] != nil && !fired[name] {
				fired[name] = true
				r.Say("%s fires, %d of %d", name, len(fired), len(wanted))
			}
		}
		return len(fired) == len(wanted)
	})
	mended := time.Now()
	for _, f := range faults {
		if f.mends != nil {
			proof.During(f.says, func() { f.mends(ctx) })
		}
	}
	r.Say("round %d: mended after %.0f s; not fired: %v", number, time.Since(began).Seconds(), missingAlerts(wanted, fired))
	over := r.publishUntil(ctx, untilResolved, func() bool {
		now := r.firingAlerts()
		maps.DeleteFunc(now, func(name string, _ bool) bool { return wanted[name] == nil })
		return len(now) == 0
	})
	r.tell(wanted, began, mended, over)
}

// missingAlerts returns the names of expected alerts that did not fire.
func missingAlerts(wanted map[string]*Alert, fired map[string]bool) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range wanted {
			if !fired[name] && !yield(name) {
				return
			}
		}
	})
}

// publishUntil publishes a few messages again and again until condition returns true, but at most for the time limit.
// publishUntil reports whether condition returned true. If condition did not return true, the ledger reports which
// alerts are missing.
func (r *run) publishUntil(ctx context.Context, limit time.Duration, condition func() bool) bool {
	return proof.Within(ctx, limit, pause, func(context.Context) bool {
		r.trickle()
		return condition()
	})
}

// firingAlerts returns the names of the firing alerts among the rules with shortened durations.
func (r *run) firingAlerts() map[string]bool {
	names := map[string]bool{}
	for _, s := range proof.Must(r.prometheus.Now(`ALERTS{time="scaled", alertstate="firing"}`)) {
		names[s.Labels["alertname"]] = true
	}
	return names
}

// tell records when each alert was pending, firing and resolved in Prometheus. The parameter over is true if no alert
// fires now.
func (r *run) tell(wanted map[string]*Alert, began, mended time.Time, over bool) {
	now := time.Now()
	states := proof.Must(r.prometheus.Range(`ALERTS{time="scaled"}`, began, now, time.Second))
	of := map[*Alert]map[string]bool{}
	for _, s := range states {
		a := wanted[s.Labels["alertname"]]
		if a == nil || len(s.Points) == 0 {
			continue
		}
		first, last := s.Points[0].At-stampOf(began), s.Points[len(s.Points)-1].At
		if s.Labels["alertstate"] == "pending" {
			a.Pending = minTime(a.Pending, first)
			continue
		}
		a.Firing = minTime(a.Firing, first)
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
}

func stampOf(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// minTime returns the earlier of two times. If the parameter known is 0, minTime returns the parameter at.
func minTime(known proof.Seconds, at float64) proof.Seconds {
	at = max(at, 0.1)
	if known == 0 || proof.Seconds(at) < known {
		return proof.Seconds(at)
	}
	return known
}
