//go:build unix

package kafka

import (
	"flag"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

// Room registers this fault test with the command itest/cmd/proof, in all variants.
type Room struct {
	Proof
	quick, three, inbox, order, keys bool
}

// Flags implements proof.Room.
func (r *Room) Flags(flags *flag.FlagSet) {
	r.Proof = Full()
	proof.Payloads(flags, &r.Webhooks)
	proof.Sizes(flags, &r.Proof)
	flags.BoolVar(&r.quick, "quick", false, "use the sizes of the short form (a minute); overrides other flags")
	flags.BoolVar(&r.three, "three", false, "run three brokers; kill and freeze the group's coordinator; overrides other flags; with -quick in a minute")
	flags.BoolVar(&r.inbox, "inbox", false, "store messages in the inbox first, with handlers that fail now and then; with -quick in a minute")
	flags.BoolVar(&r.order, "order", false, "versions of streams in lanes by key; some come shuffled, late or never; with -quick in a minute")
	flags.BoolVar(&r.keys, "keys", false, "order of keys, with messages stored in the inbox first and handlers that fail now and then; with -quick in a minute")
}

// Plants implements proof.Room. The fault "natural" leaves out the markers, so that a repeated message has two effects.
// The fault "settle-first" replaces semel by a plain loop that commits the offsets before it applies the messages. The
// fault "settle-last" replaces semel by a plain loop that commits the offsets afterwards. The fault "unguarded" leaves
// out the versions with -order, and the lanes by key with -keys.
func (r *Room) Plants() []string {
	return []string{"natural", proof.SettleFirst, proof.SettleLast, "unguarded"}
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
	case r.three:
		p = Three(p, r.quick)
	case r.quick:
		p = Quick(p)
	}
	p.Seed, p.Plant = c.Seed, c.Plant
	return []proof.Run{{Title: "kafka", Within: p.Publish + 20*time.Minute, Prove: proof.Proving(p.Run)}}
}
