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
	if r.ForGood && !r.plain() { // A plain loop has no timeout for its transaction, so its locks would block all other members forever.
		all = append(all, proof.Event{At: 0.45, Do: r.freezeForGood})
	}
	return all
}

func (r *run) killOne(ctx context.Context) {
	m := r.catch(ctx)
	r.Kill(m, true)
	m.Start()
}

// A member is frozen for its session timeout plus this time.
const beyond = 3 * time.Second

// The maximum number of freezes by freezeOne until the server has rejected a write because of its token.
const mostFreezes = 5

// freezeOne freezes a member for longer than its session timeout. If the fault test needs writes that are rejected
// because of their token, freezeOne freezes members until enough writes were rejected. One freeze may not be enough,
// because a member that continues may notice the lost claim before it writes.
func (r *run) freezeOne(ctx context.Context) {
	r.share++
	due := (r.Refused*r.share + r.Freezes - 1) / r.Freezes
	for range mostFreezes {
		before := r.countRefusals()
		r.freezeOnce(ctx)
		if due == 0 || before >= due {
			return
		}
		if r.Patiently(ctx, 2*time.Second, 0, func(context.Context) bool { return r.countRefusals() >= due }) {
			return
		}
		r.Say("%d of %d writes were refused by their token: another one is frozen", r.countRefusals(), due)
	} // the ledger reports the number of rejected writes
}

// freezeOnce freezes a member for longer than its session timeout. The member's transaction holds row locks. Other
// members get the frozen member's partitions and wait for the row locks. Before the frozen member continues, freezeOnce
// kills one of the members that wait.
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

// freezeForGood freezes a member in an open transaction and adds another member. The server ends the frozen transaction
// after its idle timeout. The other members continue to work while the member is frozen.
func (r *run) freezeForGood(ctx context.Context) {
	m := r.catch(ctx)
	frozen := time.Now()
	r.Remove(m)
	r.frozen = m
	r.Say("%s is frozen for good", m.Name)
	if r.add(); r.Inbox { // a transaction that has not written anything is not visible
		return
	}
	r.Patiently(ctx, 2*idle, 50*time.Millisecond, func(ctx context.Context) bool {
		open, err := r.Activity.Open(ctx, m.Name)
		return err == nil && !open // the server may be down
	})
	r.ledger.FrozenSeconds = proof.Since(frozen)
	r.Say("the server ended its transaction after %.1f s", r.ledger.FrozenSeconds)
}

// restartBroker kills a broker and starts it again. While the broker is down, restartBroker also kills a member. The
// killed member applied messages whose offsets it could not commit.
func (r *run) restartBroker(ctx context.Context) {
	n := r.broker(ctx)
	m := r.Members[r.random.IntN(len(r.Members))]
	r.Cluster.Node(n).Kill()
	processes.Pause(ctx, 500*time.Millisecond)
	r.Kill(m, false)
	if r.Brokers > 1 { // with three brokers, one broker may stay down for longer
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

// A time that is longer than the other brokers wait for a broker that does not answer.
const outlast = 12 * time.Second

// freezeBroker freezes a broker until the other brokers have taken over its partitions. Clients must notice
// by themselves that the frozen broker does not answer.
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

// removeOne stops the oldest member, which drains before it ends. removeOne waits until the member is ready,
// because a member that is still starting may end with an error about a server that is down.
func (r *run) removeOne(ctx context.Context) {
	m := r.Members[0]
	r.Until(ctx, func() bool { return r.plain() || m.Shown() > 0 })
	r.end(m)
	r.Remove(m)
	r.ledger.Removed++
	r.Say("%s is removed", m.Name)
}
