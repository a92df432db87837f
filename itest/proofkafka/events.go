//go:build linux

package proofkafka

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/processes"
)

// event is what happens when so much of the time of publishing is over.
type event struct {
	at float64
	do func(context.Context) error
}

// events are spread evenly, each kind for itself.
func (r *run) events() []event {
	var all []event
	spread := func(count int, do func(ctx context.Context) error) {
		for n := range count {
			all = append(all, event{0.04 + 0.84*(float64(n)+0.5)/float64(count), do})
		}
	}
	spread(r.Kills, r.killOne)
	spread(r.Freezes, r.freezeOne)
	spread(r.BrokerRestarts, r.restartBroker)
	spread(r.BrokerFreezes, r.freezeBroker)
	spread(r.DatabaseRestarts, r.restartDatabase)
	spread(r.Changes, r.addOne)
	spread(r.Changes, r.removeOne)
	if r.ForGood {
		all = append(all, event{0.45, r.freezeForGood})
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}

// happen has everything happen, one after the other.
func (r *run) happen(ctx context.Context) error {
	began := time.Now()
	for _, e := range r.events() {
		due := began.Add(time.Duration(e.at * float64(r.Publish)))
		if err := r.tendUntil(ctx, func() bool { return !time.Now().Before(due) }); err != nil {
			return err
		}
		if err := e.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) killOne(ctx context.Context) error {
	m, err := r.catch(ctx)
	if err != nil {
		return err
	}
	if err := m.kill(); err != nil {
		return err
	}
	r.ledger.Kills++
	r.ledger.Open++
	r.say("kill %d of %d: %s, in an open transaction", r.ledger.Open, r.Kills, m.name)
	return m.start()
}

// beyond is how much longer than its session a member is frozen.
const beyond = 3 * time.Second

// freezeOne freezes a member beyond its session. Its transaction holds rows
// that the others wait for, while they are delivered more and more: one of them
// is killed before it goes on.
func (r *run) freezeOne(ctx context.Context) error {
	m, err := r.catch(ctx)
	if err != nil {
		return err
	}
	r.say("%s is frozen for %v", m.name, r.Session+beyond)
	if err := r.tendFor(ctx, r.Session+beyond); err != nil {
		return err
	}
	r.turn++
	other := r.members[r.turn%len(r.members)]
	if other == m {
		r.turn++
		other = r.members[r.turn%len(r.members)]
	}
	if err := other.kill(); err != nil {
		return err
	}
	r.ledger.Kills++
	r.say("%s, which waited for it, is killed; it was delivered %d", other.name, other.terminal.deliveries())
	if err := m.process.Thaw(); err != nil {
		return err
	}
	r.ledger.Resumed++
	return other.start()
}

// freezeForGood freezes a member in a transaction that stays open, and adds
// one in its place. The server ends the transaction after a while.
func (r *run) freezeForGood(ctx context.Context) error {
	m, err := r.catch(ctx)
	if err != nil {
		return err
	}
	r.members = slices.DeleteFunc(r.members, func(other *member) bool { return other == m })
	r.frozen = m
	r.say("%s is frozen for good", m.name)
	return r.add()
}

// restartBroker also kills a member when the broker is away: what it applied
// meanwhile it could not settle.
func (r *run) restartBroker(ctx context.Context) error {
	m := r.members[r.random.IntN(len(r.members))]
	broker := r.kafka.Node(r.ledger.BrokerRestarts % r.Brokers)
	broker.Kill()
	processes.Pause(ctx, 500*time.Millisecond)
	if err := m.kill(); err != nil {
		return err
	}
	r.ledger.Kills++
	broker.Start()
	r.ledger.BrokerRestarts++
	r.say("restart %d of %d of the broker; %s was killed meanwhile", r.ledger.BrokerRestarts, r.BrokerRestarts, m.name)
	return m.start()
}

// outlast is longer than the brokers wait for one of them.
const outlast = 10 * time.Second

// freezeBroker freezes a broker until the others have taken its partitions
// over. Those who wait for its answer find out by themselves.
func (r *run) freezeBroker(ctx context.Context) error {
	n := (r.ledger.BrokerFreezes + 1) % r.Brokers
	broker := r.kafka.Node(n)
	broker.Freeze()
	r.say("broker %d is frozen for %v", n+1, outlast)
	err := r.tendFor(ctx, outlast)
	broker.Thaw()
	r.ledger.BrokerFreezes++
	return err
}

func (r *run) restartDatabase(context.Context) error {
	how := "SIGKILL"
	if r.ledger.DatabaseRestarts%2 == 0 {
		r.server.Kill()
	} else {
		how = "stop"
		r.server.Stop()
	}
	r.server.Start()
	r.ledger.DatabaseRestarts++
	r.say("restart %d of %d of PostgreSQL, by %s", r.ledger.DatabaseRestarts, r.DatabaseRestarts, how)
	return nil
}

func (r *run) addOne(context.Context) error {
	if err := r.add(); err != nil {
		return err
	}
	r.ledger.Added++
	r.say("%s is added", r.members[len(r.members)-1].name)
	return nil
}

// removeOne ends the oldest member, which drains. It must be at work: one that
// starts may just be about to say that a server is away.
func (r *run) removeOne(ctx context.Context) error {
	m := r.members[0]
	atWork := func() bool { return r.plain() || m.terminal.deliveries() > 0 }
	if err := r.tendUntil(ctx, atWork); err != nil {
		return err
	}
	if err := r.end(m); err != nil {
		return err
	}
	r.members = r.members[1:]
	r.ledger.Delivered += m.delivered
	r.ledger.Removed++
	r.say("%s is removed", m.name)
	return nil
}
