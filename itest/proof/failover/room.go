package failover

import (
	"flag"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Room registers this fault test with the command itest/cmd/proof. Room runs the fault test several times with each
// driver.
type Room struct {
	times, deliveries int
	drivers           []workload.Driver
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.times, "times", 5, "number of failovers with each driver")
	flags.IntVar(&r.deliveries, "deliveries", 5_000, "deliveries committed before the kill, and again after it")
	proof.Drivers(flags, &r.drivers)
}

// Plants implements proof.Room.
func (r *Room) Plants() []string { return nil }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) (runs []proof.Run) {
	for _, driver := range r.drivers {
		for n := range r.times {
			p := Proof{Driver: driver, Before: r.deliveries + 137*n, After: r.deliveries, Seed: c.Seed + uint64(n)}
			runs = append(runs, proof.Run{Title: fmt.Sprintf("%s, failover %d", driver.Name, n+1), Within: 10 * time.Minute, Prove: proof.Proving(p.Run)})
		}
	}
	return runs
}
