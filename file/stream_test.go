package file_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
)

var plain = file.Options{Format: file.JSON}

func TestStandardInputIsReadToItsEnd(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"at once":       strings.NewReader("1\n\r\n2\n[3]"),
		"byte by byte":  iotest.OneByteReader(strings.NewReader("\xef\xbb\xbf1\r\n2\n[3]")),
		"end with data": iotest.DataErrReader(strings.NewReader("1\n2\n[3]\n")),
	} {
		t.Run(name, func(t *testing.T) {
			s := file.Stdin(r, plain)
			var all []source.Delivery
			for len(all) < 3 {
				got, err := s.Fetch(t.Context(), wide)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, got...)
			}
			if string(all[2].Message.Body) != "[3]" || all[2].Lane.ID != "stdin" || all[2].Message.Topic != "stdin" {
				t.Errorf("the last is %q of %q", all[2].Message.Body, all[2].Lane.ID)
			}
			var done []source.Settlement
			for i := range all {
				done = append(done, source.Settlement{Delivery: &all[i], Kind: semel.Ack})
			}
			if _, err := s.Settle(t.Context(), done); err != nil {
				t.Error(err)
			}
			if _, err := s.Fetch(t.Context(), wide); !errors.Is(err, source.ErrEnd) {
				t.Errorf("it ended with %v", err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStandardInputHasNoPosition(t *testing.T) {
	t.Run("case_13_a_stream_needs_no_position_store", func(t *testing.T) {
		var s source.Source = file.Stdin(strings.NewReader(""), plain)
		if s.Info().Positions != nil {
			t.Error("the stream asks for a position store")
		}
	})
}

func TestAFetchOfStandardInputEndsWithItsContextAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := file.Stdin(r, plain)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if got, err := s.Fetch(ctx, wide); err != nil || len(got) > 0 {
				t.Fatal(got, err)
			}
			cancel()
		}
		go func() {
			_, _ = io.WriteString(w, "1\n2")
			_, _ = io.WriteString(w, "3\n")
			_ = w.Close()
		}()
		synctest.Wait()
		var bodies []string
		for len(bodies) < 2 {
			got, err := s.Fetch(t.Context(), wide)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range got {
				bodies = append(bodies, string(d.Message.Body))
			}
		}
		if strings.Join(bodies, " ") != "1 23" {
			t.Errorf("delivered %q", bodies)
		}
		_ = s.Close(t.Context())
	})
}

func TestCloseEndsAReadOfAPipeThatKnowsDeadlines(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = w.Close(), r.Close() }()
	s := file.Stdin(r, plain)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Fetch(ctx, wide); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := s.Fetch(t.Context(), wide)
		ended <- err
	}()
	if _, err := w.WriteString("1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil { // Close waits for the pump
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, semel.ErrClosed) {
		t.Errorf("Fetch ended with %v", err)
	}
}

func TestAStreamThatFailsSaysSoAndIsAskedAgain(t *testing.T) {
	broken := errors.New("the line is dead")
	s := file.Stdin(io.MultiReader(strings.NewReader("1\n"), iotest.ErrReader(broken)), plain)
	if got, err := s.Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1}); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	for range 2 {
		if _, err := s.Fetch(t.Context(), wide); !errors.Is(err, broken) || !strings.Contains(err.Error(), "stdin") {
			t.Errorf("it says: %v", err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStreamWithAFaultyOptionSaysSo(t *testing.T) {
	s := file.Stdin(strings.NewReader(""), file.Options{Format: 7})
	if _, err := s.Fetch(t.Context(), wide); err == nil || s.Validate() == nil {
		t.Error("an unknown format is accepted")
	}
}

// stuckReader blocks until a deadline is set. Some stuckReaders do not support deadlines.
type stuckReader struct {
	knows    error
	deadline chan struct{}
	returned bool
}

func (r *stuckReader) Read([]byte) (int, error) {
	<-r.deadline
	timer := time.NewTimer(time.Second) // in a synctest bubble
	<-timer.C
	r.returned = true
	return 0, os.ErrDeadlineExceeded
}

func (r *stuckReader) SetReadDeadline(at time.Time) error {
	if r.knows == nil && !at.IsZero() {
		close(r.deadline)
	}
	return r.knows
}

func TestCloseWaitsForTheReadIfItCanEndItAndOnlyThen(t *testing.T) {
	for name, knows := range map[string]error{"knows deadlines": nil, "knows none": os.ErrNoDeadline} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &stuckReader{knows: knows, deadline: make(chan struct{})}
				s := file.Stdin(r, plain)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if got, err := s.Fetch(ctx, wide); err != nil || len(got) > 0 {
					t.Fatal(got, err)
				}
				began := time.Now()
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if knows == nil && !r.returned {
					t.Error("Close did not wait")
				}
				if knows != nil {
					if time.Since(began) > 0 {
						t.Error("Close waited")
					}
					close(r.deadline)
					wait(t, 2*time.Second) // the pump ends with its read
				}
			})
		})
	}
}

func TestARefusedLineOfAStreamThatComesAgain(t *testing.T) {
	t.Run("it_is_refused_again_with_the_same_reason", func(t *testing.T) {
		s := file.Stdin(strings.NewReader("{broken\n"), plain)
		var reasons []semel.Reason
		for range 2 {
			got, err := s.Fetch(t.Context(), wide)
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			got[0].Decode(nil)
			reasons = append(reasons, got[0].Refused)
			if _, err := s.Settle(t.Context(), []source.Settlement{{Delivery: &got[0], Kind: semel.Nack}}); err != nil {
				t.Error(err)
			}
		}
		if reasons[0] != semel.ReasonMalformed || reasons[1] != reasons[0] {
			t.Errorf("it was refused as %q", reasons)
		}
	})
	t.Run("what_was_handed_back_unread_is_read_when_it_comes_again", func(t *testing.T) {
		s := file.Stdin(strings.NewReader(`{"body":{"a":1}}`+"\n"), file.Options{Format: file.Envelope})
		first, err := s.Fetch(t.Context(), wide)
		if err != nil || len(first) != 1 {
			t.Fatal(first, err)
		}
		if _, err := s.Settle(t.Context(), []source.Settlement{{Delivery: &first[0], Kind: semel.Nack}}); err != nil {
			t.Error(err)
		}
		second, err := s.Fetch(t.Context(), wide)
		if err != nil || len(second) != 1 {
			t.Fatal(second, err)
		}
		decodedAll(second)
		decodedAll(second) // a second call changes nothing
		if body := string(second[0].Message.Body); body != `{"a":1}` || second[0].Refused != reasonname.None {
			t.Errorf("%q, %s", body, second[0].Detail)
		}
	})
}
