//go:build unix

package charge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// member is one process of the fault test, including all its restarts.
type member struct {
	*proof.Member
	order order
	thaw  time.Time // when to continue the frozen process; zero if the process runs
}

func (r *run) membersWith(wanted role) (some []*member) {
	for _, m := range r.crew {
		if m.order.Role == wanted {
			some = append(some, m)
		}
	}
	return some
}

func (r *run) add(o order, name string) *member {
	m := &member{Member: r.Add(), order: o}
	m.Name, m.Log, m.Summary, m.Env = name, name+".log", name+".out", nil
	r.crew = append(r.crew, m)
	return m
}

// enlist starts all processes.
func (r *run) enlist() {
	traps := map[role][]trap{aConsumer: r.newTraps(consumerPoints), aSender: r.newTraps(senderPoints)}
	for _, kind := range []struct {
		role  role
		count int
	}{{theProvider, 1}, {aConsumer, r.Consumers}, {aSender, r.Senders}, {aNaive, r.Naive}} {
		for n := range kind.count {
			o := order{Role: kind.role, Number: n, Provider: r.providerOrder(), Brokers: r.Cluster.Brokers(), Database: r.Server.DSN(), Proof: r.Proof}
			for i := n; i < len(traps[kind.role]); i += kind.count {
				o.Traps = append(o.Traps, traps[kind.role][i])
			}
			r.start(r.add(o, fmt.Sprintf("%s-%d", kind.role, n+1)))
		}
	}
}

// The points that each kind of process passes.
var (
	consumerPoints = []faults.Point{faults.AfterFetch, faults.AfterMark, faults.AfterEffect, faults.BeforeCommit, faults.AfterCommit, faults.BeforeSettle, faults.AfterSettle}
	senderPoints   = []faults.Point{beforeCall, afterCall, faults.AfterMark, faults.AfterEffect, faults.BeforeCommit, faults.CommitReplyLost, faults.AfterCommit}
)

// newTraps returns the traps (kills and freezes at points) for a kind of process. The traps form as many rounds
// as the field Rounds says. Each round has a kill at each point and, at every third point, a freeze before the kill. In
// three rounds, each point gets a freeze.
func (r *run) newTraps(points []faults.Point) (all []trap) {
	for round := range r.Rounds {
		for i, p := range points {
			if (i+round)%3 == 0 {
				all = append(all, trap{p, true})
			}
			all = append(all, trap{p, false})
		}
	}
	return all
}

// start starts a process. The configuration of the process contains the traps that were not sprung yet.
func (r *run) start(m *member) {
	m.Own(Command, string(proof.Must(json.Marshal(m.order))))
	m.thaw = time.Time{}
	m.Start()
}

// tend restarts a process that a trap has killed, and continues a process that has been frozen long enough.
func (r *run) tend(of *proof.Member) {
	m := r.crew[slices.IndexFunc(r.crew, func(m *member) bool { return m.Member == of })]
	if m.thaw.IsZero() {
		before := m.Status
		proof.Check(m.Wait(syscall.WNOHANG | syscall.WUNTRACED))
		switch {
		case m.Ended && m.Status.Signaled() && m.Status.Signal() == syscall.SIGKILL && len(m.order.Traps) > 0:
			r.countSprung(m)
			r.start(m)
		case m.Ended:
			proof.Check(m.Failure())
		case m.Status.Stopped() && m.Status != before:
			r.countSprung(m)
			m.thaw = time.Now().Add(r.freeze())
		}
		return
	}
	if time.Now().Before(m.thaw) {
		return
	}
	m.thaw, m.Status = time.Time{}, 0
	r.ledger.Resumed++
	proof.Check(m.Thaw())
}

// countSprung counts the trap that a process has just sprung, and removes the trap.
func (r *run) countSprung(m *member) {
	t := m.order.Traps[0]
	m.order.Traps = m.order.Traps[1:]
	did := "killed"
	if t.Freeze {
		did = "frozen"
	}
	r.ledger.At[fmt.Sprintf("%s %s %s", m.order.Role, did, t.Point)]++
	r.Say("%s is %s at %s", m.Name, did, t.Point)
}

// The time for which the fault test waits for the last traps after all other faults.
const overtime = 20 * time.Second

// sprungAll waits until all traps are sprung, at most for overtime. The ledger reports traps that are not sprung in
// time.
func (r *run) sprungAll(ctx context.Context) {
	until := time.Now().Add(overtime)
	r.Until(ctx, func() bool {
		for _, m := range r.crew {
			if len(m.order.Traps) > 0 {
				return time.Now().After(until)
			}
		}
		return true
	})
}

// events returns the schedule of the faults, spread evenly over the time of publishing.
func (r *run) events() (all proof.Schedule) {
	all.Spread(0.05, 0.95, r.Kills, r.killOne)
	all.Spread(0.08, 0.85, r.Freezes, r.freezeOne)
	all.Spread(0.30, 0.80, r.Restarts, r.restartProvider)
	return all
}

// randomMember returns a random running process, but never the provider.
func (r *run) randomMember() *member {
	for {
		m := r.crew[r.random.IntN(len(r.crew))]
		if m.order.Role != theProvider && m.thaw.IsZero() {
			return m
		}
	}
}

// killOne kills a random process, and also a random naive process, so that naive processes are killed as often as all
// others together.
func (r *run) killOne(context.Context) {
	for _, m := range []*member{r.membersWith(aNaive)[r.random.IntN(r.Naive)], r.randomMember()} {
		m.Kill()
		r.ledger.Kills++
		r.Say("%s is killed", m.Name)
		r.start(m)
	}
}

// freezeOne freezes a sender for longer than its leases.
func (r *run) freezeOne(context.Context) {
	senders := r.membersWith(aSender)
	m := senders[r.random.IntN(len(senders))]
	if !m.thaw.IsZero() {
		return // the member is frozen already
	}
	err := m.Freeze()
	if errors.Is(err, processes.ErrEnded) {
		return // a trap of the member was faster
	}
	proof.Check(err)
	m.thaw = time.Now().Add(r.freeze())
	r.Say("%s is frozen for %v", m.Name, r.freeze())
}

// restartProvider kills the provider and starts it again. After the restart, the provider reads its log, and so knows
// every call that it answered before.
func (r *run) restartProvider(context.Context) {
	p := r.membersWith(theProvider)[0]
	p.Kill()
	r.ledger.Restarts++
	r.Say("the provider is killed")
	r.start(p)
}

// dismiss stops all processes that still run.
func (r *run) dismiss() {
	for _, m := range r.crew {
		if !m.thaw.IsZero() {
			proof.Check(m.Thaw())
		}
		if m.order.Role == theProvider {
			continue
		}
		if err := m.End(); err != nil && m.order.Role != aNaive {
			proof.Check(fmt.Errorf("%s: %w; its last log line is %q", m.Name, err, m.LastWords()))
		}
	}
	r.Say("everybody has ended")
	proof.Check(r.membersWith(theProvider)[0].End())
}
