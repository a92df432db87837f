//go:build unix

package kafka

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// events returns the faults. Each kind is distributed evenly over the time of publishing.
func (r *run) events() proof.Schedule {
	var all proof.Schedule
	spread := func(count int, do func(context.Context) error) { all.Spread(0.04, 0.88, count, do) }
	spread(r.Kills, r.killOne)
	spread(r.Freezes, r.freezeOne)
	spread(r.BrokerRestarts, r.restartBroker)
	spread(r.BrokerFreezes, r.freezeBroker)
	spread(r.DatabaseRestarts, r.RestartServer)
	spread(r.Changes, r.addOne)
	spread(r.Changes, r.removeOne)
	if r.ForGood && !r.plain() { // A plain loop has no timeout for its transaction, so its locks would block all other members for ever.
		all = append(all, proof.Event{At: 0.45, Do: r.freezeForGood})
	}
	return all
}

func (r *run) killOne(ctx context.Context) error {
	m, err := r.catch(ctx)
	if err != nil {
		return err
	}
	if err := r.Kill(m, true); err != nil {
		return err
	}
	return m.Start()
}

// beyond is how much longer than its session timeout a member is frozen.
const beyond = 3 * time.Second

// mostFreezes is how often freezeOne freezes a member at most, until the server has rejected a write because
// of its token.
const mostFreezes = 5

// freezeOne freezes a member for longer than its session timeout. If the proof needs writes that are rejected
// because of their token, freezeOne freezes again until there are enough. One freeze may not be enough: a
// member that continues may notice the lost claim before it writes.
func (r *run) freezeOne(ctx context.Context) error {
	r.share++
	due := (r.Refused*r.share + r.Freezes - 1) / r.Freezes
	for range mostFreezes {
		before := r.refusals()
		if err := r.freezeOnce(ctx); err != nil {
			return err
		}
		if due == 0 || before >= due {
			return nil
		}
		refused := func(context.Context) (bool, error) { return r.refusals() >= due, nil }
		if is, err := r.Patiently(ctx, 2*time.Second, 0, refused); err != nil || is {
			return err
		}
		r.Say("%d of %d writes were refused by their token: another one is frozen", r.refusals(), due)
	}
	return nil // no error here: the ledger reports the number of rejected writes
}

// freezeOnce freezes a member for longer than its session timeout. The member's transaction holds row locks.
// Other members get its partitions and wait for these locks. freezeOnce kills one of these others before the
// frozen member continues.
func (r *run) freezeOnce(ctx context.Context) error {
	m, err := r.catch(ctx)
	if err != nil {
		return err
	}
	r.Say("%s is frozen for %v", m.Name, r.Session+beyond)
	if err := r.UntilTime(ctx, time.Now().Add(r.Session+beyond)); err != nil {
		return err
	}
	other := r.Next()
	if other == m {
		other = r.Next()
	}
	r.Say("%s, which waited for it, was delivered %d", other.Name, other.Shown())
	if err := r.Kill(other, false); err != nil {
		return err
	}
	if err := m.Thaw(); err != nil {
		return err
	}
	r.ledger.Resumed++
	return other.Start()
}

// freezeForGood freezes a member in an open transaction and adds another member. The server ends the frozen
// transaction after its idle timeout. Meanwhile the other members continue.
func (r *run) freezeForGood(ctx context.Context) error {
	m, err := r.catch(ctx)
	if err != nil {
		return err
	}
	frozen := time.Now()
	r.Remove(m)
	r.frozen = m
	r.Say("%s is frozen for good", m.Name)
	// with the inbox, a transaction that has not written anything yet is not visible in the server
	if err := r.add(); err != nil || r.Inbox {
		return err
	}
	_, err = r.Patiently(ctx, 2*idle, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		open, err := r.Activity.Open(ctx, m.Name)
		return err == nil && !open, nil // an error may mean that the server is down
	})
	r.ledger.FrozenSeconds = proof.Seconds(time.Since(frozen).Seconds())
	r.Say("the server ended its transaction after %.1f s", r.ledger.FrozenSeconds)
	return err
}

// restartBroker kills a broker and starts it again. While the broker is down, restartBroker also kills a
// member. This member applies messages whose offsets it cannot commit.
func (r *run) restartBroker(ctx context.Context) error {
	n, err := r.broker(ctx)
	if err != nil {
		return err
	}
	m := r.Members[r.random.IntN(len(r.Members))]
	r.Cluster.Node(n).Kill()
	processes.Pause(ctx, 500*time.Millisecond)
	if err := r.Kill(m, false); err != nil {
		return err
	}
	if r.Brokers > 1 { // with three brokers, one broker may stay down for longer
		err = errors.Join(m.Start(), r.moreEffects(ctx, "after a broker was killed"))
	}
	r.Cluster.Node(n).Start()
	r.ledger.BrokerRestarts++
	r.Outages++
	r.Say("restart %d of %d of broker %d; %s was killed meanwhile", r.ledger.BrokerRestarts, r.BrokerRestarts, n+1, m.Name)
	if r.Brokers == 1 {
		err = m.Start()
	}
	return err
}

// outlast is longer than the other brokers wait for a broker that does not answer.
const outlast = 12 * time.Second

// freezeBroker freezes a broker until the other brokers have taken over its partitions. Clients must notice
// by themselves that the frozen broker does not answer.
func (r *run) freezeBroker(ctx context.Context) error {
	n, err := r.broker(ctx)
	if err != nil {
		return err
	}
	until := time.Now().Add(outlast)
	r.Cluster.Node(n).Freeze()
	r.Say("broker %d is frozen for %v", n+1, outlast)
	err = cmp.Or(r.moreEffects(ctx, "while a broker is frozen"), r.UntilTime(ctx, until))
	r.Cluster.Node(n).Thaw()
	r.ledger.BrokerFreezes++
	return err
}

func (r *run) addOne(context.Context) error {
	if err := r.add(); err != nil {
		return err
	}
	r.ledger.Added++
	r.Say("%s is added", r.Members[len(r.Members)-1].Name)
	return nil
}

// removeOne stops the oldest member, which drains before it ends. removeOne waits until the member is ready,
// because a member that is still starting may end with an error about a server that is down.
func (r *run) removeOne(ctx context.Context) error {
	m := r.Members[0]
	atWork := func() (bool, error) { return r.plain() || m.Shown() > 0, nil }
	if err := r.Until(ctx, atWork); err != nil {
		return err
	}
	if err := r.end(m); err != nil {
		return err
	}
	r.Remove(m)
	r.ledger.Removed++
	r.Say("%s is removed", m.Name)
	return nil
}
