//go:build unix

package kafka

import (
	"context"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// events returns the faults. Each kind is distributed evenly over the time of publishing.
func (r *run) events() proof.Schedule {
	var all proof.Schedule
	spread := func(count int, do func(context.Context)) { all.Spread(0.04, 0.88, count, do) }
	spread(r.Kills, r.killOne)
	spread(r.Freezes, r.freezeOne)
	spread(r.BrokerRestarts, r.restartBroker)
	spread(r.BrokerFreezes, r.freezeBroker)
	spread(r.DatabaseRestarts, r.RestartServer)
	spread(r.Changes, r.addOne)
	spread(r.Changes, r.removeOne)
	if r.ForGood && !r.plain() { // no timeout ends the transaction of a plain loop, so all others would wait for it
		all = append(all, proof.Event{At: 0.45, Do: r.freezeForGood})
	}
	return all
}

func (r *run) killOne(ctx context.Context) {
	m := r.catch(ctx)
	r.Kill(m, true)
	m.Start()
}

// beyond is by how much a freeze of a member exceeds its session timeout.
const beyond = 3 * time.Second

// mostFreezes is the maximum number of freezes by freezeOne until the server rejects a write
// because of its token.
const mostFreezes = 5

// freezeOne freezes a member for longer than its session timeout. If writes must be rejected
// because of their tokens, it repeats this until enough were. A member that continues may find
// its claim lost before it writes, which proves nothing about the write.
func (r *run) freezeOne(ctx context.Context) {
	r.share++
	due := (r.Refused*r.share + r.Freezes - 1) / r.Freezes
	for range mostFreezes {
		before := r.refusals()
		r.freezeOnce(ctx)
		if due == 0 || before >= due {
			return
		}
		if r.Patiently(ctx, 2*time.Second, 0, func(context.Context) bool { return r.refusals() >= due }) {
			return
		}
		r.Say("%d of %d writes were refused by their token: another one is frozen", r.refusals(), due)
	} // the ledger reports their number
}

// freezeOnce freezes a member for longer than its session timeout. Its transaction holds row
// locks that others wait for while they get more and more deliveries. One of these others is
// killed before the frozen member continues.
func (r *run) freezeOnce(ctx context.Context) {
	m := r.catch(ctx)
	r.Say("%s is frozen for %v", m.Name, r.Session+beyond)
	r.UntilTime(ctx, time.Now().Add(r.Session+beyond))
	other := r.Next()
	if other == m {
		other = r.Next()
	}
	r.Say("%s, which waited for it, was delivered %d", other.Name, other.Shown())
	r.Kill(other, false)
	proof.Check(m.Thaw())
	r.ledger.Resumed++
	other.Start()
}

// freezeForGood freezes a member in an open transaction and adds a member in its place. The
// server ends the transaction after its idle timeout, while the others continue.
func (r *run) freezeForGood(ctx context.Context) {
	m := r.catch(ctx)
	frozen := time.Now()
	r.Remove(m)
	r.frozen = m
	r.Say("%s is frozen for good", m.Name)
	if r.add(); r.Inbox { // its transaction may not have written, and is then not visible
		return
	}
	r.Patiently(ctx, 2*idle, 50*time.Millisecond, func(ctx context.Context) bool {
		open, err := r.Activity.Open(ctx, m.Name)
		return err == nil && !open // the server may be down
	})
	r.ledger.FrozenSeconds = proof.Since(frozen)
	r.Say("the server ended its transaction after %.1f s", r.ledger.FrozenSeconds)
}

// restartBroker also kills a member while the broker is down. This member cannot commit the
// offsets of messages that it applies in the meantime.
func (r *run) restartBroker(ctx context.Context) {
	n := r.broker(ctx)
	m := r.Members[r.random.IntN(len(r.Members))]
	r.Cluster.Node(n).Kill()
	processes.Pause(ctx, 500*time.Millisecond)
	r.Kill(m, false)
	if r.Brokers > 1 { // of three brokers, one may be down for any time
		m.Start()
		r.moreEffects(ctx, "after a broker was killed")
	}
	r.Cluster.Node(n).Start()
	r.ledger.BrokerRestarts++
	r.Outages++
	r.Say("restart %d of %d of broker %d; %s was killed meanwhile", r.ledger.BrokerRestarts, r.BrokerRestarts, n+1, m.Name)
	if r.Brokers == 1 {
		m.Start()
	}
}

// outlast is longer than the brokers wait for one of them.
const outlast = 12 * time.Second

// freezeBroker freezes a broker until the others have taken over its partitions. Clients that
// wait for its answers must detect that by themselves.
func (r *run) freezeBroker(ctx context.Context) {
	n := r.broker(ctx)
	until := time.Now().Add(outlast)
	r.Cluster.Node(n).Freeze()
	r.Say("broker %d is frozen for %v", n+1, outlast)
	r.moreEffects(ctx, "while a broker is frozen")
	r.UntilTime(ctx, until)
	r.Cluster.Node(n).Thaw()
	r.ledger.BrokerFreezes++
}

func (r *run) addOne(context.Context) {
	r.add()
	r.ledger.Added++
	r.Say("%s is added", r.Members[len(r.Members)-1].Name)
}

// removeOne ends the oldest member, which drains. The member must have started completely:
// during its start it may be about to report that a server is down.
func (r *run) removeOne(ctx context.Context) {
	m := r.Members[0]
	r.Until(ctx, func() bool { return r.plain() || m.Shown() > 0 })
	r.end(m)
	r.Remove(m)
	r.ledger.Removed++
	r.Say("%s is removed", m.Name)
}
