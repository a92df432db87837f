//go:build linux

package proofkafka

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/semel-go/semel/itest/ledger"
)

// Ledger is what came out. What is lost, doubled and stuck is read from the
// database and the broker alone.
type Ledger struct {
	// Events were published, each with an identity of its own. Records are
	// what the topic holds, all copies; Expected are their identities, Applied
	// those of them in the effect log.
	Events   int `json:"events"`
	Records  int `json:"records"`
	Expected int `json:"expected"`
	Applied  int `json:"applied"`
	// Lost messages have no effect and are settled; Stuck ones are not
	// settled or were set aside; Doubled are effects beyond the first of a
	// message; Foreign are effects of what nobody published.
	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
	Stuck   int `json:"stuck"`
	Foreign int `json:"foreign"`
	// Copies are records beyond the first of an identity; Delivered are
	// deliveries that the members counted, of one that was killed those it
	// had shown; Redelivered those beyond one for each record.
	Copies      int   `json:"copies_by_producers"`
	Delivered   int64 `json:"delivered"`
	Redelivered int64 `json:"redelivered"`
	// Astray are counters unlike the log, Guards rows that only a transaction
	// that is under way may have.
	Astray int `json:"counters_unlike_log"`
	Guards int `json:"guards_left"`
	// Samples of the group's offsets were taken, Backwards how often one went
	// back; Behind is how far they are from the ends of the partitions.
	Samples   int      `json:"offset_samples"`
	Backwards int      `json:"offsets_went_back"`
	Rewinds   []string `json:"rewinds,omitempty"`
	Behind    int64    `json:"behind_the_end"`
	// Open are kills that met an open transaction, Resumed freezes beyond the
	// session time-out; Frozen says that one stood still to the end. Again are
	// members that started while a server was away, said so and ended; Unleft
	// drained and could not leave the group in time.
	Kills            int    `json:"kills"`
	Open             int    `json:"kills_in_open_transaction"`
	Resumed          int    `json:"freezes_resumed"`
	Frozen           bool   `json:"frozen_for_good"`
	Brokers          int    `json:"brokers"`
	BrokerRestarts   int    `json:"broker_restarts"`
	BrokerFreezes    int    `json:"broker_freezes"`
	DatabaseRestarts int    `json:"postgres_restarts"`
	Added            int    `json:"members_added"`
	Removed          int    `json:"members_removed"`
	Again            int    `json:"started_again"`
	Unleft           int    `json:"ended_without_leaving"`
	Planted          string `json:"planted,omitempty"`
	// Seconds from the first member's start to the last one's end.
	Seconds float64 `json:"seconds"`
}

func (r *run) audit(ctx context.Context) error {
	l := r.ledger
	l.Samples, l.Backwards, l.Rewinds = r.offsets.samples, len(r.offsets.backwards), r.offsets.backwards[:min(len(r.offsets.backwards), 10)]
	ends, err := r.ends(ctx)
	if err != nil {
		return err
	}
	committed, err := r.committed(ctx)
	if err != nil {
		return err
	}
	published, err := readTopic(ctx, r.kafka.Brokers(), ends, committed)
	if err != nil {
		return err
	}
	for partition, end := range ends {
		l.Behind += max(end-committed[partition], committed[partition]-end)
	}
	l.Records, l.Expected, l.Copies = published.records, len(published.settled), published.records-len(published.settled)
	l.Redelivered = max(l.Delivered-int64(l.Records), 0)
	return r.join(ctx, published)
}

// join joins what was published with the effect log.
func (r *run) join(ctx context.Context, published publication) error {
	l := r.ledger
	effects, err := ledger.ReadEffects(ctx, r.db.DB)
	if err != nil {
		return err
	}
	aside := 0
	// The plain loops have no such tables.
	if !r.plain() {
		err := r.db.DB.QueryRowContext(ctx, `select (select count(*) from semel_inbox), (select count(*) from semel_guard)`).Scan(&aside, &l.Guards)
		if err != nil {
			return err
		}
	}
	unsettled := 0
	for id, settled := range published.settled {
		switch {
		case effects.IDs[id]:
			l.Applied++
		case !settled:
			unsettled++
		}
	}
	l.Stuck = unsettled + aside
	l.Lost = max(l.Expected-l.Applied-l.Stuck, 0)
	l.Doubled, l.Astray, l.Foreign = effects.Doubled(), effects.Astray, len(effects.IDs)-l.Applied
	return nil
}

