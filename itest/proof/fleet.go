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
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Fleet is a set of `semel run` processes of one consumer, together with the faults that a fault test injects into
// these processes.
type Fleet struct {
	Stage
	Stream  // topic and publisher, if the fault test has a topic
	Binary  string
	Members []*Member
	// Server is the PostgreSQL server and Activity observes its sessions. With a database other than PostgreSQL, both
	// are nil.
	Server   *services.Server
	Activity *processes.Activity
	// Proxy is between the members and the server; nil means that the members connect directly.
	Proxy *pgproxy.Proxy
	// Outages is the number of server outages. A member that started during an outage may have logged an
	// error and ended.
	Outages int
	// Tally has the counts that the fault test updates while it runs.
	Tally *Tally
	// Tend calls Care for each member. If Care is nil, Tend restarts a member that has ended.
	Care  func(*Member)
	all   []*Member // all members, including those that were removed from Members
	turn  int       // the counter of Next
	began time.Time
}

// NewFleet builds the binary and returns a fleet without members. The members' policies create the tables in
// setup.
func NewFleet(ctx context.Context, s Stage, setup string, tally *Tally) *Fleet {
	s.Write(setupFile, setup)
	return &Fleet{Stage: s, Binary: Must(processes.Build(ctx, s.Folder)), Tally: tally, began: time.Now()}
}

// OnPostgres starts a PostgreSQL server for the fleet, with options of the fault test.
func (f *Fleet) OnPostgres(o services.Options) {
	// The fault test recognises a running statement by the statement's text in pg_stat_activity. By default the server
	// keeps only the first 1,024 bytes of a statement's text, which is too short.
	o.Settings = append(o.Settings, "track_activity_query_size = 8192")
	f.Server = services.StartPostgres(f.T, o)
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

// Close kills the members that are still running.
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

// Add adds a member but does not start it.
func (f *Fleet) Add() *Member {
	name := fmt.Sprintf("member-%d", len(f.all)+1)
	m := &Member{Name: name, Command: processes.Command{Binary: f.Binary, Folder: f.Folder, Policy: name + ".yaml", Log: name + ".log", Summary: name + ".json"}}
	if f.Server != nil {
		m.Env = f.Environment(name)
	}
	f.all, f.Members = append(f.all, m), append(f.Members, m)
	return m
}

// Environment returns environment variables for a process: the address of the database, and the application name.
func (f *Fleet) Environment(name string) []string {
	dsn := f.Server.DSN()
	if f.Proxy != nil {
		dsn = f.Proxy.DSN()
	}
	return []string{"DATABASE=" + dsn + "&application_name=" + name, "MEMBER=" + name}
}

// Remove removes a member from Members. The member's process keeps running.
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

// Tend looks after all members and the publisher. Unless Care is set, Tend restarts members like a supervisor, because
// a member that starts while a server is down logs an error and ends.
func (f *Fleet) Tend() {
	care := f.Care
	if care == nil {
		care = f.restartMember
	}
	for _, m := range f.Members {
		care(m)
	}
	if f.Feed != nil {
		Check(f.Feed.Err())
	}
}

// The minimum time between two restarts of a member, so that an outage of some seconds causes few restarts.
const restartPause = 2 * time.Second

func (f *Fleet) restartMember(m *Member) {
	if Must(m.Running()) {
		return
	}
	if time.Since(m.restarted) < restartPause {
		return
	}
	m.restarted = time.Now()
	m.addDeliveries()
	if m.Status.ExitStatus() != 1 || f.Tally.Again >= len(f.Members)*f.Outages {
		Check(m.Failure())
	}
	f.Tally.Again++
	m.Start()
}

// The interval between two calls of Tend.
const often = 5 * time.Millisecond

// Until calls Tend repeatedly until condition returns true.
func (f *Fleet) Until(ctx context.Context, condition func() bool) {
	Until(ctx, often, func() bool {
		f.Tend()
		return condition()
	})
}

// RestartServer restarts PostgreSQL. The server is stopped by SIGKILL and by a regular stop in turn.
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

// FailOver kills PostgreSQL with SIGKILL, promotes its standby, and redirects the proxy to the standby.
func (f *Fleet) FailOver() {
	f.Server.WaitSynchronous() // without a connected standby, nobody would promote it
	f.Server.Kill()
	f.Server = f.Server.Standby()
	f.Server.Promote()
	Check(f.Proxy.Redirect(f.Server.DSN()))
	f.Activity.Close()
	f.Activity = Must(processes.OpenActivity(f.Server.DSN()))
	f.Outages++
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

// Tally is the part of the ledger that is the same for all fleets.
type Tally struct {
	ledger.Balance
	// Astray is the number of counters that differ from the effect log. Guards is the number of rows that
	// may exist only inside a running transaction.
	Astray int `json:"counters_unlike_log"`
	Guards int `json:"guards_left"`
	// Kills is the number of killed members. Open is the number of members that had an open transaction when they were
	// killed.
	Kills int `json:"kills"`
	Open  int `json:"kills_in_open_transaction"`
	// Restarts is the number of restarts of PostgreSQL. Again is the number of members that ended because a
	// server was down when they started, and were restarted.
	Restarts int `json:"postgres_restarts"`
	Again    int `json:"started_again"`
	// Unleft is the number of members that drained but could not leave the group in time.
	Unleft int `json:"ended_without_leaving,omitempty"`
	// Frozen is true if a member stayed frozen until the end.
	Frozen bool `json:"frozen_for_good"`
	// Seconds is the time from the first member's start to the last member's end.
	Seconds Seconds `json:"seconds"`
}

// Over records the duration of the fault test. Call Over at the end.
func (f *Fleet) Over() { f.Tally.Seconds = Since(f.began) }

// Audit compares the sent messages with the effects in the members' database. If bySemel is set, rows that may exist
// only inside a transaction (see Guards) count as an error.
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
