package demo

import (
	"strings"
	"testing"
)

func TestTheAuditFindsLostAndDoubledPayments(t *testing.T) {
	one, two, three := payment{"shop", "1", "a", 10}, payment{"till", "1", "a", 5}, payment{"shop", "2", "b", 7}
	sent := []payment{one, two, one, three}
	for _, c := range []struct {
		name     string
		booked   map[payment]int
		balances map[string]int64
		want     Figures
	}{
		{"all once", map[payment]int{one: 1, two: 1, three: 1}, map[string]int64{"a": 15, "b": 7}, Figures{Expected: 3, Applied: 3}},
		{"one lost, one doubled", map[payment]int{one: 3, two: 1}, map[string]int64{"a": 35}, Figures{Expected: 3, Applied: 4, Lost: 1, Doubled: 2, MoneyOff: 27}},
		{"nothing booked", nil, nil, Figures{Expected: 3, Lost: 3, MoneyOff: 22}},
	} {
		if got, err := compareBookings(sent, c.booked, c.balances); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	for fault, booked := range map[string]map[payment]int{"never sent": {one: 1, {"shop", "9", "a", 5}: 1}, "sum of its entries is 10": {one: 1}} {
		if _, err := compareBookings(sent, booked, map[string]int64{"a": 15}); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v", fault, err)
		}
	}
}

func TestCheckReportsMissingResults(t *testing.T) {
	good := func() Report {
		return Report{Seed: 3, Crashes: make([]Crash, 2), Consumers: []Figures{
			{Name: SettleFirst, Crashes: 2, Lost: 1, MoneyOff: 5}, {Name: SettleLast, Crashes: 2, Doubled: 1, MoneyOff: 5}, {Name: Semel, Crashes: 2}}}
	}
	if err := good().Check(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func([]Figures){
		"settle-first lost nothing":               func(f []Figures) { f[0].Lost = 0 },
		"settle-last doubled nothing":             func(f []Figures) { f[1].Doubled = 0 },
		"semel did not apply each payment once":   func(f []Figures) { f[2].Lost = 1 },
		"with seed 3: lost 0, doubled 4":          func(f []Figures) { f[2].Doubled = 4 },
		"money off by 9, crashes 2 of 2":          func(f []Figures) { f[2].MoneyOff = 9 },
		"settle-last did not crash as planned":    func(f []Figures) { f[1].Crashes = 1 },
		"semel did not crash as planned with see": func(f []Figures) { f[2].Crashes = 3 },
	} {
		r := good()
		spoil(r.Consumers)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
