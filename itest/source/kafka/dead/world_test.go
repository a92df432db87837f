//go:build unix

package dead

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bodies that determine the result of a message.
const (
	good       = `{"amount": 1}`
	other      = `{"amount": 2}` // the id of an earlier message with other content
	permanent  = `{"account": "closed"}`
	exhausting = `{"account": "locked"}`
	unmet      = `{"account": "none"}`
)

const partitions = 4

// place is a message's partition and offset in the topic.
type place struct {
	partition int32
	offset    int64
}

// testMessage is a message in the topic, with the result that the test expects.
type testMessage struct {
	record *kgo.Record
	id     string
	// The reason of the message's dead letter; empty if the message must not become a dead letter.
	reason   semel.Reason
	attempts int
	// isCopy is true if the message repeats an earlier message.
	isCopy bool
}

// message returns message number n. Of twelve messages, six are good, five must become dead letters, and one repeats a
// message that must become a dead letter.
func message(topic string, n int) testMessage {
	s := testMessage{id: fmt.Sprint("m", n)}
	value := good
	switch n % 12 {
	case 1:
		value, s.reason, s.attempts = permanent, semel.ReasonPermanent, 1
	case 4:
		value, s.reason, s.attempts = exhausting, semel.ReasonExhausted, attempts
	case 7:
		value, s.reason, s.attempts = unmet, semel.ReasonPrecondition, 1
	case 9:
		s.id, s.reason = "", semel.ReasonNoIdentity
	case 10: // in the same partition as the first message with this id
		s.id, value, s.reason = fmt.Sprint("m", n-8), other, semel.ReasonConflict
	case 11:
		s.id, value, s.isCopy = fmt.Sprint("m", n-4), unmet, true
	}
	s.record = topics.Record(topic, int32(n%partitions), s.id, value)
	s.record.Headers = append(s.record.Headers, kgo.RecordHeader{Key: "trace", Value: fmt.Append(nil, n)}, kgo.RecordHeader{Key: "empty"})
	if n%24 == 9 {
		s.record.Value = nil
	}
	return s
}

// world is a broker and a database, with messages in a topic.
type world struct {
	*topics.Cluster
	t      *testing.T
	order  order
	sent   map[place]testMessage
	broker *services.Broker
	// For each message, the number of its dead letters at the time when it had a marker.
	copies map[place]int
	// The messages whose dead letters were in a deleted topic.
	deleted map[place]bool
	// The last published message.
	newest testMessage
}

func newWorld(t *testing.T, brokers []string) *world {
	t.Helper()
	w := &world{t: t, Cluster: topics.Open(t, brokers), sent: map[place]testMessage{}, copies: map[place]int{}, deleted: map[place]bool{}}
	w.order = order{Brokers: brokers, Topic: services.Topic(t, brokers, partitions), Dead: services.Topic(t, brokers, 2), Group: topics.Name(), DSN: services.Postgres(t)}
	must.OK(t, workload.Migrate(t.Context(), w.order.DSN))
	return w
}

// publish writes the next messages of the sequence.
func (w *world) publish(count int) {
	w.t.Helper()
	first := len(w.sent)
	var all []testMessage
	var records []*kgo.Record
	for n := first; n < first+count; n++ {
		s := message(w.order.Topic, n)
		all, records = append(all, s), append(records, s.record)
	}
	w.Produce(records...)
	for _, s := range all {
		w.sent[place{s.record.Partition, s.record.Offset}] = s
		w.newest = s
	}
}

// deleteDead deletes the dead-letter topic. deleteDead returns when the broker accepts no more records for this topic.
func (w *world) deleteDead() {
	w.t.Helper()
	for p := range w.readDeadLetters() {
		w.deleted[p] = true
	}
	must.Get(w.Admin.DeleteTopic(w.t.Context(), w.order.Dead))(w.t)
	client := must.Get(kgo.NewClient(kgo.SeedBrokers(w.order.Brokers...)))(w.t)
	defer client.Close()
	for code := int16(0); code != kerr.UnknownTopicOrPartition.Code; {
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = []kmsg.MetadataRequestTopic{{Topic: &w.order.Dead}}
		answer := must.Get(request.RequestWith(w.t.Context(), client))(w.t)
		code = answer.Topics[0].ErrorCode
	}
}

// runChild runs a consumer in another process. The result is true if the process killed itself.
func (w *world) runChild(o order) bool {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	c := children.Command(ctx, w.t, o)
	var complaints strings.Builder
	c.Stderr = &complaints
	in, errIn := c.StdinPipe()
	out, errOut := c.StdoutPipe()
	must.OK(w.t, errors.Join(errIn, errOut, c.Start()))
	w.freezeWhile(in, out, o)
	err := c.Wait()
	if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == syscall.SIGKILL && ctx.Err() == nil {
		return true
	}
	if err != nil {
		w.t.Fatalf("the consumer that was to die at %q: %v: %s", o.Death, err, complaints.String())
	}
	return false
}

// freezeWhile reads the output of the process until the output ends. If o.Death is duringCopy, freezeWhile freezes the
// broker while the process writes the copy of a dead letter, until the process is dead.
func (w *world) freezeWhile(in io.WriteCloser, out io.Reader, o order) {
	lines := bufio.NewReader(out)
	if line, _ := lines.ReadString('\n'); o.Death == duringCopy && line == "copying\n" {
		w.broker.Freeze()
		defer w.broker.Thaw()
		_, _ = io.WriteString(in, "frozen\n")
	}
	_, _ = io.Copy(io.Discard, lines)
}

// letter is a row of the store. The field key is the identity in the format of the store.
type letter struct {
	key, state, reason string
}

// readRows returns the rows of parked and dead-lettered messages, by the message's position.
func (w *world) readRows() map[place]letter {
	w.t.Helper()
	rows, keys := map[place]letter{}, map[string]place{}
	w.forEachRow(`select partition, "offset", concat_ws('/', scope, id, conflict), state, reason from semel_inbox`, func(r pgx.Rows) error {
		var p place
		var l letter
		err := r.Scan(&p.partition, &p.offset, &l.key, &l.state, &l.reason)
		if _, twice := rows[p]; twice {
			w.t.Errorf("two rows for %v", p)
		}
		if before, twice := keys[l.key]; twice {
			w.t.Errorf("%v and %v have one identity", before, p)
		}
		rows[p], keys[l.key] = l, p
		return err
	})
	return rows
}

// readEffects returns the number of effects of each message.
func (w *world) readEffects() map[string]int {
	w.t.Helper()
	effects := map[string]int{}
	w.forEachRow(`select id from effects`, func(r pgx.Rows) error {
		var id string
		err := r.Scan(&id)
		effects[id]++
		return err
	})
	return effects
}

func (w *world) forEachRow(query string, row func(pgx.Rows) error) {
	w.t.Helper()
	conn := must.Get(pgx.Connect(w.t.Context(), w.order.DSN))(w.t)
	defer func() { _ = conn.Close(w.t.Context()) }()
	rows := must.Get(conn.Query(w.t.Context(), query))(w.t)
	defer rows.Close()
	for rows.Next() {
		must.OK(w.t, row(rows))
	}
	must.OK(w.t, rows.Err())
}
