//go:build unix

// Package keyed is a fault test of consumers whose claims are leased keys in Redis. Processes of `semel run` call a
// provider. The test kills and freezes the processes of semel, and kills Redis. The provider counts the calls for each
// message.
package keyed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	Deliveries int `flag:"lines of all files"`
	Messages   int `flag:"messages, each with an id of its own"`
	Kills      int `flag:"how often a process is killed"`
	Freezes    int `flag:"how often a process is frozen for longer than a lease"`
	Restarts   int `flag:"how often Redis is killed and started again"`
	// EverySecond makes Redis sync its append-only file to disk once a second.
	EverySecond bool `name:"everysec" flag:"appendfsync everysec, and each restart loses the last second: completions are forgotten, and counted"`
	// Forgets makes Redis lose the last second at each restart, although Redis reports that it syncs every
	// write.
	Forgets bool
	Seed    uint64
}

const (
	members = 3
	lease   = 5 * time.Second
	// The time for which a process is frozen.
	frozen = lease + 3*time.Second
	// The number of calls in a thousand that get no answer.
	mute = 2
)

// runState is the state of a running Proof.
type runState struct {
	Proof
	*proof.Fleet
	ledger   *Ledger
	redis    *services.Redis
	provider *provider
	url      string // of the provider
	harms    []faultRecord
	// frozenMember is the frozen member, or nil. The field since is the time when the member was frozen.
	frozenMember *proof.Member
	since        time.Time
	// The time at which the fault test last checked its progress.
	looked time.Time
}

// Run runs the fault test on a server of its own and returns the ledger. Call Ledger.Wrong and Ledger.Fault to see
// whether the test succeeded.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l, tally, began := Ledger{Deliveries: p.Deliveries, leastKills: p.Kills, leastRepeated: 1}, proof.Tally{}, time.Now()
	u := &runState{Proof: p, ledger: &l, Fleet: proof.NewFleet(ctx, s, "", &tally)}
	defer u.Close()
	u.provider = &provider{mute: mute, random: rand.New(rand.NewPCG(p.Seed, 3)), calls: map[string][]call{}}
	address, end := proof.Serve(u.provider)
	defer end()
	u.url = "http://" + address + "/charge"
	u.redis = services.StartRedis(s.T, "appendonly yes", "appendfsync "+map[bool]string{true: "everysec", false: "always"}[p.EverySecond])
	u.prove(ctx)
	u.provider.mutex.Lock()
	defer u.provider.mutex.Unlock()
	l.weigh(u.provider.calls, p.Messages, lease, u.harms, p.EverySecond)
	l.Kills, l.Again, l.Seconds = tally.Kills, tally.Again, proof.Since(began)
	return l
}

func (u *runState) prove(ctx context.Context) {
	u.write()
	u.Say("%d processes, %d deliveries of %d messages", members, u.Deliveries, u.Messages)
	u.redis.Kill() // members that start now have to wait for Redis
	for _, m := range u.Members {
		u.start(m, true)
	}
	processes.Pause(ctx, time.Second)
	u.redis.Start()
	var all proof.Schedule
	all.Spread(0.04, 0.92, u.Kills, u.killOne)
	all.Spread(0.10, 0.80, u.Freezes, u.freezeOne)
	all.Spread(0.15, 0.85, u.Restarts, u.restart)
	all.Run(ctx, u.reach)
	u.reach(ctx, 1)
	u.awaitThaw(ctx)
	for _, m := range u.Members { // the members read to the ends of their files
		proof.Check(m.End())
		u.start(m, false)
	}
	for _, m := range u.Members {
		u.ledger.Unfinished += m.Finish(proof.Consumer)
	}
}

