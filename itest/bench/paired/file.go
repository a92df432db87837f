//go:build unix

package paired

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/bench"
	"github.com/semel-go/semel/itest/proof/file"
	"github.com/semel-go/semel/itest/worlds/history"
)

// FileTable has the columns for runs of the binary over a file.
var FileTable = Table{Row: "cores", Main: Column{"messages /s", "%.0f"}, More: true,
	Beside: []Column{{"MB/s", "%.1f"}, {"µs of processor a message", "%.1f"}, {"resident MB", "%.0f"}}}

// FileRun measures a run of the binary that applies a file of webhooks to SQLite.
type FileRun struct {
	Input file.Input
	// Folder is the folder for all files.
	Folder string
	// Cores are the values of GOMAXPROCS to measure, one after the other.
	Cores []int
	size  int64
}

// Names of the consumer, of the input and of the outputs of a run.
const (
	fileConsumer = "counter"
	fileInput    = "webhooks.jsonl"
	filePolicy   = "semel.yaml"
	fileDatabase = "counts.db"
)

const filePolicyText = `version: 1
stores:
  counts: {sqlite: {path: counts.db}, migrate: true, setup: setup.sql}
sources:
  webhooks: {file: {path: webhooks.jsonl, format: envelope}}
consumers:
  counter:
    from: webhooks
    store: counts
    strategy: marker
    identity: {id: "header:X-GitHub-Delivery"}
    handler:
      sql:
        params:
          type: "header:X-GitHub-Event"
          action: "body:/action?"
          sender: "body:/sender/login?"
          repository: "body:/repository/full_name?"
        statements:
          - insert into events (type, action, sender, repository) values (:type, :action, :sender, :repository)
`

const fileSetup = `create table events (type text not null, action text, sender text, repository text) strict;
`

// Prepare writes the input and the policy, and returns the size of the input in bytes.
func (f *FileRun) Prepare() (size int64, err error) {
	for name, text := range map[string]string{filePolicy: filePolicyText, "setup.sql": fileSetup} {
		if err := os.WriteFile(filepath.Join(f.Folder, name), []byte(text), 0o644); err != nil {
			return 0, err
		}
	}
	f.size, err = f.Input.WriteFile(filepath.Join(f.Folder, fileInput))
	return f.size, err
}

// BuildFile builds the binary of a source tree.
func BuildFile(ctx context.Context, tree, to string) error {
	return history.Go(ctx, tree, "build", "-o", to, "./cmd/semel")
}

// Measure returns a function that runs a binary over the input, once for each number of cores.
func (f *FileRun) Measure(binary string) Measure {
	return func(ctx context.Context) (Sample, error) {
		s := Sample{}
		for _, cores := range f.Cores {
			r, err := f.run(ctx, binary, cores)
			if err != nil {
				return nil, fmt.Errorf("GOMAXPROCS=%d: %w", cores, err)
			}
			s[coresName(cores)] = r
		}
		return s, nil
	}
}

func coresName(cores int) string { return fmt.Sprintf("GOMAXPROCS=%d", cores) }

func (f *FileRun) run(ctx context.Context, binary string, cores int) (r Reading, err error) {
	for _, end := range []string{"", "-wal", "-shm"} { // remove the files of the previous run
		if err := os.RemoveAll(filepath.Join(f.Folder, fileDatabase+end)); err != nil {
			return r, err
		}
	}
	call := exec.CommandContext(ctx, binary, append([]string{"run", "--config", filePolicy}, jsonFlags(ctx, binary)...)...)
	call.Dir, call.Env = f.Folder, append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", cores))
	var said bytes.Buffer
	call.Stderr = &said
	began := time.Now()
	printed, err := call.Output()
	took := time.Since(began)
	if err != nil {
		return r, fmt.Errorf("%s: %w\n%s", call, err, said.String())
	}
	if err := f.complete(printed); err != nil {
		return r, fmt.Errorf("%s: %w", call, err)
	}
	busy := call.ProcessState.UserTime() + call.ProcessState.SystemTime()
	messages := float64(f.Input.Deliveries)
	return Reading{Main: messages / took.Seconds(), Beside: []float64{
		float64(f.size) / 1e6 / took.Seconds(), float64(busy.Microseconds()) / messages, maxMemory(call.ProcessState),
	}}, nil
}

// jsonFlags returns the flags with which a binary prints JSON, because the flags of compared commits can differ.
func jsonFlags(ctx context.Context, binary string) []string {
	help, err := exec.CommandContext(ctx, binary, "run", "--help").Output()
	if err == nil && bytes.Contains(help, []byte("--json")) {
		return []string{"--json"}
	}
	return []string{"-o", "json"}
}

// complete returns an error if the counts in the output of a run are wrong.
func (f *FileRun) complete(printed []byte) error {
	var summary struct{ Consumers map[string]semel.Counts }
	if err := json.Unmarshal(printed, &summary); err != nil {
		return fmt.Errorf("it printed no summary: %w", err)
	}
	counts := summary.Consumers[fileConsumer]
	if counts.Applied != int64(f.Input.IDs) || counts.Duplicates != int64(f.Input.Deliveries-f.Input.IDs) {
		return fmt.Errorf("not each of %d messages was applied once out of %d deliveries: %+v", f.Input.IDs, f.Input.Deliveries, counts)
	}
	return nil
}

// maxMemory returns the maximum memory of a process in MB. The result is 0 if the system does not report
// the memory.
func maxMemory(state *os.ProcessState) float64 {
	usage, is := state.SysUsage().(*syscall.Rusage)
	if !is {
		return 0
	}
	if runtime.GOOS == "darwin" { // macOS reports bytes, other systems kilobytes
		return float64(usage.Maxrss) / 1e6
	}
	return float64(usage.Maxrss) * 1024 / 1e6
}

// Cores divides, in each round, the speed with many cores by the speed with few cores. The parameters few and many are
// the two numbers of cores. The results are the quartiles of these fractions for the base and for the current tree.
func (c Comparison) Cores(few, many int) (base, present bench.Quartiles) {
	var earlier, now []float64
	ratio := func(s Sample) float64 { return s[coresName(many)].Main / s[coresName(few)].Main }
	for _, r := range c.Rounds {
		earlier, now = append(earlier, ratio(r.First), ratio(r.Again)), append(now, ratio(r.Present))
	}
	return bench.QuartilesOf(earlier), bench.QuartilesOf(now)
}
