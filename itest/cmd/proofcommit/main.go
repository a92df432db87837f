// Proofcommit cuts the connection at 10,000 COMMIT requests and at 10,000
// replies with each driver, on private PostgreSQL servers with a synchronous
// standby, and prints the ledgers. Its exit code is 1 if anything was lost or
// doubled. With -plant select it does so with a store that resolves unknown
// commits by a look-up, and its exit code is 1 if that was not found.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/semel-go/semel/itest/proofcommit"
	"github.com/semel-go/semel/itest/workload"
)

func main() {
	cuts := flag.Int("cuts", 10_000, "how many commits are cut in each direction, with each driver")
	plant := flag.String("plant", "", "select: resolve an unknown commit by a look-up, which must be found")
	driver := flag.String("driver", "", "only this one: database/sql or pgx")
	seed := flag.Uint64("seed", 1, "orders deliveries and cuts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := fmt.Errorf("-plant %s is unknown; there is select", *plant)
	if *plant == "" || *plant == "select" {
		err = proveAll(ctx, proofcommit.Proof{Cuts: *cuts, LookUp: *plant == "select", Seed: *seed, Progress: os.Stderr}, *driver)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proofcommit:", err)
		os.Exit(1)
	}
}

func proveAll(ctx context.Context, p proofcommit.Proof, only string) error {
	var failed error
	for _, p.Driver = range workload.Drivers() {
		if only != "" && only != p.Driver.Name {
			continue
		}
		for _, p.Direction = range []proofcommit.Direction{proofcommit.Reply, proofcommit.Request} {
			if p.LookUp && p.Direction == proofcommit.Request {
				continue // what was never sent is absent: there a look-up is right
			}
			if err := prove(ctx, p); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s, %s: %w", p.Driver.Name, p.Direction, err))
			}
		}
	}
	return failed
}

func prove(ctx context.Context, p proofcommit.Proof) (err error) {
	outside := &workload.Outside{}
	defer outside.End()
	ledger, err := p.Run(ctx, outside)
	if err != nil {
		return err
	}
	if err := ledger.Write(os.Stdout); err != nil {
		return err
	}
	if !p.LookUp {
		return ledger.Fault(p.Cuts)
	}
	if ledger.Lost+ledger.Doubled == 0 {
		return errors.New("the planted fault was not found")
	}
	fmt.Printf("the planted fault is found: lost %d, doubled %d\n", ledger.Lost, ledger.Doubled)
	return nil
}