// committed are the group's offsets.
func (r *run) committed(ctx context.Context) (map[int32]int64, error) {
	fetched, err := r.admin.FetchOffsets(ctx, group)
	if err == nil {
		err = fetched.Error()
	}
	if err != nil {
		return nil, err
	}
	committed := map[int32]int64{}
	for partition := range int32(r.Partitions) {
		if o, known := fetched.Lookup(topic, partition); known {
			committed[partition] = o.At
		}
	}
	return committed, nil
}

// Least is what must have happened for a ledger to be a proof.
type Least struct {
	Open, Resumed, BrokerRestarts, BrokerFreezes, DatabaseRestarts, Changes int
	Frozen                                                                  bool
	Redelivered                                                             int64
}

// Wrong says what a ledger finds wrong with the consumers; nil if nothing.
func (l Ledger) Wrong() error {
	switch {
	case l.Lost != 0 || l.Doubled != 0 || l.Stuck != 0 || l.Foreign != 0 || l.Applied != l.Expected:
		return fmt.Errorf("lost %d, doubled %d, stuck %d, made up %d", l.Lost, l.Doubled, l.Stuck, l.Foreign)
	case l.Astray != 0:
		return fmt.Errorf("%d counters are not what the effect log says", l.Astray)
	case l.Guards != 0:
		return fmt.Errorf("%d guards are left of transactions that are over", l.Guards)
	case l.Backwards != 0:
		return fmt.Errorf("the group's offsets went back %d times, at first: %v", l.Backwards, l.Rewinds)
	case l.Behind != 0:
		return fmt.Errorf("the group's offsets are %d away from the ends of the partitions", l.Behind)
	}
	return nil
}

// Fault says why the ledger is no proof; nil if it is one.
func (l Ledger) Fault(least Least) error {
	if err := l.Wrong(); err != nil {
		return err
	}
	for _, few := range []struct {
		what        string
		there, want int64
	}{
		{"identities in the topic", int64(l.Expected), int64(l.Events)},
		{"kills in an open transaction", int64(l.Open), int64(least.Open)},
		{"freezes that were resumed", int64(l.Resumed), int64(least.Resumed)},
		{"restarts of a broker", int64(l.BrokerRestarts), int64(least.BrokerRestarts)},
		{"freezes of a broker", int64(l.BrokerFreezes), int64(least.BrokerFreezes)},
		{"restarts of PostgreSQL", int64(l.DatabaseRestarts), int64(least.DatabaseRestarts)},
		{"members added", int64(l.Added), int64(least.Changes)},
		{"members removed", int64(l.Removed), int64(least.Changes)},
		{"redeliveries", l.Redelivered, least.Redelivered},
		{"samples of the group's offsets", int64(l.Samples), int64(l.Seconds)},
	} {
		if few.there < few.want {
			return fmt.Errorf("only %d %s, not %d: no proof", few.there, few.what, few.want)
		}
	}
	if least.Frozen && !l.Frozen {
		return errors.New("no member stood still to the end: no proof")
	}
	return nil
}

// Write prints the ledger for people.
func (l Ledger) Write(w io.Writer) error {
	return ledger.WriteTable(w, []ledger.Line{
		{"records in the topic", l.Records},
		{"of them copies by producers", l.Copies},
		{"expected", l.Expected},
		{"applied", l.Applied},
		{"lost", l.Lost},
		{"doubled", l.Doubled},
		{"stuck", l.Stuck},
		{"redelivered, at least", l.Redelivered},
		{"counters unlike the log", l.Astray},
		{"guards left", l.Guards},
		{"samples of the group's offsets", l.Samples},
		{"offsets that went back", l.Backwards},
		{"behind the end of the log", l.Behind},
		{"kills", l.Kills},
		{"kills that hit an open transaction", l.Open},
		{"freezes beyond the session, resumed", l.Resumed},
		{"a member frozen to the end", l.Frozen},
		{"brokers", l.Brokers},
		{"restarts of a broker, by SIGKILL", l.BrokerRestarts},
		{"freezes of a broker", l.BrokerFreezes},
		{"restarts of PostgreSQL", l.DatabaseRestarts},
		{"members added", l.Added},
		{"members removed", l.Removed},
		{"starts while a server was away", l.Again},
		{"ends without leaving the group", l.Unleft},
		{"seconds", fmt.Sprintf("%.1f", l.Seconds)},
	})
}
