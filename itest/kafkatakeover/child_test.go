//go:build unix

package kafkatakeover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/workload"
	"github.com/semel-go/semel/kafka"
)

// moverOrder is the variable that makes this program a consumer which kills
// itself with its first messages, before it has settled any.
const moverOrder = "SEMEL_MOVER"

func TestMain(m *testing.M) {
	if text := os.Getenv(moverOrder); text != "" {
		if err := live(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func live(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
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

// dies lets a consumer die before its first settlement; meanwhile is called
// when the group has its offsets.
func (w *world) dies(start kafka.Start, meanwhile func()) {
	w.t.Helper()
	o := w.order
	o.Start = start
	text, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	c := osexec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), moverOrder+"="+string(text))
	var complaints strings.Builder
	c.Stderr = &complaints
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	began := w.until("the group has offsets", func() bool { return len(w.Committed(w.order.Group, w.order.Topic)) == partitions })
	if began == nil {
		meanwhile()
	} else {
		cancel()
	}
	err = c.Wait()
	if status := c.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || ctx.Err() != nil {
		w.t.Fatalf("the consumer did not die by itself: %v, %v: %s", began, err, complaints.String())
	}
}
