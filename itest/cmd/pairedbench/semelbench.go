//go:build unix

package main

import (
	"context"
	"path/filepath"

	"github.com/semel-go/semel/itest/bench/paired"
)

// compareSemelbench compares the results of semelbench. If messages have bodies, the semelbench of the
// current tree also measures the base, because the base's own semelbench may not support bodies.
func (f flags) compareSemelbench(ctx context.Context, t trees, folder string) error {
	table, args := paired.PostgresTable, f.semelbenchArgs()
	if f.kafka != "" {
		table = paired.KafkaTable
	}
	if f.kafka != "" || f.body != "" {
		if err := paired.Lend(t.present, t.base, paired.Harness...); err != nil {
			return err
		}
	}
	base, err := paired.BuildSemelbench(ctx, t.base, filepath.Join(folder, "base"), args...)
	if err != nil {
		return err
	}
	present, err := paired.BuildSemelbench(ctx, t.present, filepath.Join(folder, "present"), args...)
	if err != nil {
		return err
	}
	return f.write(ctx, t, table, base, present)
}

// semelbenchArgs returns the flags for the command semelbench. On PostgreSQL, the flags select each form of
// handler under the conditions of bench.Base. With a broker, the flags select the default of 8 workers.
func (f flags) semelbenchArgs() []string {
	args := []string{"-dsn", f.dsn, "-rounds", "1"}
	if f.body != "" {
		args = append(args, "-body", f.body)
	}
	if f.kafka == "" {
		return append(args, "-base", "-target", f.busy.String())
	}
	if f.body == "" {
		args = append(args, "-webhooks", f.webhooks)
	}
	return append(args, "-kafka", f.kafka, "-only", " 8 workers")
}
