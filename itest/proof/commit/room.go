package commit

import (
	"flag"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Room registers this fault test with the command itest/cmd/proof. Room runs the fault test with each driver, and with
// lost requests and lost replies.
type Room struct {
	cuts    int
	drivers []workload.Driver
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.cuts, "cuts", 10_000, "number of commits to cut in each direction, with each driver")
	proof.Drivers(flags, &r.drivers)
}

// Plants implements proof.Room. The fault "select" resolves an unknown commit by looking up the marker.
func (r *Room) Plants() []string { return []string{"select"} }

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) (runs []proof.Run) {
	directions := []Direction{Reply, Request}
	if c.Plant != "" {
		// if the request is lost, the server has committed nothing: the lookup is correct, and the fault would not show
		directions = directions[:1]
	}
	for _, driver := range r.drivers {
		for _, d := range directions {
			p := Proof{Driver: driver, Direction: d, Cuts: r.cuts, LookUp: c.Plant != "", Seed: c.Seed}
			runs = append(runs, proof.Run{Title: fmt.Sprintf("%s, %s", driver.Name, d), Within: 2 * time.Hour, Prove: proof.Proving(p.Run)})
		}
	}
	return runs
}
