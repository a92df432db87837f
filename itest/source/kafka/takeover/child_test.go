//go:build unix

package takeover

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/kafka"
)

func TestMain(m *testing.M) { children.Main(m, runChild) }

// runChild runs a consumer that kills itself when it gets its first messages, before it has acked any message.
func runChild(o order) error {
	consumer, closePool, err := o.open(func(options *workload.Options) {
		options.Plan.At = func(p faults.Point, _ int) {
			if p == faults.AfterMark {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	})
	if err != nil {
		return err
	}
	defer closePool()
	return errors.Join(consumer.Run(context.Background()), errors.New("it did not die"))
}

// runAndKill runs a consumer that kills itself before its first ack. The function meanwhile is called when the
// group has its offsets.
func (w *world) runAndKill(start kafka.Start, meanwhile func()) {
	w.t.Helper()
	o := w.order
	o.Start = start
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	c := children.Command(ctx, w.t, o)
	var complaints strings.Builder
	c.Stderr = &complaints
	must.OK(w.t, c.Start())
	began := w.waitUntil("the group has offsets", func() bool { return len(w.Committed(w.order.Group, w.order.Topic)) == partitions })
	if began == nil {
		meanwhile()
	} else {
		cancel()
	}
	err := c.Wait()
	if status := c.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || ctx.Err() != nil {
		w.t.Fatalf("the consumer did not die by itself: %v, %v: %s", began, err, complaints.String())
	}
}
