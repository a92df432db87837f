// Prooffailover kills the primary under load and promotes its synchronous
// standby, several times with each driver, and prints the ledgers. Its exit
// code is 1 if anything was lost or doubled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/semel-go/semel/itest/prooffailover"
	"github.com/semel-go/semel/itest/workload"
)

func main() {
	times := flag.Int("times", 5, "failovers with each driver")
	deliveries := flag.Int("deliveries", 5_000, "in commits before the kill, and after")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var failed error
	for _, driver := range workload.Drivers() {
		for n := range *times {
			p := prooffailover.Proof{Driver: driver, Before: *deliveries + 137*n, After: *deliveries, Seed: uint64(n)}
			if err := prove(ctx, p); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s, failover %d: %w", driver.Name, n+1, err))
			}
		}
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "prooffailover:", failed)
		os.Exit(1)
	}
}

func prove(ctx context.Context, p prooffailover.Proof) error {
	outside := &workload.Outside{}
	defer outside.End()
	ledger, err := p.Run(ctx, outside)
	if err != nil {
		return err
	}
	if err := ledger.Write(os.Stdout); err != nil {
		return err
	}
	return ledger.Fault()
}