// write creates the members with their deliveries.
func (u *runState) write() {
	ids := proof.Shuffled(u.Deliveries, u.Messages, u.Seed)
	for n := range members {
		var text strings.Builder
		for i := n; i < len(ids); i += members {
			fmt.Fprintf(&text, "{\"headers\":{%q:\"m%d\"},\"body\":{\"amount\":%d}}\n", idHeader, ids[i], ids[i])
		}
		u.Write(u.Add().Name+".jsonl", text.String())
	}
}

const policy = `version: 1
stores:
  keys:
    redis: {addresses: %q}
sources:
  payments:
    file: {path: %s.jsonl, format: envelope, follow: %t}
consumers:
  ` + proof.Consumer + `:
    from: payments
    store: keys
    strategy: lease
    identity: {id: "header:` + idHeader + `"}
    retention: 1d
    lanes: none
    workers: 32
    on_conflict: halt
    on_bad_identity: halt
    inbox: {lease: %s}
    timeout: 4s
    retry: {max_attempts: 1000, initial_delay: 100ms, on_exhausted: halt}
    handler: {http: {url: %q, timeout: 3s, pass: [` + idHeader + `], headers: {` + memberHeader + `: %s}}}
`

// start starts a member. If follow is true, the member waits for further lines and does not end by itself.
func (u *runState) start(m *proof.Member, follow bool) {
	u.Write(m.Policy, fmt.Sprintf(policy, u.redis.Address(), m.Name, follow, lease, u.url, m.Name))
	m.Start()
}

// reach waits until the provider has received a call for the given share of the messages, a number from 0 to 1.
func (u *runState) reach(ctx context.Context, share float64) {
	want := int(share * float64(u.Messages))
	proof.During(fmt.Sprintf("until %d messages are called for", want), func() {
		u.Until(ctx, func() bool {
			u.look()
			return u.provider.countCalled() >= want
		})
	})
}

// killOne kills a member and restarts it. The restarted member reads its file from the beginning.
func (u *runState) killOne(context.Context) {
	m := u.Members[u.Tally.Kills%members]
	if m == u.frozenMember {
		m = u.Members[(u.Tally.Kills+1)%members]
	}
	u.harms = append(u.harms, faultRecord{member: m.Name, at: time.Now()})
	u.Kill(m, false)
	u.start(m, true)
}

// freezeOne freezes a member for longer than a lease. Everything else keeps running.
func (u *runState) freezeOne(ctx context.Context) {
	u.awaitThaw(ctx)
	m := u.Members[u.ledger.Freezes%members]
	u.frozenMember, u.since = m, time.Now()
	u.Say("%s is frozen", m.Name)
	u.ledger.Freezes++
	proof.Check(m.Freeze())
}

// look continues the frozen member when the member was frozen for the time in the constant frozen. look also notices if
// the fault test itself did not run for a while; in this case the whole machine was paused, and leases may have
// expired.
func (u *runState) look() {
	now := time.Now()
	if !u.looked.IsZero() && now.Sub(u.looked) > slack {
		u.harms = append(u.harms, faultRecord{at: u.looked})
	}
	u.looked = now
	if m := u.frozenMember; m != nil && now.Sub(u.since) >= frozen {
		u.harms, u.frozenMember = append(u.harms, faultRecord{member: m.Name, at: u.since, thaw: now}), nil
		proof.Check(m.Thaw())
	}
}

func (u *runState) awaitThaw(ctx context.Context) {
	u.Until(ctx, func() bool {
		u.look()
		return u.frozenMember == nil
	})
}

// restart kills Redis and starts it again.
func (u *runState) restart(ctx context.Context) {
	u.harms = append(u.harms, faultRecord{at: time.Now()})
	if u.EverySecond || u.Forgets {
		u.redis.KillAndForget(func() { processes.Pause(ctx, time.Second) })
	} else {
		u.redis.Kill()
	}
	processes.Pause(ctx, 500*time.Millisecond)
	u.redis.Start()
	u.ledger.Restarts++
	u.Outages++
	u.Say("restart %d of Redis", u.ledger.Restarts)
}
