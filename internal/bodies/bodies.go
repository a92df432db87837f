// Package bodies provides the bodies for benchmarks: generated bodies of a given length, and the real webhooks
// that scripts/fetch-webhooks downloads.
package bodies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Variable is the environment variable that contains the path of the file of real webhooks, as printed by
// scripts/fetch-webhooks.
const Variable = "SEMEL_WEBHOOKS"

// ErrNoWebhooks means that the file of real webhooks is missing, and that generated bodies are used instead.
var ErrNoWebhooks = errors.New("the real webhooks are missing, and generated bodies of 10 KB replace them: " + Variable +
	" names no file of them; `make bench NAME=engine` sets it, and says above why they could not be fetched")

// Set is a set of bodies that are measured together.
type Set struct {
	Name string
	All  [][]byte
}

// Mean returns the mean length of the bodies in bytes.
func (s Set) Mean() int64 {
	bytes := 0
	for _, body := range s.All {
		bytes += len(body)
	}
	return int64(bytes / len(s.All))
}

// Sets returns bodies of 200 bytes and of 1 KiB, and the webhooks of the file. If the file is missing, Sets returns
// generated bodies instead of webhooks, and the result missing is ErrNoWebhooks.
func Sets(file string) (sets []Set, missing, err error) {
	sets = []Set{{"200B", [][]byte{Sized(200)}}, {"1KiB", [][]byte{Sized(1024)}}}
	if file == "" {
		return append(sets, Set{"made-up-10KB", [][]byte{Sized(10_000)}}), ErrNoWebhooks, nil
	}
	hooks, err := Webhooks(file)
	return append(sets, Set{"webhooks", hooks}), nil, err
}

// Webhooks reads the real webhooks, without white space, as their sender sends them.
func Webhooks(file string) ([][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w; scripts/fetch-webhooks prints the path", err)
	}
	var events []struct{ Examples []json.RawMessage }
	if err := json.Unmarshal(text, &events); err != nil {
		return nil, fmt.Errorf("%s contains no webhooks: %w; scripts/fetch-webhooks prints the path", file, err)
	}
	var all [][]byte
	for _, e := range events {
		for _, example := range e.Examples {
			var body bytes.Buffer
			if err := json.Compact(&body, example); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, body.Bytes())
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s contains no webhooks; scripts/fetch-webhooks prints the path", file)
	}
	return all, nil
}

// The parts of a generated body: the first part with an id and three values, and records that are similar to the
// records in webhooks.
const (
	top    = `{"id":"018f4e7a-0000-7000-8000-000000000001","action":"updated","total":1250.75,"sender":{"login":"zoe"}`
	record = `{"url":"https://api.example.org/repos/shop/orders/issues/%d","node_id":"MDEwOlJlcG9zaXRvcnkx","number":%[1]d,"private":false,"created_at":"2026-01-07T09:31:07Z","homepage":null,"title":"an order of two parts"}`
)

// Least is the length of the shortest body that Sized generates.
const Least = len(top) + len(`,"note":""}`)

// Sized returns a generated body of n bytes. If n is less than Least, the body has Least bytes. The body is a
// JSON object with "id", "action", "total" and "sender", and a "note" that fills the remaining bytes.
func Sized(n int) []byte {
	var b strings.Builder
	b.WriteString(top)
	more, end := `,"records":[`, 0
	for i := 1000; ; i++ {
		next := more + fmt.Sprintf(record, i)
		if b.Len()+len(next)+len(`]`)+Least-len(top) > n {
			break
		}
		b.WriteString(next)
		more, end = ",", 1
	}
	b.WriteString("]"[:end])
	text := strings.Repeat("a plain sentence ", n/17+1)
	fmt.Fprintf(&b, `,"note":"%s"}`, text[:max(0, n-b.Len()-(Least-len(top)))])
	return []byte(b.String())
}

// ParseSize parses a length such as 200, 200B, 10KB or 1KiB.
func ParseSize(text string) (int, error) {
	number, factor := text, 1
	for _, unit := range []struct {
		name string
		size int
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"KB", 1000}, {"MB", 1_000_000}, {"B", 1}} {
		if before, found := strings.CutSuffix(text, unit.name); found {
			number, factor = before, unit.size
			break
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 1<<30/factor {
		return 0, fmt.Errorf("%q is not a length; write 200, 200B, 10KB or 1KiB", text)
	}
	return n * factor, nil
}
