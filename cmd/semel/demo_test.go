package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// demonstration is the JSON output of `semel demo -o json`.
type demonstration struct {
	Payments, Copies int
	Crashes          []struct{ Point string }
	Consumers        []map[string]any
}

// numberOf returns a number that the demo printed about a consumer.
func (d demonstration) numberOf(consumer, figure string) (int, error) {
	for _, c := range d.Consumers {
		if c["name"] == consumer {
			if n, ok := c[figure].(float64); ok {
				return int(n), nil
			}
		}
	}
	return 0, fmt.Errorf("%s has no figure %q in %v", consumer, figure, d.Consumers)
}

// The script command "figure CONSUMER NAME WANT" parses the output of `semel demo -o json` and compares a
// number. WANT is a number or ">0".
func figure(ts *testscript.TestScript, _ bool, args []string) {
	var d demonstration
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &d))
	n, err := d.numberOf(args[0], args[1])
	ts.Check(err)
	if want := args[2]; strconv.Itoa(n) != want && (want != ">0" || n <= 0) {
		ts.Fatalf("%s of %s is %d, not %s", args[1], args[0], n, want)
	}
}

func TestTheDemonstrationShowsWhatCrashesDoToMoney(t *testing.T) {
	const seed = "42"
	temporary := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP"} {
		t.Setenv(name, temporary)
	}
	var d demonstration
	if err := json.Unmarshal(output(t, t.TempDir(), "semel", "demo", "-o", "json", "--seed", seed), &d); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
	at := map[string]int{}
	for _, c := range d.Crashes {
		at[strings.Fields(c.Point)[0]]++
	}
	check := func(t *testing.T, consumer string, lost, doubled int) {
		t.Helper()
		want := map[string]int{"crashes": len(d.Crashes), "expected": d.Payments, "lost": lost, "doubled": doubled, "applied": d.Payments - lost + doubled}
		for name, n := range want {
			if got, err := d.numberOf(consumer, name); err != nil || got != n {
				t.Errorf("%s of %s is %d, not %d (%v)", name, consumer, got, n, err)
			}
		}
		if off, err := d.numberOf(consumer, "money_off"); err != nil || (off != 0) != (lost+doubled > 0) {
			t.Errorf("the money of %s is off by %d (%v)", consumer, off, err)
		}
	}
	// A crash, or a copy that the producer sent, explains each lost or doubled payment.
	t.Run("K9_settling_first_loses_what_a_crash_keeps_from_being_booked", func(t *testing.T) {
		check(t, "settle-first", at["in"]+at["between"], d.Copies)
	})
	t.Run("K9_settling_last_doubles_what_a_crash_keeps_from_being_settled", func(t *testing.T) {
		check(t, "settle-last", 0, at["between"]+d.Copies)
	})
	t.Run("K9_semel_applies_each_payment_once", func(t *testing.T) {
		check(t, "semel", 0, 0)
	})
}
