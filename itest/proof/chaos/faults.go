//go:build unix

package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// fault is a kind of fault. The function do reports whether the fault had its effect.
type fault struct {
	name string
	do   func(*run, context.Context) bool
}

// faults returns the kinds of faults. A plain loop survives only those of its own process.
func (p Proof) faults() []fault {
	own := []fault{{"kill", (*run).kill}, {"freeze", (*run).freeze}, {"rebalance", (*run).rebalance}}
	if p.plain() {
		return own
	}
	return append(own,
		fault{"network_cut", (*run).cutNetwork}, fault{"commit_reply_lost", (*run).loseReplies},
		fault{"postgres_restart", (*run).restartPostgres}, fault{"postgres_read_only", (*run).readOnly},
		fault{"disk_full_reported", (*run).fillDisk},
		fault{"kafka_restart", (*run).restartKafka}, fault{"kafka_freeze", (*run).freezeKafka})
}

const (
	// The average time between two faults. A fault that takes longer delays the following faults.
	gap = 12 * time.Second
	// The part of the run after which the only failover happens. Before it, each commit waits for the standby.
	failoverAt = 0.7
	failover   = "failover"
)

// planned returns the names of the faults in their order. The faults are divided into rounds, and each round has every
// kind once, in an order that the seed determines.
func (p Proof) planned() (names []string) {
	kinds, random := p.faults(), rand.New(rand.NewPCG(p.Seed, 13))
	for range max(1, int(p.For/gap)/len(kinds)) {
		for _, i := range random.Perm(len(kinds)) {
			names = append(names, kinds[i].name)
		}
	}
	return names
}

// schedule spreads the planned faults evenly over the time of publishing.
func (r *run) schedule() (all proof.Schedule) {
	do := map[string]func(*run, context.Context) bool{}
	for _, f := range r.faults() {
		do[f.name] = f.do
	}
	names := r.planned()
	r.ledger.planned = names
	for i, name := range names {
		all = append(all, proof.Event{At: 0.04 + 0.9*float64(i)/float64(len(names)), Do: func(ctx context.Context) {
			r.Say("fault %d of %d: %s", i+1, len(names), name)
			r.count(name, do[name](r, ctx))
		}})
	}
	if !r.plain() {
		r.ledger.planned = append(names, failover)
		all = append(all, proof.Event{At: failoverAt, Do: r.failOver})
	}
	return all
}

func (r *run) count(name string, happened bool) {
	if happened {
		r.ledger.Faults[name]++
	} else {
		r.Say("%s had no effect", name)
	}
}

// wait waits while the members run.
func (r *run) wait(ctx context.Context, d time.Duration) { r.UntilTime(ctx, time.Now().Add(d)) }

// catch freezes a member, in an open transaction if one is found within some seconds.
func (r *run) catch(ctx context.Context) (m *proof.Member, open bool) {
	return r.Catch(ctx, proof.Hunt{Opening: processes.Marking(), Most: 3 * time.Second, Random: r.random})
}

func (r *run) kill(ctx context.Context) bool {
	m, open := r.catch(ctx)
	r.Kill(m, open)
	m.Start()
	return true
}

// freeze freezes a member for longer than its session timeout and its leases.
func (r *run) freeze(ctx context.Context) bool {
	m, _ := r.catch(ctx)
	r.wait(ctx, session+3*time.Second)
	proof.Check(m.Thaw())
	return true
}

// rebalance stops a member, so that its partitions move to the others, and starts it again.
func (r *run) rebalance(ctx context.Context) bool {
	m := r.Next()
	r.Patiently(ctx, outage, 0, func(context.Context) bool { return r.ready(m) })
	r.end(m)
	m.Start()
	return true
}

// The time for which an outage lasts, and the maximum time until an outage must have an effect.
const (
	short  = 4 * time.Second
	outage = 30 * time.Second
)

// cutNetwork closes all connections to PostgreSQL and refuses new ones.
func (r *run) cutNetwork(ctx context.Context) bool {
	before := r.Proxy.Counts().Refused
	r.Outages++
	r.Proxy.Refuse(true)
	r.Proxy.Sever()
	r.wait(ctx, short)
	r.Proxy.Refuse(false)
	return r.Proxy.Counts().Refused > before
}

// loseReplies cuts connections after COMMIT, before the reply reaches the member, until three replies are lost.
func (r *run) loseReplies(ctx context.Context) bool {
	r.Outages++
	rule := r.Proxy.CutReply(pgproxy.Commit)
	defer rule.Remove()
	return r.Patiently(ctx, outage, 0, func(context.Context) bool { return rule.Hits() >= 3 })
}

func (r *run) restartPostgres(ctx context.Context) bool {
	r.RestartServer(ctx)
	return true
}

// readOnly makes PostgreSQL reject writes.
func (r *run) readOnly(ctx context.Context) bool {
	set := func(to string) {
		r.Exec(ctx, `alter system set default_transaction_read_only = `+to)
		r.Exec(ctx, `select pg_reload_conf()`)
	}
	set("on")
	defer set("off")
	return r.rejects(ctx, "read-only transaction")
}

// fillDisk makes PostgreSQL reject effects with the error of a full disk. A trigger raises the error.
func (r *run) fillDisk(ctx context.Context) bool {
	disk := services.NewReportedDisk("effects")
	r.Exec(ctx, disk.Fill)
	defer r.Exec(ctx, disk.Empty)
	return r.rejects(ctx, "No space left on device")
}

// rejects waits for a while, and then until PostgreSQL has rejected statements with an error that contains the text.
func (r *run) rejects(ctx context.Context, text string) bool {
	r.Outages++
	before := r.Server.Logged(text)
	r.wait(ctx, short)
	return r.Patiently(ctx, outage, 500*time.Millisecond, func(context.Context) bool { return r.Server.Logged(text) > before })
}

// restartKafka kills the broker and starts it again.
func (r *run) restartKafka(ctx context.Context) bool {
	r.Outages++
	r.Cluster.Node(0).Kill()
	r.wait(ctx, time.Second)
	r.Cluster.Node(0).Start()
	return true
}

// freezeKafka freezes the broker for longer than the session timeout. The connections stay open, as after a network cut
// without a reset.
func (r *run) freezeKafka(ctx context.Context) bool {
	r.Outages++
	r.Cluster.Node(0).Freeze()
	r.wait(ctx, session+2*time.Second)
	r.Cluster.Node(0).Thaw()
	return true
}

func (r *run) failOver(context.Context) {
	r.Say("the primary is killed, and its standby is promoted")
	r.FailOver()
	r.count(failover, true)
}
