//go:build unix

package alerts

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
)

func TestALedgerWithAnAlertThatIsMissingIsNoProof(t *testing.T) {
	good := Ledger{Scale: 30, Effects: 200, Queries: 30, Alerts: []Alert{{Name: "SemelParked", Fault: "a fault", Of: "billing", Pending: 1, Firing: 2, Resolved: 3}}}
	alert := func(change func(*Alert)) func(*Ledger) {
		return func(l *Ledger) {
			l.Alerts = []Alert{l.Alerts[0]}
			change(&l.Alerts[0])
		}
	}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"fired in a healthy run": func(l *Ledger) { l.FiredHealthy = []string{"SemelGap"} },
		"no fault for it":        alert(func(a *Alert) { *a = Alert{Name: a.Name} }),
		"never fired":            alert(func(a *Alert) { a.Firing = 0 }),
		"never resolved":         alert(func(a *Alert) { a.Resolved = 0 }),
		"no alerts":              func(l *Ledger) { l.Alerts = nil },
		"no effects":             func(l *Ledger) { l.Effects = 3 },
		"no queries":             func(l *Ledger) { l.Queries = 0 },
		"no answer":              func(l *Ledger) { l.Empty = []string{"a panel"} },
	})
	text, err := json.Marshal(good)
	if want := `"SemelParked":"pending after 1 s, firing after 2 s, resolved 3 s after the mending; billing: a fault"`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestEachRuleThatShipsHasAFault(t *testing.T) {
	_, names, err := shippedRules(t.Context())
	must.OK(t, err)
	var fires []string
	for _, faults := range (&run{}).faultRounds() {
		for _, f := range faults {
			fires = append(fires, f.alerts...)
		}
	}
	slices.Sort(names)
	if slices.Sort(fires); !slices.Equal(names, fires) {
		t.Errorf("the shipped alerts are %v, but faults are produced for %v", names, fires)
	}
}

func TestDurationsOfRulesAreScaledAndNumbersAreNot(t *testing.T) {
	for rule, want := range map[string]string{
		"expr: 'sum by (consumer) (rate(semel_duplicates_total[10m])) > 1'\n for: 10m\n labels: {severity: ticket}":        "expr: 'sum by (consumer) (rate(semel_duplicates_total[20s])) > 1'\n for: 20s\n labels: {time: scaled, severity: ticket}",
		`max by (store, consumer) (semel_store_oldest_seconds{state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"}) > 900`:      `max by (store, consumer) (semel_store_oldest_seconds{state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"}) > 30`,
		"max by (store, consumer) (semel_store_reaper_lag_seconds) > 172800 or max by (a) (semel_store_x_seconds) > 86400": "max by (store, consumer) (semel_store_reaper_lag_seconds) > 5760 or max by (a) (semel_store_x_seconds) > 2880",
		"sum by (consumer) (semel_broker_lag_messages) > 10000":                                                            "sum by (consumer) (semel_broker_lag_messages) > 10000",
	} {
		if got := scaleDurations(rule, 30); got != want {
			t.Errorf("%s\nis not\n%s", got, want)
		}
	}
}
