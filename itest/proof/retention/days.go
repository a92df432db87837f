package retention

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Days is the fault test for daily partitions: the reaper, which removes old markers, drops all markers of a day at
// once. The partition of the previous day has parked messages and must stay.
type Days struct{ Proof }

// DaysLedger is the result for a dropped partition.
type DaysLedger struct {
	// Markers is the number of markers in the partition. Days is the number of dropped partitions: one, or two if the
	// test runs past midnight UTC.
	Markers int   `json:"old_markers"`
	Days    int64 `json:"days_dropped"`
	// Calls is the number of calls of the reaper (which removes old markers) until the partition was dropped. Drop is
	// the duration of the last call in milliseconds. WAL is the number of bytes that the dropping transactions wrote to
	// the WAL.
	Calls int     `json:"calls"`
	Drop  float64 `json:"drop_ms"`
	WAL   int64   `json:"drop_wal_bytes"`
	// Parked is the number of parked messages in the partition that stays, with marker and row. Gone is true
	// if the table of the dropped partition no longer exists.
	Parked int  `json:"parked_kept"`
	Gone   bool `json:"day_gone"`
	Pace
}

const (
	// The number of parked messages in the partition that stays.
	parkedOfDay = 1000
	// The maximum number of bytes that a drop may write to the WAL. The limit does not depend on the number of markers
	// in the partition.
	mostWAL = 1_000_000
	// The maximum number of calls in which the reaper may find the partition in use.
	mostCalls = 200
)

// Wrong implements proof.Ledger.
func (l DaysLedger) Wrong() error {
	switch {
	case l.Days < 1 || !l.Gone:
		return fmt.Errorf("the day still exists after %d calls; %d other days were dropped", l.Calls, l.Days)
	case l.Parked != parkedOfDay:
		return fmt.Errorf("%d of %d parked messages of an old day have their markers", l.Parked, parkedOfDay)
	case l.WAL >= mostWAL:
		return fmt.Errorf("the drop wrote %d bytes of WAL, not below %d", l.WAL, mostWAL)
	}
	return l.Pace.Wrong()
}

// Fault implements proof.Ledger.
func (l DaysLedger) Fault() error {
	return cmp.Or(l.Wrong(), ledger.AtLeast(1, int(l.WAL), "bytes of WAL were found of the drop"), l.Pace.Fault())
}

// Run runs the fault test on a server of its own.
func (p Days) Run(ctx context.Context, s proof.Stage) (l DaysLedger) {
	r := p.start(ctx, s)
	defer r.close()
	const day = 24 * time.Hour
	r.born = time.Now().UTC().Truncate(day).Add(-keep - day) // the newest day whose partition may be dropped
	r.step = ((day - time.Minute) / time.Duration(p.Markers)).Truncate(time.Microsecond)
	for _, s := range []**pgxstore.Store{&r.store, &r.reaper} {
		*s = proof.Must((*s).Dated(ctx, sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7, Back: int(time.Since(r.born)/day) + 1}))
	}
	r.scope = proof.Must(r.store.Scope(ctx, "billing", "shop", 0))
	table := ""
	r.scan(ctx, &table, "select 'semel_markers_' || number from semel_dated")
	before := &run{scope: r.scope, born: r.born.Add(-12 * time.Hour), step: time.Millisecond}
	r.Say("a day of %d markers is written", r.Markers)
	r.execute(ctx,
		"create extension pg_walinspect",
		"create table effects (id text not null)",
		r.oldMarkersStatement(table, "1", 1, r.Markers),
		before.oldMarkersStatement(table, "3", 1, parkedOfDay), // parked messages of the previous day
		fmt.Sprintf(oldParked, table, r.scope),
		"vacuum analyze "+table, "analyze semel_inbox")
	l.Markers = p.Markers
	crew := r.measureBeside(ctx, &l.Pace, func() { r.drop(ctx, &l) })
	l.Parked = r.weigh(ctx, crew, &l.Pace, table)
	r.scan(ctx, &l.Gone, "select to_regclass($1) is null", table+"_"+r.born.Format("20060102"))
	return l
}

// drop calls the reaper (which removes old markers) until the daily partition is dropped. A running consumer makes the
// same calls of the reaper.
func (r *run) drop(ctx context.Context, l *DaysLedger) {
	for l.Days == 0 && l.Calls < mostCalls {
		r.advance(ctx)
		var from, to string
		r.scan(ctx, &from, "select pg_current_wal_insert_lsn()::text")
		began := time.Now()
		done := proof.Must(r.reaper.Reap(ctx, store.Reaping{Consumer: "billing", Most: 500}))
		l.Drop, l.Days, l.Calls = milliseconds(time.Since(began)), done.Days, l.Calls+1
		if done.Days == 0 {
			continue
		}
		r.scan(ctx, &to, "select pg_current_wal_flush_lsn()::text")
		r.Say("the day is gone in %.0f ms, at call %d", l.Drop, l.Calls)
		r.scan(ctx, &l.WAL, walOfDrops, from, to)
	}
}

// The query for the WAL of the transactions that dropped relations. Commit records name the dropped relations. The
// workers' transactions drop no relations.
const walOfDrops = `with r as materialized (select * from pg_get_wal_records_info($1::text::pg_lsn, $2::text::pg_lsn))
select coalesce(sum(record_length), 0)::bigint from r
where xid in (select xid from r where resource_manager = 'Transaction' and record_type = 'COMMIT' and description like '%rels:%')`
