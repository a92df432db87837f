//go:build unix

package alerts

import (
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger has the result of each alert in one run of the fault test, and the number of dashboard queries.
type Ledger struct {
	// Scale is the factor by which the durations in the alert rules were shortened.
	Scale int
	// Effects is the number of effects in the healthy run. FiredHealthy are the alerts that fired during the
	// healthy run.
	Effects      int
	FiredHealthy []string
	// Alerts are the results for the shipped rules, in the order of the rules.
	Alerts []Alert
	// Queries is the number of queries of the dashboard. Empty are the queries that returned no data.
	Queries int
	Empty   []string
	Seconds proof.Seconds
}

// Alert is the result of one alert: the seconds from the fault until the alert was first pending and until the alert
// first fired, and the seconds from the repair until the alert was resolved; 0 means never. An alert without a `for`
// duration is never pending.
type Alert struct {
	Name, Fault, Of           string
	Pending, Firing, Resolved proof.Seconds
	last                      float64
}

// String returns the line of this alert in the report.
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

// Wrong returns an error that lists the alerts and queries with a wrong result.
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

// Fault returns an error if the run proves nothing, for example because too little happened.
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
