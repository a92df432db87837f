//go:build unix

// Proof runs a fault test or a measurement by its name, with flags that depend on the name (-help lists the flags).
// Without a name, the command lists all names. See the packages itest/proof and itest/bench. The command prints the
// results (the ledger) of the run. The exit code is 1 if a message was lost, doubled or stuck, if too little happened,
// or if a fault of Semel that was added on purpose was not found.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/semel-go/semel/itest/bench/http"
	"github.com/semel-go/semel/itest/bench/river"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/alerts"
	"github.com/semel-go/semel/itest/proof/chaos"
	"github.com/semel-go/semel/itest/proof/charge"
	"github.com/semel-go/semel/itest/proof/commit"
	"github.com/semel-go/semel/itest/proof/failover"
	"github.com/semel-go/semel/itest/proof/file"
	"github.com/semel-go/semel/itest/proof/kafka"
	"github.com/semel-go/semel/itest/proof/keyed"
	"github.com/semel-go/semel/itest/proof/reconcile"
	"github.com/semel-go/semel/itest/proof/replay"
	"github.com/semel-go/semel/itest/proof/retention"
	"github.com/semel-go/semel/itest/proof/webhook"
)

func main() {
	if err := prove(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

func prove(args []string) error {
	own := map[string]func(order string) error{proof.PlainLoopCommand: proof.PlainLoop, charge.Command: charge.Live, webhook.Command: webhook.Live}
	if len(args) > 1 && own[args[0]] != nil { // a fault test has started this program as another process
		return own[args[0]](args[1])
	}
	rooms := map[string]proof.Room{
		"alerts": alerts.Room(), "chaos": chaos.Chaos(), "charge": charge.Room(), "commit": &commit.Room{}, "failover": &failover.Room{}, "file": &file.Room{}, "http": http.Room(), "kafka": &kafka.Room{}, "keyed": keyed.Room(),
		"reconcile": reconcile.Room(), "river": river.Room(), "replay": replay.Room(), "retention": &retention.Room{}, "soak": chaos.Soak(), "webhook": webhook.Room(),
	}
	if len(args) == 0 || rooms[args[0]] == nil {
		return fmt.Errorf("name one of %v; with -help behind it, it lists its flags", slices.Sorted(maps.Keys(rooms)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return proof.Main(ctx, rooms[args[0]], args[1:], os.Stdout)
}
