//go:build unix

package matrix

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/source"
)

// messages is the number of messages of a cell: two partitions, and in each the keys "a" and "b".
const messages = 4

func id(n int) string { return fmt.Sprint("m", n) }

// shelf is a source that writes its acks to a file, so that the acks survive the death of the process. shelf delivers
// the messages that are not acked, and then ends.
type shelf struct {
	folder string
	again  bool // deliver all messages, whether they are acked or not
	fault  *fault

	lanes  source.LaneObserver
	opened bool
	given  bool
}

func (s *shelf) Lanes(o source.LaneObserver) { s.lanes = o }

func lane(n int) source.Lane { return source.Lane{ID: fmt.Sprint("p", n%2), Epoch: 1} }

func (s *shelf) Fetch(context.Context, source.Bound) (all []source.Delivery, err error) {
	if !s.opened {
		s.opened = true
		s.lanes.Given(lane(0))
		s.lanes.Given(lane(1))
	}
	if s.given {
		return nil, source.ErrEnd
	}
	acked, err := lines(s.folder, "acks")
	if err == nil {
		err = s.fault.user(faults.AfterFetch)
	}
	if err != nil {
		return nil, err
	}
	s.given = true
	for n := range messages {
		if s.again || acked[id(n)] == 0 {
			m := &semel.Message{
				Headers: semel.Headers{{Name: "id", Value: []byte(id(n))}}, Body: []byte(`{}`), Key: []byte{"ab"[n/2]},
				Origin: semel.Origin{Partition: int32(n % 2), Offset: int64(n)},
			}
			all = append(all, source.Delivery{Message: m, Lane: lane(n), Before: source.Unknown, Handle: n})
		}
	}
	return all, nil
}

func (s *shelf) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	left := make([]int, len(all))
	for i := range all {
		left[i] = i
	}
	if err := s.fault.user(faults.BeforeSettle); err != nil {
		return left, err
	}
	for i := range all {
		if all[i].Kind == semel.Ack {
			if err := record(s.folder, "acks", id(all[i].Delivery.Handle.(int))); err != nil {
				return left, err
			}
		}
	}
	if err := s.fault.user(faults.AfterSettle); err != nil {
		return left, err
	}
	return nil, nil
}

func (*shelf) Info() source.Info           { return source.Info{} }
func (*shelf) Flow(source.Lane, bool)      {}
func (*shelf) Close(context.Context) error { return nil }

// record appends a line to a file. The line survives the death of the process.
func record(folder, name, line string) error {
	f, err := os.OpenFile(filepath.Join(folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err
}

// lines returns how often each line is in a file.
func lines(folder, name string) (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	all := map[string]int{}
	for line := range bytes.Lines(text) {
		all[strings.TrimSpace(string(line))]++
	}
	return all, nil
}
