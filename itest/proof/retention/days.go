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

// Days proves the same where a whole day of markers is dropped; the day before it has parked
// messages, and has to stay.
type Days struct{ Proof }

// DaysLedger is what came out where a day was dropped.
type DaysLedger struct {
	// Markers are those of the day, Days the days that were dropped: one, or two if a day
	// began meanwhile.
	Markers int   `json:"old_markers"`
	Days    int64 `json:"days_dropped"`
	// Calls are the reaper's until the day was gone, Drop is how long the last took, in
	// milliseconds, WAL what its transactions wrote to the server's log of changes, in bytes.
	Calls int     `json:"calls"`
	Drop  float64 `json:"drop_ms"`
	WAL   int64   `json:"drop_wal_bytes"`
	// Parked are the messages of the day that stays with marker and row, Gone says that the
	// table of the day that was dropped is no more.
	Parked int  `json:"parked_kept"`
	Gone   bool `json:"day_gone"`
	Pace
}

const (
	// parkedOfDay are the parked messages of the day that stays.
	parkedOfDay = 1000
	// mostWAL is what a drop may write, whatever was in the day.
	mostWAL = 1_000_000
	// mostCalls are how often the reaper may meet the day in use.
	mostCalls = 200
)

// Wrong implements proof.Ledger.
func (l DaysLedger) Wrong() error {
	switch {
	case l.Days < 1 || !l.Gone:
		return fmt.Errorf("the day stands after %d calls; %d others were dropped", l.Calls, l.Days)
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

// Run proves on a private server.
func (p Days) Run(ctx context.Context, s proof.Stage) (l DaysLedger, err error) {
	r, err := p.start(ctx, s)
	if err != nil {
		return l, err
	}
	defer r.close()
	const day = 24 * time.Hour
	r.born = time.Now().UTC().Truncate(day).Add(-keep - day) // the last day that may go
	r.step = ((day - time.Minute) / time.Duration(p.Markers)).Truncate(time.Microsecond)
	for _, s := range []**pgxstore.Store{&r.store, &r.reaper} {
		if *s, err = (*s).Dated(ctx, sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7, Back: int(time.Since(r.born)/day) + 1}); err != nil {
			return l, err
		}
	}
	table, err := r.prepareDay(ctx)
	if err != nil {
		return l, err
	}
	l.Markers = p.Markers
	crew, err := r.beside(ctx, &l.Pace, func() error { return r.drop(ctx, &l) })
	if err != nil {
		return l, err
	}
	if l.Parked, err = r.weigh(ctx, crew, &l.Pace, table); err != nil {
		return l, err
	}
	return l, r.pool.QueryRow(ctx, "select to_regclass($1) is null", table+"_"+r.born.Format("20060102")).Scan(&l.Gone)
}

// prepareDay fills a day, and has parked messages in the one before; it returns the table.
func (r *run) prepareDay(ctx context.Context) (table string, err error) {
	if r.scope, err = r.store.Scope(ctx, "billing", "shop", 0); err != nil {
		return "", err
	}
	if err = r.pool.QueryRow(ctx, "select 'semel_markers_' || number from semel_dated").Scan(&table); err != nil {
		return "", err
	}
	before := &run{scope: r.scope, born: r.born.Add(-12 * time.Hour), step: time.Millisecond}
	r.Say("a day of %d markers is written", r.Markers)
	return table, r.statements(ctx,
		"create extension pg_walinspect",
		"create table effects (id text not null)",
		r.old(table, "1", 1, r.Markers),
		before.old(table, "3", 1, parkedOfDay),
		fmt.Sprintf(oldParked, table, r.scope),
		"vacuum analyze "+table, "analyze semel_inbox")
}

// drop has the reaper work until the day is gone, as a run does beside its work.
func (r *run) drop(ctx context.Context, l *DaysLedger) error {
	for l.Days == 0 && l.Calls < mostCalls {
		if err := r.reaper.Progressed(ctx, "billing", nil); err != nil {
			return err
		}
		if _, err := r.reaper.Advance(ctx, "billing"); err != nil {
			return err
		}
		var from, to string
		if err := r.pool.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&from); err != nil {
			return err
		}
		began := time.Now()
		done, err := r.reaper.Reap(ctx, store.Reaping{Consumer: "billing", Most: 500})
		if err != nil {
			return err
		}
		l.Drop, l.Days, l.Calls = milliseconds(time.Since(began)), done.Days, l.Calls+1
		if done.Days == 0 {
			continue
		}
		if err := r.pool.QueryRow(ctx, "select pg_current_wal_flush_lsn()::text").Scan(&to); err != nil {
			return err
		}
		r.Say("the day is gone in %.0f ms, at call %d", l.Drop, l.Calls)
		if err := r.pool.QueryRow(ctx, walOfDrops, from, to).Scan(&l.WAL); err != nil {
			return err
		}
	}
	return nil
}

// walOfDrops is what the transactions that dropped relations have written: their commits name
// them. Those of the workers drop none.
const walOfDrops = `with r as materialized (select * from pg_get_wal_records_info($1::text::pg_lsn, $2::text::pg_lsn))
select coalesce(sum(record_length), 0)::bigint from r
where xid in (select xid from r where resource_manager = 'Transaction' and record_type = 'COMMIT' and description like '%rels:%')`
