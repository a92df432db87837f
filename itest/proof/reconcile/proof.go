//go:build unix

// Package reconcile proves that `semel reconcile` finds the lost and the doubled messages among many, and no
// others, while the consumer runs.
package reconcile

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// planted is the number of lost messages, and also the number of doubled messages.
const planted = 10

// Proof is one run.
type Proof struct {
	Messages int `flag:"number of sent messages"`
	// Blind plants a fault: the command does not compare the effects.
	Blind bool
}

const policy = `version: 1
stores: {bank: {postgres: {url: "${DATABASE_URL}"}, migrate: true, setup: setup.sql}}
sources: {live: {file: {path: live.jsonl, format: cloudevents, follow: true}}}
consumers:
  billing:
    from: live
    store: bank
    identity: {id: id, source: source}
    handler: {sql: {params: {id: id}, statements: ["insert into entries (event) values (:id)"]}}
`

// filled inserts the messages that the consumer applied earlier, without the lost messages. The ids are "p-"
// and a number.
const filled = `with old as (select 'p-' || n as id from generate_series(0, $1::int - 1) n where n % ($1::int / 10) <> 7),
marked as (
  insert into semel_markers (scope, id, outcome, version, at)
  select (select number from semel_scopes where consumer = 'billing' and source = '/shop'), '\x00'::bytea || id::bytea, 1, 0, now() from old
)
insert into entries (event) select id from old union all select id from old where substr(id, 3)::int % ($1::int / 10) = 3`

// run is the state of a running proof.
type run struct {
	Proof
	proof.Stage
	binary string
	db     *sql.DB
	dsn    string
}

// Run runs the proof on a private server. An error means that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (l Ledger, err error) {
	r := &run{Proof: p, Stage: s}
	if r.binary, err = processes.Build(ctx, s.Folder); err != nil {
		return l, err
	}
	r.dsn = services.StartPostgres(s.T, services.Options{}).DSN()
	if r.db, err = sql.Open("pgx", r.dsn); err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, r.db.Close()) }()
	for name, text := range map[string]string{"semel.yaml": policy, "setup.sql": "create table entries (event text not null);", "live.jsonl": line("live-0", time.Now())} {
		if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
			return l, err
		}
	}
	consumer := r.command(context.WithoutCancel(ctx), "run", "--log-level", "error")
	if err := consumer.Start(); err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, consumer.Process.Signal(syscall.SIGTERM), consumer.Wait()) }()
	if err := r.until(ctx, 1); err != nil {
		return l, err
	}
	return r.prove(ctx)
}

func (r *run) prove(ctx context.Context) (l Ledger, err error) {
	r.Say("%d messages are applied, %d are lost and %d doubled", r.Messages, planted, planted)
	if _, err := r.db.ExecContext(ctx, filled, r.Messages); err != nil {
		return l, err
	}
	if err := r.writeSent(); err != nil {
		return l, err
	}
	before, err := r.applied(ctx)
	if err != nil {
		return l, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var producer worker.Group
	var produced error
	producer.Go(func() { produced = r.produce(ctx) })
	l, err = r.compare(ctx)
	after, counted := r.applied(ctx)
	l.Live = after - before
	stop()
	producer.Wait()
	return l, errors.Join(err, counted, produced)
}

// onTheWay is the number of live messages that the list of sent messages contains before the consumer gets
// them.
const onTheWay = 1000

// writeSent writes the list of sent messages. The list has all earlier messages and the first live messages.
func (r *run) writeSent() (err error) {
	f, err := os.Create(r.path("sent.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := bufio.NewWriter(f)
	for i := range r.Messages {
		_, _ = to.WriteString(line(fmt.Sprintf("p-%d", i), time.Now().Add(-time.Hour)))
	}
	for i := range onTheWay {
		_, _ = to.WriteString(line(fmt.Sprintf("live-%d", i+1), time.Now()))
		// These messages do not reach the consumer while the command runs.
		_, _ = to.WriteString(line(fmt.Sprintf("later-%d", i+1), time.Now()))
	}
	return to.Flush()
}

// produce sends several hundred live messages per second until ctx ends.
func (r *run) produce(ctx context.Context) (err error) {
	f, err := os.OpenFile(r.path("live.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 1; ; i++ {
		select {
		case <-tick.C:
			if _, err := f.WriteString(line(fmt.Sprintf("live-%d", i), time.Now())); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// compare runs the command and counts its findings.
func (r *run) compare(ctx context.Context) (l Ledger, err error) {
	args := []string{"reconcile", "billing", "--file", "sent.jsonl", "--grace", "10m", "--json"}
	if !r.Blind {
		args = append(args, "--effects", "select event from entries")
	}
	cmd := r.command(ctx, args...)
	cmd.Stdout = nil
	began := time.Now()
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 4 {
		err = nil
	}
	if err != nil {
		return l, fmt.Errorf("reconcile: %w", err)
	}
	var told struct {
		Sent, Late int
		Findings   []struct{ What, ID string }
	}
	if err := json.Unmarshal(out, &told); err != nil {
		return l, err
	}
	l = Ledger{Sent: told.Sent, Lost: planted, Twice: planted, OnTheWay: told.Late, ExitCode: cmd.ProcessState.ExitCode(), Seconds: proof.Seconds(time.Since(began).Seconds())}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		l.Peak = int64(usage.Maxrss) / 1024
	}
	step := r.Messages / planted
	lost, twice := r.ids(step, 7), r.ids(step, 3)
	for _, f := range told.Findings {
		switch {
		case f.What == "missing" && slices.Contains(lost, f.ID):
			l.Missing++
		case f.What == "doubled" && slices.Contains(twice, f.ID):
			l.Doubled++
		default:
			l.Else++
		}
	}
	return l, nil
}

// ids returns the ids of every step-th message.
func (r *run) ids(step, first int) (ids []string) {
	for i := first; i < r.Messages; i += step {
		ids = append(ids, fmt.Sprintf("p-%d", i))
	}
	return ids
}

func (r *run) path(name string) string { return filepath.Join(r.Folder, name) }

func (r *run) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.Folder, append(os.Environ(), "DATABASE_URL="+r.dsn), os.Stderr
	return cmd
}

func (r *run) applied(ctx context.Context) (n int, err error) {
	err = r.db.QueryRowContext(context.WithoutCancel(ctx), "select count(*) from entries where event like 'live-%'").Scan(&n)
	return n, err
}

func (r *run) until(ctx context.Context, n int) error {
	return proof.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		applied, err := r.applied(ctx)
		return applied >= n, nilIfMissing(err)
	})
}

// nilIfMissing returns nil if the error says that the table does not exist yet, otherwise the error.
func nilIfMissing(err error) error {
	if err != nil && strings.Contains(err.Error(), "42P01") {
		return nil
	}
	return err
}

func line(id string, at time.Time) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/shop","type":"paid","time":%q,"data":1}`+"\n", id, at.UTC().Format(time.RFC3339Nano))
}
