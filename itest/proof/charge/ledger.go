//go:build unix

package charge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/provider"
)

// Ledger counts payments, calls to the provider, charges and bookings in one run of the fault test. The numbers of
// lost, doubled and stuck payments come only from the provider's log, the topic and the database.
type Ledger struct {
	// Payments is the number of published payments, Records the number of records in the
	// topic, and Copies the number of records beyond the first of a payment.
	Payments int `json:"payments"`
	Records  int `json:"records"`
	Copies   int `json:"copies_by_producers"`
	// Calls is the number of the senders' calls in the provider's log. Balance counts charges.
	Calls int `json:"calls"`
	ledger.Balance
	// Unbooked is the number of payments without a booking. Overbooked is the number of bookings beyond the first
	// booking of a payment.
	Unbooked   int `json:"not_booked"`
	Overbooked int `json:"booked_twice"`
	// Unknown is the number of payments with a call whose outcome the caller could not know: the answer was lost or
	// unclear, or the caller was killed and another process called again. The next fields say how the payments with an
	// unknown outcome were resolved: ByKey by a repeated call with the same key, ByAsking by a query after the window,
	// ByPerson by a person. Unresolved is the number of the remaining payments.
	Unknown    int `json:"unknown_outcomes"`
	ByKey      int `json:"resolved_by_key"`
	ByAsking   int `json:"resolved_by_asking"`
	ByPerson   int `json:"waited_for_a_person"`
	Unresolved int `json:"unresolved"`
	// NaiveDoubled is the number of charges of the naive consumer beyond the first charge of a payment.
	// NaiveLost is the number of payments that the naive consumer did not charge.
	NaiveDoubled int `json:"naive_doubled"`
	NaiveLost    int `json:"naive_lost"`
	proof.Offsets
	proof.Accord
	// Kills counts random kills. The field At counts kills and freezes by point. Resumed counts frozen processes that
	// continued. Restarts counts restarts of the provider.
	Kills    int            `json:"kills_at_random"`
	At       map[string]int `json:"at_named_points"`
	Resumed  int            `json:"freezes_resumed"`
	Restarts int            `json:"provider_restarts"`
	Seconds  proof.Seconds  `json:"seconds"`
	Planted  string         `json:"planted,omitempty"`
	decided  map[string]bool
	least    Proof
}

// history has the calls for one reference, from the provider's log.
type history struct {
	calls, charges int
	doubtful       bool // at least one call had an outcome that its caller could not know
	answered       bool // the last call got a clear answer
	silent         bool // at least one call got no answer
	asked          bool
}

// readHistories reads the log for the senders and for the naive consumer.
func readHistories(log string) (senders, naive map[string]*history, err error) {
	senders, naive = map[string]*history{}, map[string]*history{}
	err = provider.Entries(log, func(e provider.Entry) {
		of, name := senders, e.Reference
		if rest, is := strings.CutPrefix(name, naivePrefix); is {
			of, name = naive, rest
		}
		if of[name] == nil {
			of[name] = &history{}
		}
		h := of[name]
		switch e.Kind {
		case provider.Called:
			h.calls++
			if e.Status == 0 {
				h.doubtful = h.doubtful || h.answered || e.Fate.Doubtful()
				h.silent = h.silent || e.Fate == provider.Silent || e.Fate == provider.ChargedSilent
				h.answered = e.Fate == provider.Well
			}
		case provider.Charged:
			h.charges++
		case provider.Asked:
			h.asked = true
		}
	})
	return senders, naive, err
}

// audit computes the ledger.
func (r *run) audit(ctx context.Context) {
	l := r.ledger
	l.Offsets = r.Watch.Audit(ctx)
	sent := map[string]bool{}
	r.Kafka.Each(topic, func(record *kgo.Record) {
		l.Records++
		sent[topics.Header(record, "ce_id")] = true
	})
	l.Copies = l.Records - len(sent)
	senders, naive, err := readHistories(r.log())
	proof.Check(err)
	l.Balance = ledger.Weigh(chargesOf(senders), maps.Keys(sent), r.Count(ctx, "select count(*) from semel_inbox where state <> 'COMPLETED'"))
	without := ledger.Weigh(chargesOf(naive), maps.Keys(sent), 0)
	l.NaiveDoubled, l.NaiveLost = without.Doubled, without.Lost
	l.resolve(senders)
	booked := r.Count(ctx, "select count(distinct delivery) from effects")
	l.Unbooked, l.Overbooked = len(sent)-booked, r.Count(ctx, "select count(*) from effects")-booked
	l.Accord.Hear(ctx, r.Activity.DB)
}

func chargesOf(all map[string]*history) map[string]int {
	effects := map[string]int{}
	for reference, h := range all {
		if h.charges > 0 {
			effects[reference] = h.charges
		}
	}
	return effects
}

// resolve counts how each unknown outcome was resolved.
func (l *Ledger) resolve(senders map[string]*history) {
	for reference, h := range senders {
		l.Calls += h.calls
		if !h.doubtful {
			continue
		}
		l.Unknown++
		switch {
		case l.decided[reference]:
			l.ByPerson++
		case h.asked:
			l.ByAsking++
		case h.answered && h.charges > 0:
			l.ByKey++
		default:
			l.Unresolved++
		}
	}
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	return cmp.Or(l.Balance.Wrong(), l.Offsets.Wrong(), l.Accord.Wrong(),
		ledger.None(l.Unbooked, "payments are not booked"), ledger.None(l.Overbooked, "payments are booked twice"), ledger.None(l.Unresolved, "outcomes are unresolved"))
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	least := l.least
	err := cmp.Or(
		l.Wrong(),
		ledger.AtLeast(l.Payments, l.Expected, "payments in the topic"),
		ledger.AtLeast(least.Duplicates, l.Copies, "copies in the topic"),
		ledger.AtLeast(l.Payments/10, l.Unknown, "unknown outcomes"),
		ledger.AtLeast(l.Payments/20, l.ByKey, "outcomes resolved by key"),
		ledger.AtLeast(3, l.ByAsking, "outcomes resolved by asking"),
		ledger.AtLeast(l.Payments, int(l.Intents), "intents compared with their causes"),
		ledger.AtLeast(3, l.ByPerson, "outcomes that waited for a person"),
		ledger.AtLeast(1, l.NaiveDoubled, "charges that a naive consumer doubles"),
		ledger.AtLeast(1, l.NaiveLost, "charges that a naive consumer loses"),
		ledger.AtLeast(2*least.Kills, l.Kills, "kills at random"),
		ledger.AtLeast(least.Freezes, l.Resumed, "freezes that were resumed"),
		ledger.AtLeast(least.Restarts, l.Restarts, "restarts of the provider"),
		ledger.AtLeast(int(l.Seconds), l.Samples, "samples of the group's offsets"),
	)
	if err != nil || least.Rounds == 0 {
		return err
	}
	return cmp.Or(l.checkKilledEverywhere(aConsumer, consumerPoints), l.checkKilledEverywhere(aSender, senderPoints))
}

// checkKilledEverywhere returns an error that names the points at which no process was killed.
func (l Ledger) checkKilledEverywhere(is role, points []faults.Point) error {
	for _, p := range points {
		if l.At[fmt.Sprintf("%s killed %s", is, p)] == 0 {
			return fmt.Errorf("no %s was killed at %s: no proof", is, p)
		}
	}
	return nil
}
