//go:build linux

// Proofkafka publishes 200,000 real webhooks and a tenth of them again to a
// broker of its own, over six minutes, while three `semel run` processes apply
// them to a PostgreSQL server of its own. Members are killed in open
// transactions, frozen beyond their session, added and ended; broker and
// server are restarted. It prints the ledger. Its exit code is 1 if anything
// was lost, doubled or stuck, or if too little happened.
//
// With -quick it takes a minute; with -three there are three brokers, which are
// killed and frozen under load. With -plant it plants a fault, which must be
// found.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/semel-go/semel/itest/processes"
	"github.com/semel-go/semel/itest/proofkafka"
	"github.com/semel-go/semel/itest/webhooks"
	"github.com/semel-go/semel/itest/workload"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == proofkafka.LoopCommand {
		exit(proofkafka.Loop(os.Args[2]))
	}
	p := proofkafka.Full()
	quick := flag.Bool("quick", false, "take the sizes of the form that takes a minute, whatever other flags say")
	three := flag.Bool("three", false, "three brokers, of which two are killed and two frozen, in two minutes, whatever other flags say")
	flag.BoolVar(&p.NextGen, "next-gen", false, "have the members join with the protocol of KIP-848")
	index := flag.String("webhooks", "", "path of index.json, as scripts/fetch-webhooks prints it; made-up payloads without")
	flag.IntVar(&p.Events, "events", p.Events, "events, each with an identity of its own")
	flag.IntVar(&p.Duplicates, "duplicates", p.Duplicates, "copies by producers")
	flag.DurationVar(&p.Publish, "publish", p.Publish, "over how long they are published, at least")
	flag.IntVar(&p.Kills, "kills", p.Kills, "kills in an open transaction")
	flag.IntVar(&p.Freezes, "freezes", p.Freezes, "freezes beyond the session that are resumed")
	flag.BoolVar(&p.ForGood, "forgood", p.ForGood, "freeze one member for good")
	flag.IntVar(&p.BrokerRestarts, "broker-restarts", p.BrokerRestarts, "restarts of the broker, by SIGKILL")
	flag.IntVar(&p.DatabaseRestarts, "postgres-restarts", p.DatabaseRestarts, "restarts of PostgreSQL")
	flag.IntVar(&p.Changes, "changes", p.Changes, "members added, and as many removed")
	flag.Int64Var(&p.Redelivered, "redelivered", p.Redelivered, "redeliveries that there must be")
	flag.StringVar(&p.Plant, "plant", "", fmt.Sprintf("a fault that must be found, one of %v", proofkafka.Plants()))
	flag.Uint64Var(&p.Seed, "seed", 1, "orders what is published")
	asJSON := flag.Bool("json", false, "print the ledger as JSON")
	flag.Parse()
	switch {
	case *quick:
		p = proofkafka.Quick(p)
	case *three:
		p = proofkafka.Three(p)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, p, *index, *asJSON))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "proofkafka:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, p proofkafka.Proof, index string, asJSON bool) (err error) {
	if p.Plant != "" && !slices.Contains(proofkafka.Plants(), p.Plant) {
		return fmt.Errorf("-plant %s is unknown; there are %v", p.Plant, proofkafka.Plants())
	}
	p.Webhooks = webhooks.MadeUp(300, 4000)
	if index != "" {
		if p.Webhooks, err = webhooks.Load(index); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.Publish+10*time.Minute)
	defer cancel()
	if p.Folder, err = os.MkdirTemp("", "semel-proof-"); err != nil {
		return err
	}
	if p.Binary, err = processes.Build(ctx, p.Folder); err != nil {
		return err
	}
	ledger, err := prove(ctx, p)
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(ledger)
	} else {
		err = ledger.Write(os.Stdout)
	}
	if err == nil {
		err = judge(p, ledger)
	}
	if err != nil {
		return fmt.Errorf("%w; everything is in %s", err, p.Folder)
	}
	return os.RemoveAll(p.Folder)
}

func prove(ctx context.Context, p proofkafka.Proof) (proofkafka.Ledger, error) {
	outside := &workload.Outside{}
	defer outside.End()
	p.Progress = proofkafka.NewLines(os.Stderr)
	if term.IsTerminal(int(os.Stderr.Fd())) {
		p.Progress = proofkafka.NewBars(os.Stderr, p)
	}
	defer p.Progress.Close()
	return p.Run(ctx, outside)
}

func judge(p proofkafka.Proof, l proofkafka.Ledger) error {
	if p.Plant == "" {
		return l.Fault(p.Least())
	}
	found := l.Wrong()
	if found == nil {
		return errors.New("the planted fault was not found")
	}
	fmt.Printf("the planted fault is found: %v\n", found)
	return nil
}
