//go:build unix

package chaos

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// SoakLedger is the ledger of a soak.
type SoakLedger struct {
	Ledger
	Growth
	// Seeded is the number of old markers that the fault test wrote. Removed is the number of markers, old and new, that
	// the reaper removed.
	Seeded  int `json:"old_markers"`
	Removed int `json:"markers_removed"`
}

// Wrong implements proof.Ledger.
func (l SoakLedger) Wrong() error {
	if l.Removed < 1 {
		return cmp.Or(l.Ledger.Wrong(), fmt.Errorf("no marker was removed, although %d were written", l.Seeded))
	}
	return cmp.Or(l.Ledger.Wrong(), l.Growth.Wrong())
}

// Fault implements proof.Ledger.
func (l SoakLedger) Fault() error { return cmp.Or(l.Wrong(), l.Ledger.Fault(), l.Growth.Fault()) }

const (
	// The retention of markers. It must be longer than a record can stay in the topic, which is at least five minutes.
	keep = 10 * time.Minute
	// The age of the oldest marker that the fault test writes.
	oldest = keep + time.Minute
	// The fault unreaped makes the members keep markers that are older than the retention.
	unreaped = "unreaped"
)

// RunSoak runs the fault test without faults and returns the ledger; see SoakLedger.Wrong and SoakLedger.Fault.
func (p Proof) RunSoak(ctx context.Context, s proof.Stage) (l SoakLedger) {
	r := p.newRun(ctx, s, proof.Setup)
	defer r.close()
	r.OnKafka(services.KafkaOptions{})
	r.OnPostgres(services.Options{Settings: []string{"autovacuum_naptime = 5s", "autovacuum_vacuum_scale_factor = 0.02"}})
	r.writePolicy(fmt.Sprintf("retention: {keep: %s, off: %t}", keep, p.Plant == unreaped))
	short, long, appended := "60000", "120000", "LogAppendTime"
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, partitions, -1, map[string]*string{"segment.ms": &short, "retention.ms": &long, "message.timestamp.type": &appended}, topic))
	r.prove(ctx, func(ctx context.Context) {
		r.Feed.Rest() // the rate is the same until the end
		l.Seeded, l.Growth = r.seed(ctx), r.watch(ctx)
	})
	l.Ledger = r.ledger
	l.Removed = l.Seeded + l.Applied - r.Count(ctx, `select count(*) from semel_markers`)
	return l
}

// seed writes old markers and completed rows of both consumers, at the rate at which messages arrive. The reaper then
// removes as much as arrives from the beginning, although the run is shorter than the retention.
func (r *run) seed(ctx context.Context) int {
	count := int(oldest.Seconds()) * r.Rate
	r.Until(ctx, func() bool {
		return r.Count(ctx, `select count(distinct scope) from semel_markers where outcome = 1`) == 2
	})
	step := oldest / time.Duration(count)
	r.Exec(ctx, fmt.Sprintf(oldMarkers, count, step.Microseconds()))
	r.Exec(ctx, oldRows)
	r.Exec(ctx, "analyze semel_markers, semel_inbox")
	r.Say("%d old markers are written", 2*count)
	return 2 * count
}

// SQL that writes copies of a marker of each consumer, with random ids and earlier times.
const oldMarkers = `insert into semel_markers (scope, id, outcome, version, sum, at)
select m.scope, substr(m.id, 1, 1) || substr(sha256(int8send(n)), 1, length(m.id) - 1), m.outcome, m.version, m.sum, now() - n * %[2]d * interval '1 microsecond'
from (select distinct on (scope) * from semel_markers where outcome = 1) m, generate_series(1, %[1]d) n`

// SQL that writes a copy of a completed row for each of the markers that oldMarkers wrote for the receiver.
const oldRows = `insert into semel_inbox (revision, scope, consumer, id, conflict, version, sum, surrogate, state, reason, topic, partition, "offset",
  broker_id, key, type, schema, envelope, payload, received_at, changed_at, processed_at, started, finished, repeated, first_error, last_error)
select i.revision, i.scope, i.consumer, m.id, i.conflict, i.version, i.sum, i.surrogate, i.state, i.reason, i.topic, i.partition, i."offset",
  i.broker_id, i.key, i.type, i.schema, i.envelope, i.payload, m.at, m.at, m.at, i.started, i.finished, i.repeated, i.first_error, i.last_error
from (select * from semel_inbox where state = 'COMPLETED' limit 1) i join semel_markers m using (scope) on conflict do nothing`

// watch takes samples while messages are published.
func (r *run) watch(ctx context.Context) Growth {
	var all []sample
	next := time.Now()
	r.Until(ctx, func() bool {
		if !time.Now().Before(next) {
			all = append(all, r.sample(ctx))
			next = next.Add(r.Every)
			r.Say("%+v", all[len(all)-1])
		}
		return r.Feed.Over()
	})
	return newGrowth(all)
}

// sample measures the memory and goroutines of all processes together, and the sizes in the database.
func (r *run) sample(ctx context.Context) sample {
	s := sample{}
	for _, address := range r.addresses {
		answer := proof.Must(http.Get("http://" + address + "/metrics"))
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), " ")
			if name == "process_resident_memory_bytes" || name == "go_goroutines" {
				s[name] += int64(proof.Must(strconv.ParseFloat(value, 64)))
			}
		}
		proof.Check(answer.Body.Close())
	}
	for name, query := range map[string]string{
		"connections": `select count(*) from pg_stat_activity where application_name like 'member-%'`,
		"table_bytes": `select sum(pg_table_size(oid)) from pg_class where relkind = 'r' and relname like 'semel\_%'`,
		"index_bytes": `select sum(pg_indexes_size(oid)) from pg_class where relkind = 'r' and relname like 'semel\_%'`,
	} {
		s[name] = int64(r.Count(ctx, query))
	}
	return s
}
