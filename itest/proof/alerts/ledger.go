//go:build unix

package alerts

import (
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger has the result of each alert in a run of the proof, and the number of dashboard queries.
type Ledger struct {
	// Scale is the factor by which durations were shortened.
	Scale int
	// Effects is the number of effects in the healthy run, FiredHealthy the alerts that fired
	// during it.
	Effects      int
	FiredHealthy []string
	// Alerts are the results for the shipped rules, in their order.
	Alerts []Alert
	// Queries is the number of queries of the dashboard; Empty are those without data.
	Queries int
	Empty   []string
	Seconds proof.Seconds
}

// Alert is the result of one alert: when it was first pending and first fired, in seconds after
// the fault, and when it was resolved, in seconds after the repair; 0 means never. An alert
// without a `for` duration is never pending.
type Alert struct {
	Name, Fault, Of           string
	Pending, Firing, Resolved proof.Seconds
	last                      float64
}

// String returns a line of the report.
func (a Alert) String() string {
	switch {
	case a.Fault == "":
		return "no fault was produced for it"
	case a.Firing == 0:
		return "never fired: " + a.Fault
	case a.Resolved == 0:
		return "was not resolved: " + a.Fault
	}
	pending := ""
	if a.Pending > 0 {
		pending = fmt.Sprintf("pending after %.0f s, ", float64(a.Pending))
	}
	return fmt.Sprintf("%sfiring after %.0f s, resolved %.0f s after the mending; %s: %s", pending, float64(a.Firing), float64(a.Resolved), a.Of, a.Fault)
}

// Wrong returns what was wrong with the rules.
func (l Ledger) Wrong() error {
	var all []error
	if len(l.FiredHealthy) > 0 {
		all = append(all, fmt.Errorf("fired in a healthy run: %s", strings.Join(l.FiredHealthy, ", ")))
	}
	for _, a := range l.Alerts {
		if a.Firing == 0 || a.Resolved == 0 {
			all = append(all, fmt.Errorf("%s: %s", a.Name, a))
		}
	}
	if len(l.Empty) > 0 {
		all = append(all, fmt.Errorf("no data for: %s", strings.Join(l.Empty, "; ")))
	}
	return errors.Join(all...)
}

// Fault returns why the ledger is no proof.
func (l Ledger) Fault() error {
	return errors.Join(l.Wrong(), ledger.AtLeast(100, l.Effects, "effects in the healthy run"), ledger.AtLeast(1, len(l.Alerts), "alerts"), ledger.AtLeast(20, l.Queries, "queries of the dashboard"))
}

// MarshalJSON lists each alert under its name.
func (l Ledger) MarshalJSON() ([]byte, error) {
	var all proof.Fields
	all.Add("time_scale", l.Scale)
	all.Add("effects_in_a_healthy_run", l.Effects)
	all.Add("alerts_that_fired_in_it", len(l.FiredHealthy))
	for _, a := range l.Alerts {
		all.Add(a.Name, a.String())
	}
	all.Add("queries_of_the_dashboard", l.Queries)
	all.Add("queries_without_an_answer", len(l.Empty))
	all.Add("seconds", l.Seconds)
	return all.MarshalJSON()
}
