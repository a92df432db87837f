//go:build unix

// Package reconcile is a fault test: it checks that `semel reconcile` finds the lost and the doubled messages among
// many, and no others, while the consumer runs.
package reconcile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// The number of lost messages, and also the number of doubled messages.
const planted = 10

// Proof is the configuration of one run of the fault test.
type Proof struct {
	Messages int `flag:"number of sent messages"`
	// Blind adds a fault that the run must detect: the command does not compare the effects.
	Blind bool
}

const policy = `version: 1
stores: {bank: {postgres: {url: "${DATABASE}"}, migrate: true, setup: setup.sql}}
sources: {live: {file: {path: live.jsonl, format: cloudevents, follow: true}}}
consumers:
  billing:
    from: live
    store: bank
    identity: {id: id, source: source}
    handler: {sql: {params: {id: id}, statements: ["insert into effects (event) values (:id)"]}}
`

// SQL that inserts the messages that the consumer applied earlier, without the lost messages. An id is "p-" and a
// number.
const filled = `with old as (select 'p-' || n as id from generate_series(0, $1::int - 1) n where n % ($1::int / 10) <> 7),
marked as (
  insert into semel_markers (scope, id, outcome, version, at)
  select (select number from semel_scopes where consumer = 'billing' and source = '/shop'), '\x00'::bytea || id::bytea, 1, 0, now() from old
)
insert into effects (event) select id from old union all select id from old where substr(id, 3)::int % ($1::int / 10) = 3`

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	m *proof.Member // the consumer
}

// Run runs the fault test on a server of its own.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	r := &run{Proof: p, Fleet: proof.NewFleet(ctx, s, "create table effects (event text not null);", &proof.Tally{})}
	defer r.Close()
	r.OnPostgres(services.Options{})
	r.m = r.Add()
	r.Write(r.m.Policy, policy)
	r.Write("live.jsonl", line("live-0", time.Now()))
	r.m.Start()
	r.Until(ctx, func() bool { return proof.Must(r.Activity.Effects(ctx)) >= 1 })
	l := r.prove(ctx)
	proof.Check(r.m.End())
	return l
}

func (r *run) prove(ctx context.Context) Ledger {
	r.Say("%d messages are applied, %d are lost and %d doubled", r.Messages, planted, planted)
	proof.Must(r.Activity.DB.ExecContext(ctx, filled, r.Messages))
	proof.Check(r.writeSent())
	before := r.countApplied(ctx)
	producing, stop := context.WithCancel(ctx)
	defer stop()
	var producer worker.Group
	var produced error
	producer.Go(func() { produced = r.produce(producing) })
	l := r.compare(ctx)
	l.Live = r.countApplied(ctx) - before
	stop()
	producer.Wait()
	proof.Check(produced)
	return l
}

// The number of live messages that the list of sent messages contains before the consumer gets these messages.
const onTheWay = 1000

// writeSent writes the list of sent messages. The list of sent messages has all earlier messages and the first live
// messages.
func (r *run) writeSent() (err error) {
	f, err := os.Create(r.Path("sent.jsonl"))
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
		// The messages "later-…" do not reach the consumer while the command runs.
		_, _ = to.WriteString(line(fmt.Sprintf("later-%d", i+1), time.Now()))
	}
	return to.Flush()
}

// produce sends several hundred live messages per second until ctx ends.
func (r *run) produce(ctx context.Context) (err error) {
	f, err := os.OpenFile(r.Path("live.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for i := 1; ctx.Err() == nil && err == nil; i++ {
		processes.Pause(ctx, 5*time.Millisecond)
		_, err = f.WriteString(line(fmt.Sprintf("live-%d", i), time.Now()))
	}
	return err
}

// compare runs the command and counts its findings.
func (r *run) compare(ctx context.Context) Ledger {
	args := []string{"reconcile", "billing", "--file", "sent.jsonl", "--grace", "10m", "-o", "json"}
	if !r.Blind {
		args = append(args, "--effects", "select event from effects")
	}
	cmd, began := r.m.Call(ctx, args...), time.Now()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 4) {
		proof.Check(fmt.Errorf("reconcile: %w", err))
	}
	var told struct {
		Sent, Late int
		Findings   []struct{ What, ID string }
	}
	proof.Check(json.Unmarshal(out, &told))
	l := Ledger{Sent: told.Sent, Lost: planted, Twice: planted, OnTheWay: told.Late, ExitCode: cmd.ProcessState.ExitCode(), Seconds: proof.Since(began)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		l.Peak = int64(usage.Maxrss) / 1024
	}
	step := r.Messages / planted
	lost, twice := r.makeIDs(step, 7), r.makeIDs(step, 3)
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
	return l
}

// makeIDs returns the ids of every step-th message.
func (r *run) makeIDs(step, first int) (ids []string) {
	for i := first; i < r.Messages; i += step {
		ids = append(ids, fmt.Sprintf("p-%d", i))
	}
	return ids
}

func (r *run) countApplied(ctx context.Context) int {
	return r.Count(ctx, "select count(*) from effects where event like 'live-%'")
}

func line(id string, at time.Time) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/shop","type":"paid","time":%q,"data":1}`+"\n", id, at.UTC().Format(time.RFC3339Nano))
}
