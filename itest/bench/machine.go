package bench

import (
	"context"
	"os"
	"runtime"
	"strings"
	"time"
)

// Head describes the machine on which a measurement ran. The times of a Head are in milliseconds.
type Head struct {
	At     time.Time `json:"at"`
	Commit string    `json:"commit"`
	Server string    `json:"server"`
	Go     string    `json:"go"`
	Cores  int       `json:"cores"`
	// RoundTrip is the duration of "select 1". Flush is the duration of a commit of one row.
	RoundTrip Quartiles `json:"round_trip_ms"`
	Flush     Quartiles `json:"flush_ms"`
	Settings  string    `json:"settings"`
	// LoadBefore and LoadAfter are the load averages of 1, 5 and 15 minutes. The fields are empty if the system does
	// not report load averages.
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
}

const headSettings = `select current_setting('server_version'), string_agg(name || '=' || current_setting(name), ', ' order by name)
from pg_settings where name in ('fsync', 'synchronous_commit', 'shared_buffers', 'max_wal_size', 'deadlock_timeout', 'wal_sync_method')`

// Describe measures the round trip and the flush, and describes the machine.
func (w *World) Describe(ctx context.Context, commit string) (Head, error) {
	h := Head{At: time.Now().UTC().Truncate(time.Second), Commit: commit, Go: runtime.Version(), Cores: runtime.NumCPU(), LoadBefore: Load()}
	d, err := w.database(ctx, 0)
	if err != nil {
		return h, err
	}
	if err := d.pool.QueryRow(ctx, headSettings).Scan(&h.Server, &h.Settings); err != nil {
		return h, err
	}
	if h.RoundTrip, err = d.measureStatement(ctx, 400, "select $1::bigint"); err != nil {
		return h, err
	}
	h.Flush, err = d.measureStatement(ctx, 200, "insert into flushed values ($1)")
	return h, err
}

// measureStatement runs a statement n times and returns the quartiles of the statement's duration in milliseconds.
func (d *database) measureStatement(ctx context.Context, n int, statement string) (Quartiles, error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return Quartiles{}, err
	}
	defer conn.Release()
	var all []float64
	for i := range n {
		began := time.Now()
		if _, err := conn.Exec(ctx, statement, i); err != nil {
			return Quartiles{}, err
		}
		all = append(all, float64(time.Since(began).Microseconds())/1000)
	}
	return QuartilesOf(all), nil
}

// Load returns the load averages, or "" if the system does not report load averages.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
