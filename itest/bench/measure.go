package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"
)

// Options contains the settings of a measurement: what is measured, and for how long.
type Options struct {
	// Rounds is the number of rounds. In each round, every compared implementation runs once.
	Rounds int
	// Target is how long a run should take. Under contention a run takes at least 3 s, because a deadlock
	// costs the server's deadlock_timeout of 1 s.
	Target time.Duration
	// Forms are the forms to measure.
	Forms []Form
	// Bodies are the kinds of message bodies. Each row is measured with each kind.
	Bodies []Body
	// Only selects the rows that are measured: those for whose conditions the function returns true.
	Only func(Conditions) bool
	// Progress is called after each row.
	Progress func(done, of int, r Row)
}

// Run is the result of one implementation in one round.
type Run struct {
	Messages int           `json:"messages"`
	Took     time.Duration `json:"took_ns"`
	// Busy is the CPU time of the client's process, including garbage collection. Busy is zero if the system does not
	// report the CPU time.
	Busy      time.Duration `json:"busy_ns"`
	Deadlocks int           `json:"deadlocks"`
	Serial    time.Duration `json:"serialised_ns"`
}

// Rate returns the messages per second.
func (r Run) Rate() float64 { return float64(r.Messages) / r.Took.Seconds() }

// Row is one row of the table, with the runs of each implementation in the order of the rounds.
type Row struct {
	Conditions
	Runs map[Contestant][]Run `json:"runs"`
}

// Measure measures the rows of the plan one after the other.
func (w *World) Measure(ctx context.Context, o Options) ([]Row, error) {
	var plan []Conditions
	for _, f := range o.Forms {
		for _, c := range Plan(f) {
			for _, c.Body = range o.Bodies {
				if o.Only(c) {
					plan = append(plan, c)
				}
			}
		}
	}
	var rows []Row
	for i, c := range plan {
		r, err := w.row(ctx, o, c)
		if err != nil {
			return rows, fmt.Errorf("%v: %w", c, err)
		}
		rows = append(rows, r)
		if o.Progress != nil {
			o.Progress(i+1, len(plan), r)
		}
	}
	return rows, nil
}

// contestantsFor returns the implementations to compare under the conditions c, in the order of the first
// round; the order is reversed in every second round. Under contention runs take long, so the hand-written batch runs
// only once.
func contestantsFor(c Conditions) []Contestant {
	if c.Contended() {
		return []Contestant{Semel, Keys, Hand, Textbook}
	}
	return []Contestant{Hand, Semel, Keys, Again, Textbook}
}

func (w *World) row(ctx context.Context, o Options, c Conditions) (Row, error) {
	d, err := w.database(ctx, c.Latency)
	if err != nil {
		return Row{}, err
	}
	all := contestantsFor(c)
	sizes := map[Contestant]int{}
	for _, who := range all {
		if sizes[who], err = d.chooseSize(ctx, o, who, c); err != nil {
			return Row{}, fmt.Errorf("%s: %w", who, err)
		}
	}
	sizes[Again] = sizes[Hand]
	r := Row{Conditions: c, Runs: map[Contestant][]Run{}}
	for round := range o.Rounds {
		for i := range all {
			who := all[i]
			if round%2 == 1 {
				who = all[len(all)-1-i]
			}
			run, err := d.run(ctx, who, c, sizes[who], c.limit(contendedTarget(o.Target)))
			if err != nil {
				return r, fmt.Errorf("%s: %w", who, err)
			}
			r.Runs[who] = append(r.Runs[who], run)
		}
	}
	return r, nil
}

// minMessages returns the minimum number of messages in a run under contention. After a lock conflict, a
// consumer runs its batches one at a time for a minute. With the returned number of messages, the consumer runs its
// batches one at a time for most of the run.
func (f Form) minMessages() int {
	if f == Queue || f == HandleAll {
		return 200 * batchMost
	}
	return 60 * batchMost
}

func contendedTarget(target time.Duration) time.Duration { return max(target, 3*time.Second) }

// limit returns a time limit for runs under contention. The duration of runs under contention is unpredictable, because
// batches may run into deadlocks again and again.
func (c Conditions) limit(target time.Duration) time.Duration {
	if c.Contended() {
		return target
	}
	return 0
}

// chooseSize returns how many messages an implementation processes in about the target duration.
func (d *database) chooseSize(ctx context.Context, o Options, who Contestant, c Conditions) (int, error) {
	target, least, batch := o.Target, 2*batchMost, batchMost
	switch {
	case who == Again:
		return 0, nil
	case who == Textbook:
		least, batch = 50*c.Workers, 1
	case c.Contended():
		target, least = contendedTarget(target), c.Form.minMessages()
	}
	for n := least; ; n *= 3 {
		run, err := d.run(ctx, who, c, n, c.limit(target))
		if err != nil {
			return 0, err
		}
		if run.Took > target/4 || n > 200_000 {
			n = int(math.Ceil(run.Rate()*target.Seconds()/float64(batch))) * batch
			return max(n, least), nil
		}
	}
}

func (d *database) run(ctx context.Context, who Contestant, c Conditions, n int, limit time.Duration) (Run, error) {
	if err := d.reset(ctx); err != nil {
		return Run{}, err
	}
	all := c.makeDeliveries(n)
	if _, err := d.apply(ctx, who, c, all.before, 0); err != nil {
		return Run{}, err
	}
	runtime.GC()
	worked, began := cpuTime(), time.Now()
	out, err := d.apply(ctx, who, c, all.timed, limit)
	return Run{Messages: out.applied, Took: time.Since(began), Busy: cpuTime() - worked, Deadlocks: out.deadlocks, Serial: out.serial}, err
}
