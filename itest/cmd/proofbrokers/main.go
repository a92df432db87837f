// Proofbrokers publishes to three brokers, kills one and freezes another under
// load, and prints the ledger of what three members of a consumer applied to
// PostgreSQL meanwhile. Its exit code is 1 if anything was lost, doubled or
// stuck, or if the group's offsets went back.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/semel-go/semel/itest/proofbrokers"
	"github.com/semel-go/semel/itest/workload"
)

func main() {
	p := proofbrokers.Proof{Progress: os.Stderr}
	flag.IntVar(&p.Events, "events", 60_000, "the fewest events to publish")
	flag.IntVar(&p.Rate, "rate", 600, "events a second")
	flag.IntVar(&p.Members, "members", 3, "members of the consumer")
	flag.IntVar(&p.Rounds, "rounds", 3, "how often a broker is killed and another frozen")
	flag.DurationVar(&p.Freeze, "freeze", 12*time.Second, "how long one is frozen")
	flag.BoolVar(&p.NextGen, "next-gen", false, "let the brokers balance the group (KIP-848)")
	flag.BoolVar(&p.Natural, "natural", false, "plant a fault: leave the markers out")
	flag.Uint64Var(&p.Seed, "seed", 1, "chooses the partitions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := prove(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, "proofbrokers:", err)
		os.Exit(1)
	}
}

func prove(ctx context.Context, p proofbrokers.Proof) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	outside := &workload.Outside{}
	defer outside.End()
	l, err := p.Run(ctx, outside)
	if err != nil {
		return err
	}
	if err := l.Write(os.Stdout); err != nil {
		return err
	}
	return l.Fault()
}
