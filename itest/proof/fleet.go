//go:build unix

package proof

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Fleet is a set of `semel run` processes of one consumer, together with the faults that the proof injects
// into them.
type Fleet struct {
	Stage
	Stream  // topic and publisher, if the proof has them
	Binary  string
	Members []*Member
	// Server is the PostgreSQL server and Activity observes its sessions. Both are nil with another
	// database.
	Server   *services.Server
	Activity *processes.Activity
	// Outages is the number of server outages. A member that started during an outage may have logged an
	// error and ended.
	Outages int
	// Tally has the counts that the proof updates while it runs.
	Tally *Tally
	// Care is called to look after one member. If Care is nil, Tend restarts a member that has ended.
	Care  func(*Member) error
	all   []*Member // all members, including those that were removed from Members
	turn  int       // the counter of Next
	began time.Time
}

// NewFleet builds the binary and returns a fleet without members. The members' policies create the tables in
// setup.
func NewFleet(ctx context.Context, s Stage, setup string, tally *Tally) (*Fleet, error) {
	if err := os.WriteFile(filepath.Join(s.Folder, setupFile), []byte(setup), 0o644); err != nil {
		return nil, err
	}
	binary, err := processes.Build(ctx, s.Folder)
	return &Fleet{Stage: s, Binary: binary, Tally: tally, began: time.Now()}, err
}

// OnPostgres starts a PostgreSQL server for the fleet.
func (f *Fleet) OnPostgres() (err error) {
	// The proof recognises a running statement by its text in pg_stat_activity. By default the server
	// keeps only the first 1,024 bytes of a statement's text, which is too short.
	f.Server = services.StartPostgres(f.T, services.Options{Settings: []string{"track_activity_query_size = 8192"}})
	f.Activity, err = processes.OpenActivity(f.Server.DSN())
	f.began = time.Now()
	return err
}

// Close kills the members that are still running.
func (f *Fleet) Close() {
	f.Stream.close()
	for _, m := range f.all {
		if m.Process != nil {
			_ = m.Kill()
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
		m.Env = []string{"DATABASE=" + f.Server.DSN() + "&application_name=" + name, "MEMBER=" + name}
	}
	f.all, f.Members = append(f.all, m), append(f.Members, m)
	return m
}

// Remove removes a member from Members. It does not end the process.
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

// Tend looks after all members. Without Care it restarts a member that has ended, like a supervisor does: a
// member that starts while a server is down logs an error and ends.
func (f *Fleet) Tend() error {
	care := f.Care
	if care == nil {
		care = f.again
	}
	for _, m := range f.Members {
		if err := care(m); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) again(m *Member) error {
	if alive, err := m.Running(); alive || err != nil {
		return err
	}
	m.over()
	if m.Status.ExitStatus() != 1 || f.Tally.Again >= len(f.Members)*f.Outages {
		return m.ended()
	}
	f.Tally.Again++
	return m.Start()
}

// Until calls Tend repeatedly until the condition holds.
func (f *Fleet) Until(ctx context.Context, so func() (bool, error)) error {
	return Until(ctx, 5*time.Millisecond, func() (bool, error) {
		if err := f.Tend(); err != nil {
			return false, err
		}
		if f.Feed != nil && f.Feed.Err() != nil {
			return false, f.Feed.Err()
		}
		return so()
	})
}

// RestartServer restarts PostgreSQL. It uses SIGKILL and a regular stop in turn.
func (f *Fleet) RestartServer(context.Context) error {
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
	return nil
}

// Kill kills a member and counts the kill.
func (f *Fleet) Kill(m *Member, open bool) error {
	if err := m.Kill(); err != nil {
		return err
	}
	f.Tally.Kills++
	if open {
		f.Tally.Open++
	}
	f.Say("kill %d: %s, open transaction: %v", f.Tally.Kills, m.Name, open)
	return nil
}

// Tally is the part of the ledger that is the same for all fleets.
type Tally struct {
	ledger.Balance
	// Astray is the number of counters that differ from the effect log. Guards is the number of rows that
	// may exist only inside a running transaction.
	Astray int `json:"counters_unlike_log"`
	Guards int `json:"guards_left"`
	// Kills is the number of killed members. Open is how many of them had an open transaction.
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

// Over records the duration of the proof. Call it at the end.
func (f *Fleet) Over() { f.Tally.Seconds = Seconds(time.Since(f.began).Seconds()) }

// Audit compares the sent messages with the effects in the members' database. If bySemel is set, the effects
// must have no guards.
func (t *Tally) Audit(ctx context.Context, db ledger.Reader, sent iter.Seq[string], stuck int, bySemel bool) error {
	effects, err := ledger.Effects(ctx, db, "delivery")
	if err != nil {
		return err
	}
	t.Balance = ledger.Weigh(effects, sent, stuck)
	if t.Astray, err = ledger.Astray(ctx, db); err != nil || !bySemel {
		return err
	}
	return db.QueryRowContext(ctx, `select count(*) from semel_guard`).Scan(&t.Guards)
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
