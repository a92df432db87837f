//go:build unix

// Prooffile delivers 100,000 real webhooks (about 1 GB) through `semel run`
// into SQLite, kills the process 30 times with SIGKILL, and prints the ledger.
// With -into postgres three processes of one consumer do it at once, each with
// a file of its own: one is frozen in an open transaction halfway and never goes
// on, the others are killed, and the server is restarted under them. Its exit
// code is 1 if anything was lost, doubled or stuck.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/semel-go/semel/itest/processes"
	"github.com/semel-go/semel/itest/prooffile"
	"github.com/semel-go/semel/itest/webhooks"
	"github.com/semel-go/semel/itest/workload"
)

func main() {
	index := flag.String("webhooks", "", "path of index.json, as scripts/fetch-webhooks.sh prints it")
	deliveries := flag.Int("deliveries", 100_000, "lines of the file")
	ids := flag.Int("ids", 30_000, "webhooks, each with an id of its own")
	kills := flag.Int("kills", 30, "how often the process is killed")
	open := flag.Int("open", 20, "how many kills must meet an open transaction")
	seed := flag.Uint64("seed", 1, "orders the deliveries")
	into := flag.String("into", "sqlite", "the database: sqlite or postgres")
	restarts := flag.Int("restarts", 5, "how often the server is restarted; postgres only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	hooks, err := webhooks.Load(*index)
	if err == nil {
		in := prooffile.Input{Webhooks: hooks, Deliveries: *deliveries, IDs: *ids, Seed: *seed}
		if *into == "postgres" {
			err = proveFleet(ctx, in, *kills, *restarts, *open)
		} else {
			err = prove(ctx, in, *kills, *open)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prooffile:", err)
		os.Exit(1)
	}
}

func prove(ctx context.Context, in prooffile.Input, kills, open int) error {
	folder, err := os.MkdirTemp("", "semel-proof-")
	if err != nil {
		return err
	}
	binary, err := processes.Build(ctx, folder)
	if err != nil {
		return err
	}
	proof := prooffile.Proof{Input: in, Binary: binary, Folder: folder, Batch: 500, Kills: kills, Progress: os.Stderr}
	ledger, err := proof.Run(ctx)
	if err != nil {
		return err
	}
	if err := ledger.Write(os.Stdout); err != nil {
		return err
	}
	if err := ledger.Fault(open); err != nil {
		return fmt.Errorf("%w; everything is in %s", err, folder)
	}
	return os.RemoveAll(folder)
}

func proveFleet(ctx context.Context, in prooffile.Input, kills, restarts, open int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	folder, err := os.MkdirTemp("", "semel-proof-")
	if err != nil {
		return err
	}
	binary, err := processes.Build(ctx, folder)
	if err != nil {
		return err
	}
	outside := &workload.Outside{}
	defer outside.End()
	fleet := prooffile.Fleet{Input: in, Binary: binary, Folder: folder, Batch: 100, Timeout: 5 * time.Second,
		Kills: kills, Restarts: restarts, Progress: os.Stderr}
	ledger, err := fleet.Run(ctx, outside)
	if err != nil {
		return err
	}
	if err := ledger.Write(os.Stdout); err != nil {
		return err
	}
	if err := ledger.Fault(open); err != nil {
		return fmt.Errorf("%w; everything is in %s", err, folder)
	}
	return os.RemoveAll(folder)
}
