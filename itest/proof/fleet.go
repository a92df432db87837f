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

// Fleet is processes of one consumer, `semel run`, and what happens to them.
type Fleet struct {
	Stage
	Stream  // if the proof has one
	Binary  string
	Members []*Member
	// Server and Activity are the database's, where that is PostgreSQL.
	Server   *services.Server
	Activity *processes.Activity
	// Outages are how often a server was away: each member that started
	// meanwhile may have said so and ended.
	Outages int
	// Tally is counted up.
	Tally *Tally
	// Care looks after one member. If it is nil, Tend starts a member again that ended.
	Care  func(*Member) error
	all   []*Member // also those that are no longer Members
	turn  int       // of Next
	began time.Time
}

// NewFleet returns a fleet without members, of a binary that is built. Their
// policies make the tables of setup.
func NewFleet(ctx context.Context, s Stage, setup string, tally *Tally) (*Fleet, error) {
	if err := os.WriteFile(filepath.Join(s.Folder, setupFile), []byte(setup), 0o644); err != nil {
		return nil, err
	}
	binary, err := processes.Build(ctx, s.Folder)
	return &Fleet{Stage: s, Binary: binary, Tally: tally, began: time.Now()}, err
}

// OnPostgres gives the fleet a server of its own.
func (f *Fleet) OnPostgres() (err error) {
	// A statement is recognised by its text, of which the server keeps 1,024 bytes by default.
	f.Server = services.StartPostgres(f.T, services.Options{Settings: []string{"track_activity_query_size = 8192"}})
	f.Activity, err = processes.OpenActivity(f.Server.DSN())
	f.began = time.Now()
	return err
}

// Close kills the members that still run, however the proof ended.
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

// Add adds a member, which is not started yet.
func (f *Fleet) Add() *Member {
	name := fmt.Sprintf("member-%d", len(f.all)+1)
	m := &Member{Name: name, Command: processes.Command{Binary: f.Binary, Folder: f.Folder, Policy: name + ".yaml", Log: name + ".log", Summary: name + ".json"}}
	if f.Server != nil {
		m.Env = []string{"DATABASE=" + f.Server.DSN() + "&application_name=" + name, "MEMBER=" + name}
	}
	f.all, f.Members = append(f.all, m), append(f.Members, m)
	return m
}

// Remove has the fleet no longer look after a member.
func (f *Fleet) Remove(m *Member) {
	f.Members = slices.DeleteFunc(f.Members, func(other *Member) bool { return other == m })
}

// Delivered is what all members were delivered that there ever were.
func (f *Fleet) Delivered() (sum int64) {
	for _, m := range f.all {
		sum += m.Delivered()
	}
	return sum
}

// Tend looks after all members. Unless Care is set, it starts members again as a supervisor does:
// a member that starts while a server is away logs that and ends.
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

// Until looks after the members until it is so.
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

// RestartServer restarts PostgreSQL, every other time with SIGKILL.
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

// Kill kills a member and counts that.
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

// Tally is what a ledger of every fleet holds.
type Tally struct {
	ledger.Balance
	// Astray are counters unlike the log, Guards rows that only a transaction
	// that is under way may have.
	Astray int `json:"counters_unlike_log"`
	Guards int `json:"guards_left"`
	// Kills are of members, Open those that met an open transaction.
	Kills int `json:"kills"`
	Open  int `json:"kills_in_open_transaction"`
	// Restarts are of PostgreSQL. Again are members that started while a server
	// was away, said so and ended, and were started again.
	Restarts int `json:"postgres_restarts"`
	Again    int `json:"started_again"`
	// Unleft are members that drained and could not leave the group in time.
	Unleft int `json:"ended_without_leaving,omitempty"`
	// Frozen says that a member stood still to the end.
	Frozen bool `json:"frozen_for_good"`
	// Seconds from the first member's start to the last one's end.
	Seconds Seconds `json:"seconds"`
}

// Over notes how many seconds the proof took, now that it has ended.
func (f *Fleet) Over() { f.Tally.Seconds = Seconds(time.Since(f.began).Seconds()) }

// Audit compares what was sent with the effects in the members' database. What
// was written by semel has no guards left.
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
		return fmt.Errorf("%d counters are not what the effect log says", t.Astray)
	case t.Guards != 0:
		return fmt.Errorf("%d guards are left of transactions that are over", t.Guards)
	}
	return nil
}
