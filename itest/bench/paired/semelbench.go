package paired

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/semel-go/semel/itest/bench"
	"github.com/semel-go/semel/itest/worlds/history"
)

// PostgresTable is of the forms on PostgreSQL.
var PostgresTable = Table{Row: "form", Main: Column{"Semel : by hand", "%.3f"}, More: true,
	Beside: []Column{{"Semel /s", "%.0f"}, {"client µs a message", "%.1f"}}}

// KafkaTable is of the way from a broker into PostgreSQL.
var KafkaTable = Table{Row: "messages", Main: Column{"Semel : loop without deduplication", "%.3f"}, More: true, Beside: PostgresTable.Beside}

// BuildSemelbench builds semelbench of a tree. Each run of it measures with
// these flags.
func BuildSemelbench(ctx context.Context, tree, to string, flags ...string) (Measure, error) {
	if err := history.Go(ctx, tree, "build", "-o", to, "./itest/cmd/semelbench"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Sample, error) {
		printed, err := history.Output(exec.CommandContext(ctx, to, append([]string{"-json"}, flags...)...))
		if err != nil {
			return nil, err
		}
		return parseSemelbench(printed, filepath.Base(to))
	}, nil
}

// Harness are the folders that semelbench is made of, beside what it measures.
var Harness = []string{"itest/bench", "itest/cmd/semelbench", "internal/bodies"}

// Lend puts folders of one tree in the place of another's, so that both are
// measured by the same code. That the other one can be built with it is seen
// when it is.
func Lend(from, to string, folders ...string) error {
	for _, folder := range folders {
		if err := os.RemoveAll(filepath.Join(to, folder)); err != nil {
			return err
		}
		if err := os.CopyFS(filepath.Join(to, folder), os.DirFS(filepath.Join(from, folder))); err != nil {
			return err
		}
	}
	return nil
}

// parseSemelbench reads a report: of each row the ratio to what runs twice in a
// round, the batch written by hand or the loop, by the mean of its runs.
func parseSemelbench(printed, binary string) (Sample, error) {
	var report bench.Report
	if err := json.Unmarshal([]byte(printed), &report); err != nil {
		return nil, fmt.Errorf("what %s printed is no report: %w", binary, err)
	}
	s := Sample{}
	for _, row := range report.Rows {
		hand := (row.Rate(bench.Hand).Median + row.Rate(bench.Again).Median) / 2
		if rate := row.Rate(bench.Semel).Median; hand > 0 {
			s[rowName(row.Conditions)] = Reading{Main: rate / hand, Beside: []float64{rate, row.Busy(bench.Semel).Median}}
		}
	}
	return s, nil
}

// rowName is the form alone for the base row of messages that carry nothing.
func rowName(c bench.Conditions) string {
	name := string(c.Form)
	if !c.IsBase() {
		name += fmt.Sprintf(", %s, %d workers, %s", c.Effect, c.Workers, c.IDs)
	}
	if c.Body != (bench.Body{}) {
		name += fmt.Sprintf(", bodies of %v", c.Body)
	}
	return name
}
