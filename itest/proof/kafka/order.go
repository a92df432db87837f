//go:build unix

package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// orderKeys are the consumer's where records are versions of streams, which are their
// keys.
func (p Proof) orderKeys() []string {
	if p.Keys {
		return slices.Concat([]string{"lanes: key"}, inboxKeys)
	}
	return []string{
		"lanes: key", `version: {stream: "header:stream", number: "header:version"}`, "inbox: {lease: 4s, poll: 200ms}",
		"retry: {max_attempts: 40, initial_delay: 100ms, max_delay: 2s}", "max_in_memory_wait: 1s",
	}
}

const (
	// streams are the keys, by Zipf's law. One in ten is shuffled, within a window of
	// its versions.
	streams      = 1000
	shuffled     = 10
	streamWindow = 8
	// Of late streams a version is published when all is over, of filled ones it comes
	// from a file, and of skipped ones never.
	lateStreams, filledStreams, skippedStreams = 5, 5, 5
)

// version is the place of an event in its stream.
type version struct{ stream, number int }

// versions are the places of all events, in the order in which they are published but
// for the shuffled streams. A stream that skips has no version 2.
func (p Proof) versions() []version {
	random := rand.New(rand.NewPCG(p.Seed, 11))
	zipf := rand.NewZipf(random, 1.1, 1, streams-1)
	next := make([]int, 2*streams)
	all := make([]version, p.Events)
	for i := range all {
		s := int(zipf.Uint64())
		if p.Keys { // none of those that skip, are late, or filled
			s += streams
		}
		next[s]++
		if next[s] == 2 && skips(s) {
			next[s]++
		}
		all[i] = version{s, next[s]}
	}
	return all
}

// Such streams are among the busier ones, so that each has more than a few versions.
func skips(stream int) bool { return stream >= 20 && stream < 20+skippedStreams }
func (v version) late() bool {
	return v.number == 2 && v.stream >= 40 && v.stream < 40+lateStreams
}
func (v version) filled() bool {
	return v.number == 2 && v.stream >= 50 && v.stream < 50+filledStreams
}

// place is when an event is published, in halves of an event: a little late in a
// shuffled stream, and after all others if it is one that comes late.
func (p Proof) place(i int, v version, random *rand.Rand) int {
	switch {
	case v.late():
		return 2 * (p.Events + 10_000)
	case v.stream%shuffled == shuffled-1 && !p.Keys:
		return 2 * (i + random.IntN(streamWindow*streams/10))
	}
	return 2 * i
}

// ordered makes a record a version of its stream. All of a stream are in one partition.
func (r *run) ordered(record *kgo.Record, event int) {
	v := r.places[event]
	record.Key = []byte(streamName(v.stream))
	record.Partition = int32(v.stream % r.Partitions)
	record.Headers = append(record.Headers, kgo.RecordHeader{Key: "stream", Value: record.Key},
		kgo.RecordHeader{Key: "version", Value: strconv.AppendInt(nil, int64(v.number), 10)})
}

func streamName(n int) string { return fmt.Sprint("s", n) }

// fillGaps has a command give the consumer, from a file, what was never published.
func (r *run) fillGaps(ctx context.Context) error {
	var text bytes.Buffer
	for event, v := range r.places {
		if !v.filled() {
			continue
		}
		record, headers := r.record(event, rand.New(rand.NewPCG(1, 1))), map[string]string{}
		for _, h := range record.Headers {
			headers[strings.Replace(h.Key, "ce_", "ce-", 1)] = string(h.Value)
		}
		line, err := json.Marshal(map[string]any{"key": string(record.Key), "headers": headers, "body": json.RawMessage(record.Value)})
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(r.Folder, "missing.jsonl"), text.Bytes(), 0o644); err != nil {
		return err
	}
	if _, err := r.Members[0].Semel(ctx, "gaps", "backfill", "--consumer", proof.Consumer, "--file", "missing.jsonl", "--because", "found", "--as", "proof", "--json"); err != nil {
		return err
	}
	r.ledger.Filled = bytes.Count(text.Bytes(), []byte("\n"))
	r.Say("%d gaps are filled from a file", r.ledger.Filled)
	return r.drained(ctx, untilSkipped)
}

// skipGaps has a command skip what never comes.
func (r *run) skipGaps(ctx context.Context) error {
	if !r.Order || r.Keys {
		return nil
	}
	if err := r.fillGaps(ctx); err != nil {
		return err
	}
	said, err := r.Members[0].Semel(ctx, "gaps", "skip", "--all", "--yes", "--because", "never sent", "--as", "proof")
	if err != nil {
		return err
	}
	r.ledger.Skipped = strings.Count(said, ": done")
	r.Say("%d gaps are skipped", r.ledger.Skipped)
	return r.drained(ctx, untilNothing)
}

// inOrder counts the effects that came in their turn, and the others.
func (r *run) inOrder(ctx context.Context) (placed, misplaced int, err error) {
	event := map[string]int{}
	for i := range r.Events {
		event[webhooks.ID(i)] = i
	}
	rows, err := r.Activity.DB.QueryContext(ctx, "select delivery from effects order by n")
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	at := make([]int, 2*streams)
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return 0, 0, err
		}
		v := r.places[event[id]]
		next := at[v.stream] + 1
		if next == 2 && skips(v.stream) {
			next++
		}
		if v.number == next {
			placed++
		} else {
			misplaced++
		}
		at[v.stream] = v.number
	}
	return placed, misplaced, rows.Err()
}
