package file

import (
	"testing"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/reasonname"
)

func TestALineIsParsedOnceForMessageFingerprintAndIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		format Format
		line   string
		parses int
	}{
		"of_an_envelope":          {Envelope, `{"key":"k", "body": {"id":"\u0041","b":[1.0,{"a":null}]} ,"headers":{"h":"v"}}`, 1},
		"of_an_event":             {CloudEvents, `{"specversion":"1.0","data": {"id":"\u0041","b":[1.0,{"a":null}]}, "type":"t","id":"1","source":"s"}`, 1},
		"of_plain_json":           {JSON, `  {"id":"\u0041","b":[1.0,{"a":null}]} `, 1},
		"but_not_in_base64":       {CloudEvents, `{"specversion":"1.0","type":"t","id":"1","data_base64":"eyJpZCI6IkEiLCJiIjpbMSx7ImEiOm51bGx9XX0="}`, 2},
		"an_envelope_in_a_string": {Envelope, `{"body":"not JSON inside"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, room := (&decoder{format: c.format}).begin(line{text: []byte(c.line), length: int64(len(c.line))}), new(reading.Room)
			m := &d.message
			if refused, detail := d.Decode(room, m); refused != reasonname.None {
				t.Fatal(detail)
			}
			by := identity.By("body:/id")
			_, id, idErr := by.FindIn(room, m)
			_, wantID, wantErr := by.Identify(m)
			for _, f := range []identity.Fingerprinter{identity.FingerprintBody(), identity.FingerprintOf("body:/b?", "body:/id?")} {
				got, err := f.(reading.Printer).FingerprintIn(room, m)
				want, wantErr := f.Fingerprint(m)
				if err != nil || wantErr != nil || got != want {
					t.Errorf("fingerprint %v (%v) in the room, %v (%v) of the body alone", got, err, want, wantErr)
				}
			}
			if id != wantID || (idErr == nil) != (wantErr == nil) {
				t.Errorf("identity %q (%v) in the room, %q (%v) of the body alone", id, idErr, wantID, wantErr)
			}
			if room.Parses() != c.parses {
				t.Errorf("%d texts were parsed for one line, want %d", room.Parses(), c.parses)
			}
		})
	}
}
