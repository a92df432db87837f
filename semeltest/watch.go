package semeltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"

	"github.com/semel-go/semel/store"
)

// label marks the goroutines that a handler starts.
const label = "semeltest_handler"

// watched runs a handler and reports a goroutine that it left running.
func watched(handle func()) error {
	pprof.Do(context.Background(), pprof.Labels(label, "yes"), func(context.Context) { handle() })
	if by := leftover(); by != "" {
		return fmt.Errorf("the handler returned while its goroutine %s was running, which may use the transaction after it has ended; wait for it before you return", by)
	}
	return nil
}

// leftover returns the function of a goroutine with the label, "" if there is none. Goroutines of
// connections, which packages keep, do not count.
func leftover() string {
	var profile bytes.Buffer
	if pprof.Lookup("goroutine").WriteTo(&profile, 1) != nil {
		return ""
	}
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, label) {
			continue
		}
		lines := strings.Split(strings.TrimSpace(stack), "\n")
		fields := strings.Fields(lines[len(lines)-1])
		if len(fields) < 3 || keptByPackages(fields[2]) {
			continue
		}
		name, _, _ := strings.Cut(fields[2], "+0x")
		return name
	}
	return ""
}

func keptByPackages(function string) bool {
	for _, prefix := range []string{"net/http.", "database/sql.", "context.", "internal/", "net.", "os/exec.", "runtime", "github.com/jackc/", "modernc.org/"} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

var errEndedBy = errors.New("the handler committed or rolled back the transaction itself; return nil to commit, an error to roll back")

// endedBy reports that a handler which returned nil has ended its *sql.Tx.
func endedBy[Tx any](ctx context.Context, tx Tx, err error) error {
	direct, is := any(tx).(*sql.Tx)
	if err != nil || !is {
		return nil
	}
	rows, err := direct.QueryContext(ctx, "select 1")
	if err == nil {
		return rows.Close()
	}
	if errors.Is(err, sql.ErrTxDone) {
		return errEndedBy
	}
	return nil
}

// explained returns what the failure of a first delivery means.
func (w *world[Tx]) explained(i int, failed error) error {
	w.mu.Lock()
	remark, err := w.remark, w.err
	w.mu.Unlock()
	var aborted error
	w.plan.set(func(p *plan) { aborted = p.aborted })
	switch {
	case remark != nil:
		return fmt.Errorf("%s: %w", w.name(i), remark)
	case aborted != nil && strings.Contains(aborted.Error(), "by itself"):
		return fmt.Errorf("%s: %w", w.name(i), errEndedBy)
	case aborted != nil:
		return fmt.Errorf("%s: the handler returned nil although a statement failed; return the errors of the transaction: %w", w.name(i), aborted)
	case err != nil && (errors.Is(err, sql.ErrTxDone) || w.Store.Classify(err) == store.ClassAborted):
		return fmt.Errorf("%s: the handler used a transaction that had ended, perhaps that of an earlier message; use only the tx of the call, and only until you return: %w", w.name(i), err)
	}
	return fmt.Errorf("%w; give messages that the handler can process", failed)
}
