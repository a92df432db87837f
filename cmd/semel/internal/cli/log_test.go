package cli

import (
	"io"
	"testing"
)

func TestALogIsSummedUpForAPersonWhoDidNotAskForMore(t *testing.T) {
	for name, c := range map[string]struct {
		logs     logging
		terminal bool
		want     bool
	}{
		"on_a_terminal":          {logging{level: "info"}, true, true},
		"warnings_alone":         {logging{level: "warn"}, true, true},
		"in_detail":              {logging{level: "debug"}, true, false},
		"verbose":                {logging{level: "info", verbose: true}, true, false},
		"as_JSON":                {logging{level: "info", format: formatJSON}, true, false},
		"as_text_for_a_program":  {logging{level: "info", format: formatText}, false, false},
		"as_JSON_for_a_program":  {logging{level: "info"}, false, false},
		"in_detail_in_a_program": {logging{level: "debug"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := &common{Streams: Streams{ErrTerminal: c.terminal}, logs: c.logs}
			if log, summedUp, err := of.log(io.Discard); err != nil || log == nil || summedUp != c.want {
				t.Errorf("it is summed up: %t, want %t (%v)", summedUp, c.want, err)
			}
		})
	}
}
