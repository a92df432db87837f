//go:build unix

package matrix

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/sqlstore"
)

func TestMain(m *testing.M) { children.Main(m, child) }

// patience is the maximum duration of a process of a cell.
const patience = 90 * time.Second

// order is the task of a child process: to run the consumer of a cell and to cause the fault of the cell in itself.
type order struct {
	Cell           cell
	Folder, Server string
}

func child(o order) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w := world{cell: o.Cell, folder: o.Folder, server: o.Server, fault: &fault{cell: o.Cell}}
	if err := w.open(ctx); err != nil {
		return err
	}
	return w.live(ctx, false)
}

func TestTheCrashMatrix(t *testing.T) {
	short := sqlsuite.OneWay()
	file := filepath.Join(t.TempDir(), "shop.db")
	db := must.Get(openFile(file))(t)
	migrate(t, must.Get(sqlstore.SQLite(db, sqlstore.Options{}))(t).Migrate)
	must.OK(t, exec(db, tables))
	must.OK(t, db.Close())
	template := must.Get(os.ReadFile(file))(t)
	servers := map[base]string{inPostgres: services.Postgres(t), inRedis: services.StartRedis(t).Address()}
	prepare(t, servers[inPostgres])
	servers[inPgx] = servers[inPostgres]
	t.Run("law_1_law_2_law_11_law_12_no_message_is_lost_doubled_or_stuck", func(t *testing.T) {
		for turn, c := range cells() {
			if c.impossible() != possible || c.Kind == restarts || short && !c.short(turn) {
				continue
			}
			t.Run(numbers(c)+c.String(), func(t *testing.T) {
				t.Parallel()
				if c.Base == inMemory {
					synctest.Test(t, func(t *testing.T) { run(t, world{cell: c}) })
					return
				}
				run(t, world{cell: c, server: servers[c.Base], empty: template})
			})
		}
	})
}

// numbers returns the name, with the trap's number, of the trap that a cell tests; "" if the cell tests no numbered
// trap.
func numbers(c cell) string {
	if c.Kind != killed || c.Strategy != marker {
		return ""
	}
	return map[faults.Point]string{
		faults.AfterMark:   "trap_T14_killed_after_the_mark_the_message_runs_again/",
		faults.AfterEffect: "trap_3_killed_before_the_commit_the_message_runs_again/",
		faults.AfterCommit: "trap_2_killed_after_the_commit_the_message_is_a_duplicate/",
	}[c.Point.engine()]
}

func migrate(t *testing.T, migrate func(context.Context) ([]string, error)) {
	t.Helper()
	must.Get(migrate(t.Context()))(t)
}

// run runs a cell: first a consumer with the fault, and afterwards consumers without a fault.
func run(t *testing.T, w world) {
	w.fresh(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if w.fault == nil {
		w.fault = &fault{}
	}
	thaw := func() {}
	if w.Kind == killed || w.Kind == frozen {
		thaw = w.start(ctx, t)
	} else {
		w.fault.cell = w.cell
	}
	must.OK(t, w.open(ctx))
	defer w.close()
	if w.fault.Kind != "" {
		first, end := context.WithCancel(ctx)
		w.fault.cancel = end
		t.Logf("the disturbed run: %v", w.live(first, false))
		end()
		if !w.fault.happened() {
			t.Fatal("the fault did not happen")
		}
	}
	w.checked(ctx, t, "after the fault", w.finish(ctx))
	thaw()
	w.checked(ctx, t, "at the end", w.finish(ctx))
	w.checked(ctx, t, "after a second delivery of all messages", w.live(ctx, true))
}

func (w *world) checked(ctx context.Context, t *testing.T, when string, err error) {
	t.Helper()
	must.OK(t, err)
	if err := w.check(ctx); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// fresh makes a new folder without acks, calls and effects.
func (w *world) fresh(t *testing.T) {
	t.Helper()
	w.folder = t.TempDir()
	if w.Base == inSQLite {
		must.OK(t, os.WriteFile(filepath.Join(w.folder, "shop.db"), w.empty, 0o644))
	}
}

// writing reports whether a frozen process has the write lock of a SQLite file. A frozen process can have the write
// lock by chance, because another goroutine of the process may claim rows at any point.
func (w *world) writing(ctx context.Context, t *testing.T) bool {
	t.Helper()
	if w.Kind != frozen || w.Base != inSQLite {
		return false
	}
	file := must.Get(processes.OpenSQLite(ctx, filepath.Join(w.folder, "shop.db")))(t)
	defer file.Close()
	return must.Get(file.Writing(ctx))(t)
}

// start starts a child process, and returns when the child was killed or is frozen. The function thaw continues the
// frozen child and waits for the child's end.
func (w *world) start(ctx context.Context, t *testing.T) (thaw func()) {
	t.Helper()
	said := must.Get(os.Create(filepath.Join(w.folder, "output")))(t)
	defer said.Close()
	c := children.Command(ctx, t, order{w.cell, w.folder, w.server})
	c.Stdout, c.Stderr = said, said
	must.OK(t, c.Start())
	p := &processes.Process{PID: c.Process.Pid}
	must.OK(t, p.Wait(syscall.WUNTRACED))
	if w.Kind == killed && p.Status.Signaled() && p.Status.Signal() == syscall.SIGKILL {
		return func() {}
	}
	if w.Kind != frozen || !p.Status.Stopped() {
		t.Fatalf("the fault did not happen; the process ended with %v and %s", p.Status, w.said())
	}
	if w.writing(ctx, t) {
		must.OK(t, p.Kill())
		w.fresh(t)
		return w.start(ctx, t)
	}
	return func() {
		t.Helper()
		must.OK(t, p.Thaw())
		if must.OK(t, p.Wait(0)); p.Status.ExitStatus() != 0 {
			t.Errorf("the thawed process ended with %v and %s", p.Status, w.said())
		}
	}
}

func (w *world) said() string {
	text, err := os.ReadFile(filepath.Join(w.folder, "output"))
	return fmt.Sprintf("%q %v", text, err)
}
