package kafka

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAFrozenWireLetsAConnectionBeMade(t *testing.T) {
	bubble(t, "so that virtual time goes on", func(t *testing.T) {
		w := newWorld(t, 1)
		wire := newWire(&w.network, 0)
		w.wires = append(w.wires, wire)
		conn, err := wire.dial(t.Context(), "tcp", w.cluster.ListenAddrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		wire.freeze()
		answered := func(r kmsg.Request) error {
			if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, r, 1)); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err := io.ReadAtLeast(conn, make([]byte, 1<<16), 4)
			return err
		}
		if err := answered(kmsg.NewPtrApiVersionsRequest()); err != nil {
			t.Errorf("a greeting on a frozen wire: %v", err)
		}
		if err := answered(kmsg.NewPtrMetadataRequest()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a request on a frozen wire: %v", err)
		}
	})
}

// A dial that was given up and waits on would keep virtual time from going on:
// the client waits for its end under a lock.
func TestADialThatIsGivenUpEndsAtOnce(t *testing.T) {
	for name, frozen := range map[string]bool{"while it takes its time": false, "on a frozen wire": true} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			wire := newWire(&w.network, time.Second)
			w.wires = append(w.wires, wire)
			if frozen {
				wire.freeze()
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			began := time.Now()
			if _, err := wire.dial(ctx, "tcp", w.cluster.ListenAddrs()[0]); err == nil || time.Since(began) != time.Millisecond {
				t.Errorf("given up after 1 ms, it ended after %v: %v", time.Since(began), err)
			}
		})
	}
}
