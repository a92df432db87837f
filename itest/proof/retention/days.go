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

// Days proves the same for daily partitions, where the reaper drops all markers of a day at once. The
// partition of the day before has parked messages and must stay.
type Days struct{ Proof }

// DaysLedger is the result for a dropped partition.
type DaysLedger struct {
	// Markers is the number of markers in the partition. Days is the number of dropped partitions: one, or
	// two if the proof runs past midnight UTC.
	Markers int   `json:"old_markers"`
	Days    int64 `json:"days_dropped"`
	// Calls is how often the reaper was called until the partition was dropped. Drop is the duration of the
	// last call in milliseconds. WAL is how many bytes the dropping transactions wrote to the WAL.
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
	// parkedOfDay is the number of parked messages in the partition that stays.
	parkedOfDay = 1000
	// mostWAL is how much WAL a drop may write. The limit does not depend on the number of markers in the
	// partition.
	mostWAL = 1_000_000
	// mostCalls is how often the reaper may find the partition in use.
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

// Run runs the proof on a private server. An error means that the run itself failed.
func (p Days) Run(ctx context.Context, s proof.Stage) (l DaysLedger, err error) {
	r, err := p.start(ctx, s)
	if err != nil {
		return l, err
	}
	defer r.close()
	const day = 24 * time.Hour
	r.born = time.Now().UTC().Truncate(day).Add(-keep - day) // the newest day whose partition may be dropped
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

// prepareDay fills the partition of a day, adds parked messages to the partition of the day before, and
// returns the table of the first partition.
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

// drop calls the reaper until the reaper has dropped the daily partition. A running consumer calls the reaper
// in the same way.
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

// walOfDrops is the query for the WAL of the transactions that dropped relations. Commit records name the
// dropped relations. The workers' transactions drop none.
const walOfDrops = `with r as materialized (select * from pg_get_wal_records_info($1::text::pg_lsn, $2::text::pg_lsn))
select coalesce(sum(record_length), 0)::bigint from r
where xid in (select xid from r where resource_manager = 'Transaction' and record_type = 'COMMIT' and description like '%rels:%')`
