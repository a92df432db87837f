package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/source"
)

// file returns the recording of a machine that has processed one batch.
func file(t *testing.T) []byte {
	t.Helper()
	m := newMill(1 << 20)
	m.batch()
	var b bytes.Buffer
	if err := m.recorder.Write(&b, "a test asks"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestInvalidRecordingsAreRejected(t *testing.T) {
	whole := file(t)
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 1
	for name, c := range map[string]struct {
		text []byte
		want error
	}{
		"nothing":      {nil, recording.ErrNoRecording},
		"another file": {[]byte("PNG"), recording.ErrNoRecording},
		"a later form": {bytes.Replace(whole, []byte(`recording":1`), []byte(`recording":2`), 1), recording.ErrNewerForm},
		"cut short":    {whole[:len(whole)-7], recording.ErrDamaged},
		"the head":     {whole[:30], recording.ErrDamaged},
		"a bit":        {changed, recording.ErrDamaged},
	} {
		if _, err := recording.Read(bytes.NewReader(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := recording.New(1<<20, false).Write(&bytes.Buffer{}, ""); !errors.Is(err, recording.ErrNothing) {
		t.Error(err)
	}
}

func TestARecordingOfAnotherBuildIsReported(t *testing.T) {
	replay := func(text []byte) (recording.Result, error) {
		f, err := recording.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		f.Build.Revision = "0123abc"
		return f.Replay(nil)
	}
	whole := file(t)
	if r, err := replay(whole); err != nil || r.Differs != nil || r.Steps != 6 {
		t.Errorf("of the same parts: %v, %+v", err, r)
	}
	for what, part := range map[string]string{"state": `"Machine`, "event": `"Verdicts`, "kind of event": `"event":"Ran`} {
		other := bytes.Replace(whole, []byte(part), []byte(part+"X"), 1)
		if _, err := replay(summed(t, other)); !errors.Is(err, recording.ErrOtherShape) || !strings.Contains(err.Error(), "0123abc") {
			t.Errorf("of another %s: %v", what, err)
		}
	}
}

// summed returns a changed recording with the correct checksum.
func summed(t *testing.T, text []byte) []byte {
	t.Helper()
	end := bytes.LastIndex(text, []byte(`{"crc32"`))
	if end < 0 {
		t.Fatal("it has no sum")
	}
	return fmt.Appendf(bytes.Clone(text[:end]), "{\"crc32\":%d}\n", crc32.ChecksumIEEE(text[:end]))
}

func TestIdentitiesAreRecordedOnRequest(t *testing.T) {
	for _, ids := range []bool{false, true} {
		m := newMillOf(recording.New(1<<20, ids))
		m.batch()
		var b bytes.Buffer
		if err := m.recorder.Write(&b, "a test asks"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "order-0000") != ids {
			t.Errorf("ids: %v, and the recording says otherwise", ids)
		}
	}
}

func TestViolationsAreDetected(t *testing.T) {
	for law, spoil := range map[string]func(machine.Event, machine.Action) machine.Action{
		"law 1": func(e machine.Event, a machine.Action) machine.Action {
			if c, is := a.(machine.Commit); is {
				c.Trim = nil
				return c
			}
			return a
		},
		"law 2": func(_ machine.Event, a machine.Action) machine.Action {
			if r, is := a.(machine.Run); is {
				return &machine.Settle{Items: []machine.Settlement{{Item: r.Flight.Entries[0].Item, Kind: semel.Ack, Ending: source.EndApplied}}}
			}
			return a
		},
		"law 3": func(_ machine.Event, a machine.Action) machine.Action {
			if r, is := a.(machine.Rollback); is {
				return machine.Commit{Flight: r.Flight}
			}
			return a
		},
	} {
		t.Run(law, func(t *testing.T) {
			m := newMill(1 << 20)
			m.spoil, m.failing, m.short = spoil, law == "law 3", law == "law 1"
			m.batch()
			if m.broken == nil || m.broken.Law != law {
				t.Errorf("%v is seen broken", m.broken)
			}
		})
	}
	t.Run("law_11_a_machine_that_spins_is_told", func(t *testing.T) {
		m := newMill(1 << 20)
		var broken *recording.Broken
		for range 100_001 {
			m.tape.Event(machine.Timer{}, m.now)
			if b := m.tape.Actions(nil); b != nil {
				broken = b
			}
		}
		if broken == nil || broken.Law != "law 11" {
			t.Errorf("%v", broken)
		}
	})
	t.Run("without a fault none is", func(t *testing.T) {
		m := newMill(1 << 20)
		for range 20 {
			m.batch()
		}
		if m.broken != nil {
			t.Error(m.broken)
		}
	})
}
