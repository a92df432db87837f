//go:build unix

package dead

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readDeadLetters returns the number of dead letters for each message, and compares each dead letter with its message.
// Messages are identified by partition and offset.
func (w *world) readDeadLetters() map[place]int {
	w.t.Helper()
	dead := map[place]int{}
	for _, r := range w.Read(w.order.Dead) {
		partition, errP := strconv.Atoi(topics.Header(r, kafka.HeaderPartition))
		offset, errO := strconv.ParseInt(topics.Header(r, kafka.HeaderOffset), 10, 64)
		p := place{int32(partition), offset}
		s, known := w.sent[p]
		if errP != nil || errO != nil || !known || topics.Header(r, kafka.HeaderTopic) != w.order.Topic {
			w.t.Fatalf("a dead letter says that it comes from %q, partition %q, offset %q", topics.Header(r, kafka.HeaderTopic), topics.Header(r, kafka.HeaderPartition), topics.Header(r, kafka.HeaderOffset))
		}
		dead[p]++
		w.compare(p, s, r)
	}
	return dead
}

// compare checks that a dead letter matches its message.
func (w *world) compare(p place, s testMessage, r *kgo.Record) {
	w.t.Helper()
	was := s.record
	if !bytes.Equal(r.Key, was.Key) || !bytes.Equal(r.Value, was.Value) || (r.Value == nil) != (was.Value == nil) {
		w.t.Errorf("%v: key %q and value %q became %q and %q", p, was.Key, was.Value, r.Key, r.Value)
	}
	for i, h := range was.Headers {
		if i >= len(r.Headers) || r.Headers[i].Key != h.Key || !bytes.Equal(r.Headers[i].Value, h.Value) {
			w.t.Errorf("%v: headers %v became %v", p, was.Headers, r.Headers)
		}
	}
	says := func(name, want string) {
		w.t.Helper()
		if got := topics.Header(r, name); got != want {
			w.t.Errorf("%v: header %s is %q, want %q", p, name, got, want)
		}
	}
	says(kafka.HeaderReason, string(s.reason))
	says(kafka.HeaderAttempts, strconv.Itoa(s.attempts))
	says(kafka.HeaderConsumer, "billing")
	says(kafka.HeaderTime, was.Timestamp.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano))
	if text := topics.Header(r, kafka.HeaderError); s.reason == semel.ReasonPermanent && !strings.Contains(text, errBad.Error()) {
		w.t.Errorf("%v: the error of the dead letter is %q", p, text)
	}
}

// unfinishedWork counts work that was unfinished at the death: dead letters without a row in the store, and rows
// whose messages were not acknowledged.
type unfinishedWork struct{ copied, marked int }

// audit checks the state after a death. Every message that must become a dead letter either is a dead letter already,
// or must still be delivered.
func (w *world) audit() (b unfinishedWork) {
	w.t.Helper()
	dead, rows, committed := w.readDeadLetters(), w.readRows(), w.Committed(w.order.Group, w.order.Topic)
	for p := range dead {
		if _, marked := rows[p]; !marked {
			b.copied++
		}
	}
	for p := range rows {
		if dead[p] == 0 {
			w.t.Errorf("%v is marked and not in the topic", p)
		}
		// A message without an identity is copied to the dead-letter topic before the consumer asks the store. The
		// message may be copied several times until it is acked.
		before, known := w.copies[p]
		if known && before != dead[p] && w.sent[p].reason != semel.ReasonNoIdentity {
			w.t.Errorf("%v was marked, had %d copies, and has %d", p, before, dead[p])
		}
		w.copies[p] = dead[p]
		if p.offset >= committed[p.partition] {
			b.marked++
		}
	}
	for p, s := range w.sent {
		if s.reason != "" && p.offset < committed[p.partition] && (rows[p] == letter{} || dead[p] == 0) {
			w.t.Errorf("%v: %s is settled, has %d dead letters and the row %+v", p, s.id, dead[p], rows[p])
		}
	}
	return b
}

// complete checks the final state, and returns the number of messages with more than one dead letter.
func (w *world) complete() (twice int) {
	w.t.Helper()
	dead, rows, effects := w.readDeadLetters(), w.readRows(), w.readEffects()
	applied := 0
	for p, s := range w.sent {
		switch {
		case s.reason != "":
			if dead[p] == 0 && !w.deleted[p] || rows[p].state != string(store.StateDeadLettered) || rows[p].reason != string(s.reason) {
				w.t.Errorf("%v: %s, to be dead for %s, has %d dead letters and the row %+v", p, s.id, s.reason, dead[p], rows[p])
			}
			if dead[p] > 1 {
				twice++
			}
		case dead[p] != 0 || rows[p] != letter{}:
			w.t.Errorf("%v: %s has %d dead letters and the row %+v", p, s.id, dead[p], rows[p])
		}
		if s.reason == "" && !s.isCopy {
			applied++
			if effects[s.id] != 1 {
				w.t.Errorf("%v: %s has %d effects", p, s.id, effects[s.id])
			}
		}
	}
	if len(effects) != applied {
		w.t.Errorf("%d messages had an effect, want %d", len(effects), applied)
	}
	committed := w.Committed(w.order.Group, w.order.Topic)
	for partition, end := range w.Ends(w.order.Topic) {
		if committed[partition] != end {
			w.t.Errorf("partition %d ends at %d and the group is at %d", partition, end, committed[partition])
		}
	}
	return twice
}
