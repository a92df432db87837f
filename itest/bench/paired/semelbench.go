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

// PostgresTable has the columns for the forms of handlers on PostgreSQL.
var PostgresTable = Table{Row: "form", Main: Column{"Semel : by hand", "%.3f"}, More: true,
	Beside: []Column{{"Semel /s", "%.0f"}, {"client µs a message", "%.1f"}}}

// KafkaTable has the columns for the path from a broker to PostgreSQL.
var KafkaTable = Table{Row: "messages", Main: Column{"Semel : loop without deduplication", "%.3f"}, More: true, Beside: PostgresTable.Beside}

// BuildSemelbench builds semelbench from a tree. The returned Measure runs semelbench with the given flags.
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

// Harness lists the folders of semelbench itself. The code that semelbench measures is in other folders.
var Harness = []string{"itest/bench", "itest/cmd/semelbench", "internal/bodies"}

// Lend replaces folders of one tree by the folders of another tree, so that the same benchmark code measures both
// trees. If the benchmark code of the other tree does not compile in this tree, the build fails.
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

// parseSemelbench parses a report. For each row, parseSemelbench returns Semel's rate divided by the mean rate of the
// implementation that runs twice in a round, which is the hand-written batch or the loop.
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

// rowName returns the name of a row. For the conditions of bench.Base and messages without a body, the name is the form
// of the handler.
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
