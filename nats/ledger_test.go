package nats

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/source"
)

// message is a message of JetStream that was never sent.
type message struct {
	jetstream.Msg
	subject string
	data    []byte
	headers nats.Header
}

func (m message) Subject() string { return m.subject }

func (m message) Data() []byte { return m.data }

func (m message) Headers() nats.Header { return m.headers }

const hold = 8 * time.Second

var (
	lane  = source.Lane{ID: "ORDERS/billing", Epoch: 1}
	start = time.Unix(1000, 0)
	all   = source.Bound{Messages: 100, Bytes: 1 << 20}
)

// at returns the time some seconds after the start.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// nth is what the server says about the first delivery of a message.
func nth(number int) *jetstream.MsgMetadata {
	return &jetstream.MsgMetadata{NumDelivered: 1, Sequence: jetstream.SequencePair{Consumer: uint64(number)}}
}

// delivered returns a ledger with n deliveries, which were delivered at the start, and were returned by Fetch.
func delivered(t *testing.T, n int) (*ledger, []*delivery) {
	t.Helper()
	l := &ledger{}
	l.begin(lane, hold)
	for i := range n {
		l.add(lane, message{data: []byte{byte(i)}}, nth(i+1), start)
	}
	var handles []*delivery
	out, _ := l.take(all, start)
	for _, d := range out {
		handles = append(handles, d.Handle.(*delivery))
	}
	if len(handles) != n {
		t.Fatalf("%d of %d messages were returned", len(handles), n)
	}
	return l, handles
}

func TestANackedDeliveryComesAgainAfterItsDelay(t *testing.T) {
	l, d := delivered(t, 1)
	l.nack(d[0], 3*time.Second, at(1))
	if out, next := l.take(all, at(3)); len(out) > 0 || next != at(4) {
		t.Errorf("%d deliveries at 3 s, the next at %v", len(out), next)
	}
	out, _ := l.take(all, at(4))
	if len(out) != 1 || out[0].Before != 1 {
		t.Fatalf("after its delay: %+v", out)
	}
	l.nack(d[0], 0, at(4))
	l.nack(d[0], 0, at(4)) // a second nack of the same delivery changes nothing
	if out, _ := l.take(all, at(4)); len(out) != 1 {
		t.Errorf("%d deliveries after two nacks of one", len(out))
	}
}

func TestN2_N3_ADeliveryWhoseHoldTimeHasPassedIsNotNacked(t *testing.T) {
	l, d := delivered(t, 2)
	l.nack(d[0], 0, at(8))
	if out, _ := l.take(all, at(8)); len(out) > 0 {
		t.Errorf("a delivery of another process came again")
	}
	if held := l.end(at(8)); len(held) > 0 {
		t.Errorf("Close would nack %d deliveries of other processes", len(held))
	}
}

func TestCloseNacksWhatIsStillHeld(t *testing.T) {
	l, d := delivered(t, 3)
	l.acked(d[:1])
	if held := l.end(at(7)); len(held) != 2 {
		t.Errorf("%d deliveries are held instead of 2", len(held))
	}
	if l.owns(d[1]) {
		t.Error("the lane still belongs to the process")
	}
}

func TestN4_ExtensionsBeginAtHalfOfTheHoldTimeAndNeverAfterIt(t *testing.T) {
	for second, want := range map[int]int{0: 0, 3: 0, 4: 1, 7: 1, 8: 0, 9: 0} {
		l, _ := delivered(t, 1)
		if got, _ := l.expiring(at(second)); len(got) != want {
			t.Errorf("after %d s %d deliveries are extended instead of %d", second, len(got), want)
		}
	}
}

func TestAnExtensionCountsFromTheTimeAtWhichItWasSent(t *testing.T) {
	l, d := delivered(t, 2)
	l.extended(d[:1], at(4), at(6))
	if got, first := l.expiring(at(8)); len(got) != 1 || got[0] != d[0] || first != at(12) {
		t.Errorf("%d deliveries are held, the first until %v", len(got), first)
	}
}

func TestAnExtensionThatIsConfirmedTooLateDoesNotCount(t *testing.T) {
	l, d := delivered(t, 1)
	l.extended(d, at(7), at(8)) // the server may have delivered the message again before it got the extension
	if got, _ := l.expiring(at(8)); len(got) > 0 {
		t.Error("the delivery is still held")
	}
}

func TestN4_NothingIsExtendedAfterTheEndOfTheEpoch(t *testing.T) {
	l, _ := delivered(t, 2)
	l.end(at(1))
	if got, _ := l.expiring(at(5)); len(got) > 0 {
		t.Errorf("%d deliveries of a lost lane are extended", len(got))
	}
	l.begin(source.Lane{ID: lane.ID, Epoch: 2}, hold)
	l.add(lane, message{}, nth(1), at(1))
	if out, _ := l.take(all, at(1)); len(out) > 0 {
		t.Error("a message of the earlier epoch was delivered in the next one")
	}
}

func TestAMessageThatWaitedTooLongInMemoryIsNotDelivered(t *testing.T) {
	l := &ledger{}
	l.begin(lane, hold)
	l.add(lane, message{}, nth(1), start)
	if out, _ := l.take(all, at(9)); len(out) > 0 {
		t.Error("a message was delivered that another process may have")
	}
}

func TestTakeKeepsTheBounds(t *testing.T) {
	l := &ledger{}
	l.begin(lane, hold)
	for i := range 4 {
		third := nth(i + 1)
		third.NumDelivered = 3
		l.add(lane, message{data: make([]byte, 10)}, third, start)
	}
	for _, one := range []struct {
		most source.Bound
		want int
	}{{source.Bound{Messages: 1, Bytes: 1}, 1}, {source.Bound{Messages: 3, Bytes: 20}, 2}, {source.Bound{Messages: 3, Bytes: 20}, 1}} {
		out, _ := l.take(one.most, start)
		if len(out) != one.want {
			t.Errorf("%+v: %d deliveries instead of %d", one.most, len(out), one.want)
		}
		for _, d := range out {
			if d.Before != 2 {
				t.Errorf("Before is %d for the third delivery", d.Before)
			}
		}
	}
}

func TestAPausedLaneDeliversNothing(t *testing.T) {
	l := &ledger{}
	l.begin(lane, hold)
	l.add(lane, message{}, nth(1), start)
	l.pause(source.Lane{ID: lane.ID, Epoch: 7}, true) // another epoch
	l.pause(lane, true)
	if out, _ := l.take(all, start); len(out) > 0 {
		t.Error("a paused lane delivers")
	}
	if paused, open, queued := l.state(start); !paused || open != 1 || queued != 1 {
		t.Errorf("paused %t, %d open, %d queued", paused, open, queued)
	}
	l.pause(lane, false)
	if out, _ := l.take(all, start); len(out) != 1 {
		t.Error("a resumed lane delivers nothing")
	}
}

func TestN10_ACountThatBeginsAgainShowsAnotherConsumer(t *testing.T) {
	l, _ := delivered(t, 3)
	if l.add(lane, message{}, nth(1), start) {
		t.Error("a delivery of another consumer was added")
	}
	if !l.add(lane, message{}, nth(4), start) {
		t.Error("the next delivery was not added")
	}
}
