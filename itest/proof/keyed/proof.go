//go:build unix

// Package keyed proves what consumers do whose claims are leased keys in Redis. Processes of `semel run` call
// a provider. The proof kills and freezes these processes, and kills Redis. The provider counts the calls for
// each message.
package keyed

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is one run.
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
	// frozen is how long a process is frozen.
	frozen = lease + 3*time.Second
	// mute is how many of a thousand calls get no answer.
	mute = 2
)

// under is a running Proof.
type under struct {
	Proof
	*proof.Fleet
	ledger   *Ledger
	redis    *services.Redis
	provider *provider
	harms    []harm
	// frozen is the frozen member, or nil. since is when it was frozen.
	frozen *proof.Member
	since  time.Time
	// looked is when the proof last checked its progress.
	looked time.Time
	tally  proof.Tally
	began  time.Time
}

// Run runs the proof on a private server and returns the ledger. Call Ledger.Fault to see whether the proof
// succeeded. An error of Run means that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	l := Ledger{Deliveries: p.Deliveries, leastKills: p.Kills, leastRepeated: 1}
	u := &under{Proof: p, ledger: &l, began: time.Now()}
	var err error
	if u.Fleet, err = proof.NewFleet(ctx, s, "", &u.tally); err != nil {
		return l, err
	}
	defer u.Close()
	if u.provider, err = listen(mute, p.Seed); err != nil {
		return l, err
	}
	defer u.provider.close()
	u.redis = services.StartRedis(s.T, "appendonly yes", "appendfsync "+map[bool]string{true: "everysec", false: "always"}[p.EverySecond])
	if err := u.prove(ctx); err != nil {
		return l, err
	}
	u.provider.mutex.Lock()
	defer u.provider.mutex.Unlock()
	l.weigh(u.provider.calls, p.Messages, lease, u.harms, p.EverySecond)
	l.Kills, l.Again, l.Seconds = u.tally.Kills, u.tally.Again, proof.Seconds(time.Since(u.began).Seconds())
	return l, nil
}

func (u *under) prove(ctx context.Context) error {
	if err := u.write(); err != nil {
		return err
	}
	u.Say("%d processes, %d deliveries of %d messages", members, u.Deliveries, u.Messages)
	u.redis.Kill() // members that start now have to wait for Redis
	for _, m := range u.Members {
		if err := u.start(m, true); err != nil {
			return err
		}
	}
	processes.Pause(ctx, time.Second)
	u.redis.Start()
	var all proof.Schedule
	all.Spread(0.04, 0.92, u.Kills, u.killOne)
	all.Spread(0.10, 0.80, u.Freezes, u.freezeOne)
	all.Spread(0.15, 0.85, u.Restarts, u.restart)
	if err := all.Run(ctx, u.reach); err != nil {
		return err
	}
	if err := u.reach(ctx, 1); err != nil {
		return err
	}
	if err := u.awaitThaw(ctx); err != nil {
		return err
	}
	return u.finish()
}

// write creates the members and the file of each. A file has each message at least once, in an order that the
// seed determines.
func (u *under) write() error {
	r := rand.New(rand.NewPCG(u.Seed, 1))
	ids := make([]int, u.Deliveries)
	for i := range ids {
		if ids[i] = i; i >= u.Messages {
			ids[i] = r.IntN(u.Messages)
		}
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for n := range members {
		f, err := os.Create(u.Add().Path(input(n + 1)))
		if err != nil {
			return err
		}
		out := bufio.NewWriter(f)
		for i := n; i < len(ids); i += members {
			fmt.Fprintf(out, "{\"headers\":{%q:\"m%d\"},\"body\":{\"amount\":%d}}\n", idHeader, ids[i], ids[i])
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func input(n int) string { return fmt.Sprintf("member-%d.jsonl", n) }

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

// start starts a member. With follow the member waits for further lines and does not end by itself.
func (u *under) start(m *proof.Member, follow bool) error {
	text := fmt.Sprintf(policy, u.redis.Address(), m.Name, follow, lease, u.provider.url, m.Name)
	if err := os.WriteFile(m.Path(m.Policy), []byte(text), 0o644); err != nil {
		return err
	}
	return m.Start()
}

// reach waits until the provider has received a call for this fraction of the messages.
func (u *under) reach(ctx context.Context, share float64) error {
	err := u.Until(ctx, func() (bool, error) {
		return u.provider.called() >= int(share*float64(u.Messages)), u.look()
	})
	if err != nil {
		return fmt.Errorf("%d of %d messages were called for: %w", u.provider.called(), u.Messages, err)
	}
	return nil
}

// killOne kills a member and restarts it. The restarted member reads its file from the beginning.
func (u *under) killOne(context.Context) error {
	m := u.Members[u.tally.Kills%members]
	if m == u.frozen {
		m = u.Members[(u.tally.Kills+1)%members]
	}
	u.harms = append(u.harms, harm{member: m.Name, at: time.Now()})
	if err := u.Kill(m, false); err != nil {
		return err
	}
	return u.start(m, true)
}

// freezeOne freezes a member for longer than a lease. Everything else keeps running.
func (u *under) freezeOne(ctx context.Context) error {
	if err := u.awaitThaw(ctx); err != nil {
		return err
	}
	m := u.Members[u.ledger.Freezes%members]
	u.frozen, u.since = m, time.Now()
	u.Say("%s is frozen", m.Name)
	u.ledger.Freezes++
	return m.Freeze()
}

// look continues the frozen member when its time is up. look also notices when the proof itself did not run
// for a while. The whole machine was then paused, and leases may have expired.
func (u *under) look() error {
	now := time.Now()
	if !u.looked.IsZero() && now.Sub(u.looked) > slack {
		u.harms = append(u.harms, harm{at: u.looked})
	}
	u.looked = now
	if u.frozen == nil || now.Sub(u.since) < frozen {
		return nil
	}
	m := u.frozen
	u.harms, u.frozen = append(u.harms, harm{member: m.Name, at: u.since, thaw: now}), nil
	return m.Thaw()
}

func (u *under) awaitThaw(ctx context.Context) error {
	return u.Until(ctx, func() (bool, error) { return u.frozen == nil, u.look() })
}

// restart kills Redis and starts it again.
func (u *under) restart(ctx context.Context) error {
	u.harms = append(u.harms, harm{at: time.Now()})
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
	return nil
}

// finish lets the members read their files to the end.
func (u *under) finish() error {
	for _, m := range u.Members {
		if err := m.End(); err != nil {
			return err
		}
		if err := u.start(m, false); err != nil {
			return err
		}
	}
	for _, m := range u.Members {
		if err := m.Wait(0); err != nil {
			return err
		}
		if code := m.Status.ExitStatus(); code != 0 {
			return fmt.Errorf("the last run of %s ended with exit code %d; its last log line is %q", m.Name, code, m.LastWords())
		}
		left, err := m.Left(proof.Consumer)
		if err != nil {
			return err
		}
		u.ledger.Unfinished += left
	}
	return nil
}
