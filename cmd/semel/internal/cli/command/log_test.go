package command

import (
	"io"
	"testing"
)

func TestALogIsSummedUpForAPersonWhoDidNotAskForMore(t *testing.T) {
	for name, c := range map[string]struct {
		logs     Logging
		terminal bool
		want     bool
	}{
		"on_a_terminal":          {Logging{Level: "info"}, true, true},
		"warnings_alone":         {Logging{Level: "warn"}, true, true},
		"in_detail":              {Logging{Level: "debug"}, true, false},
		"verbose":                {Logging{Level: "info", verbose: true}, true, false},
		"as_JSON":                {Logging{Level: "info", format: formatJSON}, true, false},
		"as_text_for_a_program":  {Logging{Level: "info", format: formatText}, false, false},
		"as_JSON_for_a_program":  {Logging{Level: "info"}, false, false},
		"in_detail_in_a_program": {Logging{Level: "debug"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := &CLI{Streams: Streams{ErrTerminal: c.terminal}, Logs: c.logs}
			if log, summedUp, err := of.Log(io.Discard); err != nil || log == nil || summedUp != c.want {
				t.Errorf("it is summed up: %t, want %t (%v)", summedUp, c.want, err)
			}
		})
	}
}
