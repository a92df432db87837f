//go:build unix

package kafka

import (
	"errors"
	"flag"
	"strconv"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room offers the proof in three sizes.
type Room struct {
	Proof
	quick, three, inbox, order, keys bool
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	p := &r.Proof
	*p = Full()
	proof.Payloads(flags, &p.Webhooks)
	r.size(flags, "quick", &r.quick, "take the sizes of the form that takes a minute, whatever other flags say")
	r.size(flags, "three", &r.three, "three brokers, of which two are killed and two frozen, in two minutes, whatever other flags say")
	flags.BoolVar(&r.inbox, "inbox", false, "receive first, with handlers that fail now and then; with -quick in a minute")
	flags.BoolVar(&r.order, "order", false, "versions of streams in lanes by key, some of which come shuffled, late or never; with -quick in a minute")
	flags.BoolVar(&r.keys, "keys", false, "records of keys in order, received first, with handlers that fail now and then; with -quick in a minute")
	flags.BoolVar(&p.NextGen, "next-gen", false, "have the members join with the protocol of KIP-848")
	flags.IntVar(&p.Events, "events", p.Events, "events, each with an identity of its own")
	flags.IntVar(&p.Duplicates, "duplicates", p.Duplicates, "copies by producers")
	flags.DurationVar(&p.Publish, "publish", p.Publish, "over how long they are published, at least")
	flags.IntVar(&p.Kills, "kills", p.Kills, "kills in an open transaction")
	flags.IntVar(&p.Freezes, "freezes", p.Freezes, "freezes beyond the session that are resumed")
	flags.BoolVar(&p.ForGood, "forgood", p.ForGood, "freeze one member for good")
	flags.IntVar(&p.BrokerRestarts, "broker-restarts", p.BrokerRestarts, "restarts of the broker, by SIGKILL")
	flags.IntVar(&p.DatabaseRestarts, "postgres-restarts", p.DatabaseRestarts, "restarts of PostgreSQL")
	flags.IntVar(&p.Changes, "changes", p.Changes, "members added, and as many removed")
	flags.Int64Var(&p.Redelivered, "redelivered", p.Redelivered, "redeliveries that there must be")
}

// size is a flag of which there may be one.
func (r *Room) size(flags *flag.FlagSet, name string, chosen *bool, usage string) {
	flags.BoolFunc(name, usage, func(value string) (err error) {
		if *chosen, err = strconv.ParseBool(value); err == nil && r.quick && r.three {
			err = errors.New("-quick and -three: choose one")
		}
		return err
	})
}

// Plants implements proof.Room. "natural" leaves the markers out, so that what
// comes twice has two effects. "settle-first" puts a plain loop in semel's place,
// which commits the offsets of what it fetched before it applies it;
// "settle-last" one that commits them afterwards. "unguarded", with -order, leaves the
// versions out, with -keys the lanes by key.
func (r *Room) Plants() []string {
	return []string{"natural", "settle-first", "settle-last", "unguarded"}
}

// Runs implements proof.Room.
func (r *Room) Runs(c proof.Choice) []proof.Run {
	p := r.Proof
	switch {
	case r.order, r.keys:
		p = Order(p, r.quick)
		p.Keys = r.keys
	case r.inbox:
		p = Inbox(p, r.quick)
	case r.quick:
		p = Quick(p)
	case r.three:
		p = Three(p)
	}
	p.Seed, p.Plant = c.Seed, c.Plant
	return []proof.Run{{Title: "kafka", Within: p.Publish + 20*time.Minute, Prove: proof.Proving(p.Run)}}
}
