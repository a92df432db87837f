package handlertest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/ended"
	"github.com/semel-go/semel/store"
)

// label is the name of a profiler label on the goroutines that a handler starts. The value of the label differs for
// each run of a handler.
const label = "semeltest"

// runWatched runs a handler. If the handler leaves a goroutine running, runWatched returns an error.
func runWatched(run string, handle func()) error {
	pprof.Do(context.Background(), pprof.Labels(label, run), func(context.Context) { handle() })
	by := ""
	for range looks {
		if by = findLeakedGoroutine(fmt.Sprintf("%q:%q", label, run)); by == "" {
			return nil
		}
		runtime.Gosched()
	}
	return fmt.Errorf(saysGoroutine, by)
}

// looks is how many times in sequence a goroutine must be found running before the handler is blamed for it. A
// goroutine for which the handler has waited may need a moment to end.
const looks = 10

// findLeakedGoroutine returns the name of the function of a goroutine with the given label, or "" if no goroutine has
// the label. Goroutines of packages that manage connections do not count.
func findLeakedGoroutine(labelled string) string {
	var profile bytes.Buffer
	if pprof.Lookup("goroutine").WriteTo(&profile, 1) != nil {
		return ""
	}
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, labelled) {
			continue
		}
		if by := firstFunction(stack); by != "" && !keptByPackages(by) {
			return by
		}
	}
	return ""
}

// firstFunction returns the function that a goroutine began with. The function is read from the last lines of the stack
// in a profile: "# 0x47e1c1 main.work.func1+0x21 /main.go:12".
func firstFunction(stack string) string {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(stack), "\n")) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[1], "0x") {
			return ""
		}
		if name, _, _ := strings.Cut(fields[2], "+0x"); !strings.HasPrefix(name, "sync.(*WaitGroup).Go") {
			return name
		}
	}
	return ""
}

func keptByPackages(function string) bool {
	return slices.ContainsFunc([]string{"net/http.", "database/sql.", "context.", "internal/", "net.", "os/exec.", "runtime.",
		"github.com/jackc/", "modernc.org/", ours + "consumer", ours + "pgxstore", ours + "sqlstore", ours + "internal/worker",
	}, func(prefix string) bool { return strings.HasPrefix(function, prefix) })
}

const ours = "github.com/semel-go/semel/"

// checkTxOpen returns an error if a handler returned nil but has ended its *sql.Tx.
func checkTxOpen[Tx any](ctx context.Context, tx Tx, err error) error {
	direct, is := any(tx).(*sql.Tx)
	if err != nil || !is {
		return nil
	}
	rows, err := direct.QueryContext(ctx, "select 1")
	if err == nil {
		return rows.Close()
	}
	if errors.Is(err, sql.ErrTxDone) {
		return errors.New(saysEndedBy)
	}
	return nil
}

// explainFailure returns an error that explains why a first delivery failed.
func (w *world[Tx]) explainFailure(i int, failed error) error {
	w.mu.Lock()
	remark, err := w.remark, w.err
	w.mu.Unlock()
	var aborted error
	w.plan.set(func(p *plan) { aborted = p.aborted })
	switch {
	case remark != nil:
		return fmt.Errorf("%s: %w", w.name(i), remark)
	case errors.Is(aborted, ended.Err):
		return errors.New(w.name(i) + ": " + saysEndedBy)
	case aborted != nil:
		return fmt.Errorf(saysStatement, w.name(i), aborted)
	case err != nil && (errors.Is(err, sql.ErrTxDone) || w.Store.Classify(err) == store.ClassAborted):
		return fmt.Errorf(saysEnded, w.name(i), err)
	}
	return fmt.Errorf(saysUnusable, failed)
}
