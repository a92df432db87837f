package file_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// besideNewer runs a consumer over n lines, for at most a minute. The first line has a marker that a newer release
// wrote.
func besideNewer(t *testing.T, n, room int, open func(path string) source.Source, idle time.Duration) (left []semel.Unfinished, ran time.Duration, err error) {
	t.Helper()
	st := memstore.New()
	scope, err := st.Scope(t.Context(), "billing", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := st.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte("0"), As: 9}})
	if err != nil {
		t.Fatal(err)
	}
	if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
		t.Fatal(r)
	}
	var all strings.Builder
	for i := range n {
		all.WriteString(`{"specversion":"1.0","id":"` + strconv.Itoa(i) + `","source":"shop","type":"order"}` + "\n")
	}
	path := t.TempDir() + "/events"
	write(t, path, all.String())
	c, err := consumer.New(st, func(context.Context, *memstore.Tx, *semel.Message) error { return nil }, consumer.Config{
		Name: "billing", Source: open(path), Identity: identity.CloudEvents(), IdleExit: idle,
		MaxUnacked: source.Bound{Messages: room, Bytes: 1 << 30}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	err = c.Run(ctx)
	return c.Unfinished(), time.Since(began), err
}

func TestMessagesOfANewerReleaseFillTheMemory(t *testing.T) {
	t.Run("a_file_that_is_followed_has_no_end_and_its_run_goes_on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, ran, err := besideNewer(t, 1000, 100, func(path string) source.Source { return file.Open(path, file.Options{Follow: true}) }, 0)
			if ran < time.Minute || err != nil {
				t.Errorf("it ended after %v: %v", ran, err)
			}
		})
	})
	t.Run("nor_has_standard_input_that_stays_open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			defer w.Close()
			go func() {
				var all strings.Builder
				for i := range 1000 {
					all.WriteString(`{"specversion":"1.0","id":"` + strconv.Itoa(i) + `","source":"shop","type":"order"}` + "\n")
				}
				_, _ = w.Write([]byte(all.String()))
			}()
			_, ran, err := besideNewer(t, 0, 100, func(string) source.Source { return file.Stdin(r, file.Options{}) }, 0)
			_ = r.Close()
			if ran < time.Minute || err != nil {
				t.Errorf("it ended after %v: %v", ran, err)
			}
		})
	})
	for name, idle := range map[string]time.Duration{"because_the_file_ends": 0, "with_IdleExit": 2 * time.Second} {
		t.Run("what_is_left_is_not_counted_as_less_than_it_is_"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left, _, err := besideNewer(t, 1000, 100, func(path string) source.Source { return file.Open(path, file.Options{}) }, idle)
				if !errors.Is(err, semel.ErrUnfinished) || len(left) != 1 || left[0].Messages >= 0 && left[0].Messages < 1000 {
					t.Errorf("%+v, %v", left, err)
				}
			})
		})
	}
}
