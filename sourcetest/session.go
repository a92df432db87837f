package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/source"
)

// laneLog is an observer that records which lanes are assigned to the source.
type laneLog struct {
	mu   sync.Mutex // protects here
	here []source.Lane
}

func (l *laneLog) Given(lane source.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.here = append(l.here, lane)
}

func (l *laneLog) Revoking(context.Context, source.Lane) {}

func (l *laneLog) Lost(lane source.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.here = slices.DeleteFunc(l.here, func(other source.Lane) bool { return other == lane })
}

func (l *laneLog) given(lane source.Lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.here, lane)
}

// largeBound is a limit on messages and bytes that no case reaches.
var largeBound = source.Bound{Messages: 1000, Bytes: 1 << 30}

// fetch calls Fetch once, waits at most d, and checks the laws that hold for every Fetch.
func (s *session) fetch(d time.Duration, most source.Bound) ([]source.Delivery, error) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	return s.fetchIn(ctx, most)
}

func (s *session) fetchIn(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	got, err := s.source.Fetch(ctx, most)
	for i := range got {
		got[i].Decode(nil)
	}
	if errors.Is(err, source.ErrEnd) {
		s.ended, err = true, nil
		if !s.Can.Ends {
			s.breach("Fetch returned ErrEnd; the harness says that this source never ends")
		}
	}
	s.unanswered = err != nil && len(got) == 0 && ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err != nil && !s.unanswered {
		return got, fmt.Errorf("fetch: %w", err)
	}
	s.checkBound(got, most)
	for _, d := range got {
		s.checkDelivery(d)
		s.deliveryCounts[string(d.Message.Body)]++
	}
	s.deliveries = append(s.deliveries, got...)
	if len(got) == 0 && !s.ended {
		timing.Wait(ctx, time.Millisecond) // Fetch may return early without messages; the pause prevents a busy loop
	}
	return got, nil
}

func (s *session) checkBound(got []source.Delivery, most source.Bound) {
	var size int64
	for _, d := range got {
		size += int64(len(d.Message.Body))
	}
	if len(got) > most.Messages {
		s.breach("Fetch of at most %d messages returned %d", most.Messages, len(got))
	}
	if len(got) > 1 && size > most.Bytes {
		s.breach("Fetch of at most %d bytes returned %d messages with bodies of %d", most.Bytes, len(got), size)
	}
}

func (s *session) checkDelivery(d source.Delivery) {
	if !s.lanes.given(d.Lane) {
		s.breach("a delivery is of lane %q, epoch %d, which was not given before it or is lost", d.Lane.ID, d.Lane.Epoch)
	}
	if d.Refused != reasonname.None {
		s.breach("a good message was refused: %s", d.Refused)
	}
	n := number(d.Message)
	if n < 0 || n >= len(s.published) || !bytes.Equal(d.Message.Body, s.published[n].Body) {
		s.breach("a delivery has a body that was not published: %.100q", d.Message.Body)
		return
	}
	if s.Can.Whole {
		s.checkWhole(d.Message, s.published[n])
	}
	if before := s.deliveryCounts[string(d.Message.Body)]; s.Can.Counts && d.Before < before {
		s.breach("message %d was delivered %d times before, and Before is %d", n, before, d.Before)
	}
	if !s.Can.Counts && d.Before != source.Unknown {
		s.breach("Before is %d; the harness says that this source does not count, so it must be Unknown", d.Before)
	}
}

func (s *session) checkWhole(got, want *semel.Message) {
	if !bytes.Equal(got.Key, want.Key) {
		s.breach("a key arrived as %q and was published as %q", got.Key, want.Key)
	}
	for _, h := range want.Headers {
		if v, _ := got.Headers.Get(h.Name); !bytes.Equal(v, h.Value) {
			s.breach("header %s arrived as %q and was published as %q", h.Name, v, h.Value)
		}
	}
}

// number returns the number in the body of a message, or -1 if the body contains no number.
func number(m *semel.Message) int {
	rest, ok := strings.CutPrefix(string(m.Body), `{"n":`)
	digits, _, found := strings.Cut(rest, ",")
	n, err := strconv.Atoi(digits)
	if !ok || !found || err != nil {
		return -1
	}
	return n
}

// collect calls Fetch until the source has delivered n different messages since it was opened, until the source has
// ended, or until the time Patience has passed.
func (s *session) collect(n int) error {
	patience := time.Now().Add(s.Patience)
	for len(s.deliveryCounts) < n && !s.ended {
		left := time.Until(patience)
		if left <= 0 {
			break
		}
		if _, err := s.fetch(left, largeBound); err != nil {
			return err
		}
	}
	if len(s.deliveryCounts) < n {
		return fmt.Errorf("%d of %d messages were delivered; the first missing one is %d", len(s.deliveryCounts), n, s.missing())
	}
	return nil
}

func (s *session) missing() int {
	return slices.IndexFunc(s.published, func(m *semel.Message) bool { return s.deliveryCounts[string(m.Body)] == 0 })
}

// awaitRedelivery calls Fetch until message n is delivered once more, and returns that delivery.
func (s *session) awaitRedelivery(n int) (source.Delivery, error) {
	patience := time.Now().Add(s.Patience)
	for left := s.Patience; left > 0 && !s.ended; left = time.Until(patience) {
		got, err := s.fetch(left, largeBound)
		if err != nil {
			return source.Delivery{}, err
		}
		for _, d := range got {
			if number(d.Message) == n {
				return d, nil
			}
		}
	}
	return source.Delivery{}, fmt.Errorf("message %d was not redelivered", n)
}

// checkNoDelivery calls Fetch for the duration d, and returns an error if a message arrives for which the function
// mayCome returns false.
func (s *session) checkNoDelivery(d time.Duration, mayCome func(n int) bool) error {
	until := time.Now().Add(d)
	for left := d; left > 0 && !s.ended; left = time.Until(until) {
		got, err := s.fetch(left, largeBound)
		if err != nil {
			return err
		}
		for _, d := range got {
			if n := number(d.Message); !mayCome(n) {
				return fmt.Errorf("message %d was delivered", n)
			}
		}
	}
	return nil
}

func none(int) bool { return false }

// The method settle acks, nacks or dead-letters deliveries, and returns an error if the source reports that some of
// these settlements failed.
func (s *session) settle(kind semel.SettleKind, after time.Duration, all ...source.Delivery) error {
	left, err := s.trySettle(kind, after, all...)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d of %d were left", len(left), len(all))
	}
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}

func (s *session) trySettle(kind semel.SettleKind, after time.Duration, all ...source.Delivery) ([]int, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.Patience)
	defer cancel()
	settlements := make([]source.Settlement, len(all))
	for i := range all {
		settlements[i] = source.Settlement{Delivery: &all[i], Kind: kind, After: after}
	}
	return s.source.Settle(ctx, settlements)
}

func (s *session) firstDelivery(n int) source.Delivery {
	return s.deliveries[slices.IndexFunc(s.deliveries, func(d source.Delivery) bool { return number(d.Message) == n })]
}

// deliveriesExcept returns all deliveries except those of the messages with the given numbers.
func (s *session) deliveriesExcept(ns ...int) []source.Delivery {
	return slices.DeleteFunc(slices.Clone(s.deliveries), func(d source.Delivery) bool {
		return slices.Contains(ns, number(d.Message))
	})
}
