//go:build unix

package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// orderKeys returns the lines of the policy that make the consumer process records in order: by message key, or by the
// version of a stream.
func (p Proof) orderKeys() []string {
	if p.Keys {
		return slices.Concat([]string{"lanes: key"}, proof.InboxKeys())
	}
	return []string{
		"lanes: key", `version: {stream: "header:stream", number: "header:version"}`, "inbox: {lease: 4s, poll: 200ms}",
		"retry: {max_attempts: 40, initial_delay: 100ms, max_delay: 2s}", "max_in_memory_wait: 1s",
	}
}

const (
	// The number of keys. The events are distributed over the keys by Zipf's law. In one stream in ten, the versions
	// are shuffled within a window.
	streams      = 1000
	shuffled     = 10
	streamWindow = 8
	// Numbers of special streams. In a late stream, one version is published after everything else. In a
	// filled stream, one version comes from a file. In a skipped stream, one version never comes.
	lateStreams, filledStreams, skippedStreams = 5, 5, 5
)

// version is an event's stream and the event's number in this stream.
type version struct{ stream, number int }

// makeVersions returns the stream and number of each event, in the order of publishing. In the shuffled streams
// the numbers are not in order. A skipped stream has no version 2.
func (p Proof) makeVersions() []version {
	random := rand.New(rand.NewPCG(p.Seed, 11))
	zipf := rand.NewZipf(random, 1.1, 1, streams-1)
	next := make([]int, 2*streams)
	all := make([]version, p.Events)
	for i := range all {
		s := int(zipf.Uint64())
		if p.Keys { // with Keys, no streams are late, filled or skipped
			s += streams
		}
		next[s]++
		if next[s] == 2 && isSkipped(s) {
			next[s]++
		}
		all[i] = version{s, next[s]}
	}
	return all
}

// Streams with small numbers have the most events. The skipped streams have small numbers, so that each skipped stream
// has several versions.
func isSkipped(stream int) bool { return stream >= 20 && stream < 20+skippedStreams }
func (v version) isLate() bool {
	return v.number == 2 && v.stream >= 40 && v.stream < 40+lateStreams
}
func (v version) isFilled() bool {
	return v.number == 2 && v.stream >= 50 && v.stream < 50+filledStreams
}

// place returns the position at which an event is published, in units of half an event. An event of a
// shuffled stream comes a little later. A late version comes after all other events.
func (p Proof) place(i int, v version, random *rand.Rand) int {
	switch {
	case v.isLate():
		return 2 * (p.Events + 10_000)
	case v.stream%shuffled == shuffled-1 && !p.Keys:
		return 2 * (i + random.IntN(streamWindow*streams/10))
	}
	return 2 * i
}

// setVersion makes a record a version of its stream. All versions of a stream go to the same partition.
func (r *run) setVersion(record *kgo.Record, event int) {
	v := r.places[event]
	record.Key = []byte(streamName(v.stream))
	record.Partition = int32(v.stream % r.Partitions)
	record.Headers = append(record.Headers, kgo.RecordHeader{Key: "stream", Value: record.Key},
		kgo.RecordHeader{Key: "version", Value: strconv.AppendInt(nil, int64(v.number), 10)})
}

func streamName(n int) string { return fmt.Sprint("s", n) }

// fillGaps runs a command that feeds the unpublished versions to the consumer from a file.
func (r *run) fillGaps(ctx context.Context) {
	var text bytes.Buffer
	for event, v := range r.places {
		if !v.isFilled() {
			continue
		}
		record, headers := r.record(event, rand.New(rand.NewPCG(1, 1))), map[string]string{}
		for _, h := range record.Headers {
			headers[strings.Replace(h.Key, "ce_", "ce-", 1)] = string(h.Value)
		}
		line := proof.Must(json.Marshal(map[string]any{"key": string(record.Key), "headers": headers, "body": json.RawMessage(record.Value)}))
		text.Write(append(line, '\n'))
	}
	r.Write("missing.jsonl", text.String())
	proof.Must(r.Members[0].Semel(ctx, "gaps", "backfill", proof.Consumer, "--file", "missing.jsonl", "--because", "found", "--as", "proof", "-o", "json"))
	r.ledger.Filled = bytes.Count(text.Bytes(), []byte("\n"))
	r.Say("%d gaps are filled from a file", r.ledger.Filled)
	r.waitDrained(ctx, untilSkipped)
}

// skipGaps runs a command that skips the versions that never come.
func (r *run) skipGaps(ctx context.Context) {
	if !r.Order || r.Keys {
		return
	}
	r.fillGaps(ctx)
	said := proof.Must(r.Members[0].Semel(ctx, "gaps", "skip", "--all", "--yes", "--because", "never sent", "--as", "proof"))
	r.ledger.Skipped = strings.Count(said, ": done")
	r.Say("%d gaps are skipped", r.ledger.Skipped)
	r.waitDrained(ctx, untilNothing)
}

// inOrder returns the number of effects in the order of their stream, and the number of effects out of order.
func (r *run) inOrder(ctx context.Context) (placed, misplaced int) {
	event := map[string]int{}
	for i := range r.Events {
		event[webhooks.ID(i)] = i
	}
	at, id := make([]int, 2*streams), ""
	proof.Check(ledger.Each(ctx, r.Activity.DB, "select delivery from effects order by n", nil, []any{&id}, func() {
		v := r.places[event[id]]
		next := at[v.stream] + 1
		if next == 2 && isSkipped(v.stream) {
			next++
		}
		if v.number == next {
			placed++
		} else {
			misplaced++
		}
		at[v.stream] = v.number
	}))
	return placed, misplaced
}
