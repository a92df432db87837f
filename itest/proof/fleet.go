//go:build unix

package proof

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Fleet is a set of processes of one consumer, `semel run`, and the faults that they meet.
type Fleet struct {
	Stage
	Stream  // if the proof has one
	Binary  string
	Members []*Member
	// Server and Activity belong to the database, if it is PostgreSQL.
	Server   *services.Server
	Activity *processes.Activity
	// Outages is the number of server outages. Each member that started during an outage may
	// have logged that and ended.
	Outages int
	// Tally is counted during the proof.
	Tally *Tally
	// Care looks after one member. If it is nil, Tend restarts a member that ended.
	Care  func(*Member)
	all   []*Member // also those that are no longer Members
	turn  int       // of Next
	began time.Time
}

// NewFleet returns a fleet without members, for a binary that is built. Their policies create
// the tables of setup.
func NewFleet(ctx context.Context, s Stage, setup string, tally *Tally) *Fleet {
	s.Write(setupFile, setup)
	return &Fleet{Stage: s, Binary: Must(processes.Build(ctx, s.Folder)), Tally: tally, began: time.Now()}
}

// OnPostgres starts a server for the fleet.
func (f *Fleet) OnPostgres() {
	// The proof recognises a running statement by its text in pg_stat_activity. By default the server
	// keeps only the first 1,024 bytes of a statement's text, which is too short.
	f.Server = services.StartPostgres(f.T, services.Options{Settings: []string{"track_activity_query_size = 8192"}})
	f.Activity = Must(processes.OpenActivity(f.Server.DSN()))
	f.began = time.Now()
}

// Count returns the number that a query of the database returns.
func (f *Fleet) Count(ctx context.Context, query string, args ...any) (n int) {
	Check(f.Activity.DB.QueryRowContext(ctx, query, args...).Scan(&n))
	return n
}

// Exec runs statements in the database.
func (f *Fleet) Exec(ctx context.Context, statements string) {
	Must(f.Activity.DB.ExecContext(ctx, statements))
}

// Close kills the members that still run.
func (f *Fleet) Close() {
	f.Stream.close()
	for _, m := range f.all {
		if m.Process != nil {
			_ = m.Process.Kill()
		}
	}
	if f.Activity != nil {
		f.Activity.Close()
	}
}

// Add adds a member that is not started yet.
func (f *Fleet) Add() *Member {
	name := fmt.Sprintf("member-%d", len(f.all)+1)
	m := &Member{Name: name, Command: processes.Command{Binary: f.Binary, Folder: f.Folder, Policy: name + ".yaml", Log: name + ".log", Summary: name + ".json"}}
	if f.Server != nil {
		m.Env = f.Environment(name)
	}
	f.all, f.Members = append(f.all, m), append(f.Members, m)
	return m
}

// Environment returns the environment that tells a process where the database is, and its
// application name.
func (f *Fleet) Environment(name string) []string {
	return []string{"DATABASE=" + f.Server.DSN() + "&application_name=" + name, "MEMBER=" + name}
}

// Remove takes a member out of the fleet.
func (f *Fleet) Remove(m *Member) {
	f.Members = slices.DeleteFunc(f.Members, func(other *Member) bool { return other == m })
}

// Delivered returns the number of deliveries to all members, including removed ones.
func (f *Fleet) Delivered() (sum int64) {
	for _, m := range f.all {
		sum += m.Delivered()
	}
	return sum
}

// Tend looks after all members and the publisher. Unless Care is set, it restarts members like a
// supervisor: a member that starts while a server is down logs that and ends.
func (f *Fleet) Tend() {
	care := f.Care
	if care == nil {
		care = f.again
	}
	for _, m := range f.Members {
		care(m)
	}
	if f.Feed != nil {
		Check(f.Feed.Err())
	}
}

func (f *Fleet) again(m *Member) {
	if Must(m.Running()) {
		return
	}
	m.over()
	if m.Status.ExitStatus() != 1 || f.Tally.Again >= len(f.Members)*f.Outages {
		Check(m.Failure())
	}
	f.Tally.Again++
	m.Start()
}

// often is how often a fleet is looked after.
const often = 5 * time.Millisecond

// Until looks after the members until the condition holds.
func (f *Fleet) Until(ctx context.Context, so func() bool) {
	Until(ctx, often, func() bool {
		f.Tend()
		return so()
	})
}

// RestartServer restarts PostgreSQL, every second time with SIGKILL.
func (f *Fleet) RestartServer(context.Context) {
	how := "SIGKILL"
	if f.Tally.Restarts%2 == 0 {
		f.Server.Kill()
	} else {
		how = "stop"
		f.Server.Stop()
	}
	f.Server.Start()
	f.Tally.Restarts++
	f.Outages++
	f.Say("restart %d of PostgreSQL, by %s", f.Tally.Restarts, how)
}

// Kill kills a member and counts the kill.
func (f *Fleet) Kill(m *Member, open bool) {
	m.Kill()
	f.Tally.Kills++
	if open {
		f.Tally.Open++
	}
	f.Say("kill %d: %s, open transaction: %v", f.Tally.Kills, m.Name, open)
}

// Tally is the part of the ledger that all fleets share.
type Tally struct {
	ledger.Balance
	// Astray are counters that differ from the log. Guards are rows that only a running
	// transaction may have.
	Astray int `json:"counters_unlike_log"`
	Guards int `json:"guards_left"`
	// Kills is the number of killed members, Open the number of those with an open
	// transaction.
	Kills int `json:"kills"`
	Open  int `json:"kills_in_open_transaction"`
	// Restarts is the number of restarts of PostgreSQL. Again is the number of members that
	// started while a server was down, logged that, ended, and were restarted.
	Restarts int `json:"postgres_restarts"`
	Again    int `json:"started_again"`
	// Unleft are members that drained and could not leave the group in time.
	Unleft int `json:"ended_without_leaving,omitempty"`
	// Frozen is set if a member stayed frozen until the end.
	Frozen bool `json:"frozen_for_good"`
	// Seconds is the time from the first member's start to the last member's end.
	Seconds Seconds `json:"seconds"`
}

// Over records the duration of the proof at its end.
func (f *Fleet) Over() { f.Tally.Seconds = Since(f.began) }

// Audit compares the sent messages with the effects in the members' database. Semel leaves no
// guards in what it wrote.
func (t *Tally) Audit(ctx context.Context, db ledger.Reader, sent iter.Seq[string], stuck int, bySemel bool) {
	t.Balance = ledger.Weigh(Must(ledger.Effects(ctx, db, "delivery")), sent, stuck)
	t.Astray = Must(ledger.Astray(ctx, db))
	if bySemel {
		t.Guards = Must(ledger.Count(ctx, db, `select count(*) from semel_guard`))
	}
}

// Wrong implements Ledger.
func (t Tally) Wrong() error {
	switch err := t.Balance.Wrong(); {
	case err != nil:
		return err
	case t.Astray != 0:
		return fmt.Errorf("%d counters differ from the effect log", t.Astray)
	case t.Guards != 0:
		return fmt.Errorf("%d guards are left by transactions that have ended", t.Guards)
	}
	return nil
}
