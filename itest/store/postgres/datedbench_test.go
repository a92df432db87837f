package postgres

import (
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// BenchmarkADayIsDropped measures how long it takes to drop a daily partition with a million markers. For comparison,
// the benchmark deletes as many markers one by one.
func BenchmarkADayIsDropped(b *testing.B) {
	const markers = 1_000_000
	db := newDatabase(b)
	for range b.N {
		s := newFixture(b, db, sqlstore.Options{}).useDailyPartitions(b, 3)
		s.setRetention(b, 2*aDay)
		if _, err := s.Instance.Store.Scope(b.Context(), "billing", "shop", 0); err != nil {
			b.Fatal(err)
		}
		s.exec(b, `insert into in.semel_markers_1 (scope, id, outcome, version, sum, at)
select 1, in.semel_day_bound('uuidv7', current_date - 3) || substr(sha256(int8send(n)), 1, 10), 1, 1, substr(sha256(int8send(n)), 1, 16), now()
from generate_series(1, $1::bigint) n`, markers)
		s.exec(b, "insert into in.semel_markers select scope, at - interval '9 days', outcome, version, id, sum, long_id from in.semel_markers_1")
		s.exec(b, "checkpoint")
		wal := func() (n int64) {
			return queryOne[int64](b, db, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
		}
		if _, err := s.reaper().Advance(b.Context(), "billing"); err != nil {
			b.Fatal(err)
		}
		first, began := wal(), time.Now()
		r, err := s.reaper().Reap(b.Context(), store.Reaping{Consumer: "billing", Most: 1000})
		if err != nil || r.Days != 1 {
			b.Fatalf("%+v, %v", r, err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/drop")
		b.ReportMetric(float64(wal()-first), "walbytes/drop")
		first, began = wal(), time.Now()
		s.exec(b, "delete from in.semel_markers")
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/delete")
		b.ReportMetric(float64(wal()-first), "walbytes/delete")
	}
}

// BenchmarkBytesOfAMarker measures the size of a million markers, once in a daily partition and once in the single
// table. The markers have fingerprints. The markers' ids are UUIDs of version 7 of one day, written in the order of
// their times, a thousand in each transaction.
func BenchmarkBytesOfAMarker(b *testing.B) {
	const markers, atOnce = 1_000_000, 1000
	db := newDatabase(b)
	for range b.N {
		s := newFixture(b, db, sqlstore.Options{}).useDailyPartitions(b, 0)
		day := "in.semel_markers_1_" + time.Now().UTC().Format("20060102")
		for _, table := range []string{"in.semel_markers_1", "in.semel_markers"} {
			for first := range markers / atOnce {
				s.exec(b, `insert into `+table+` (scope, id, outcome, version, sum, at)
select 1, substr(in.semel_day_bound('uuidv7', (clock_timestamp() at time zone 'UTC')::date), 1, 1)
  || substr(int8send((extract(epoch from (clock_timestamp() at time zone 'UTC')::date) * 1000)::bigint + n), 3)
  || substr(sha256(int8send(n)), 1, 10), 1, 1, substr(sha256(int8send(n)), 1, 16), clock_timestamp()
from generate_series($1::bigint, $2::bigint) n`, first*atOnce, first*atOnce+atOnce-1)
			}
		}
		size := func(function, table string) float64 {
			return float64(queryOne[int64](b, db, s.inSchema("select "+function+"('"+table+"'::regclass)"))) / markers
		}
		for name, table := range map[string]string{"day": day, "all": "in.semel_markers"} {
			b.ReportMetric(size("pg_table_size", table), "table-bytes/"+name)
			b.ReportMetric(size("pg_indexes_size", table), "index-bytes/"+name)
		}
	}
}
