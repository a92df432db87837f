package cloudevents

import (
	"strings"
	"testing"
	"time"
)

func TestRequiredAttributesOfAnEvent(t *testing.T) {
	good := map[string]string{"specversion": "1.0", "type": "order.placed"}
	for name, c := range map[string]struct {
		change map[string]string
		says   string
	}{
		"all there":               {nil, ""},
		"a time":                  {map[string]string{"time": "2026-02-03T04:05:06.789+01:00"}, ""},
		"a time in lower case":    {map[string]string{"time": "2026-02-03t04:05:06z"}, ""},
		"a leap second":           {map[string]string{"time": "2016-12-31T23:59:60Z"}, ""},
		"no version":              {map[string]string{"specversion": "-"}, "no specversion"},
		"an empty version":        {map[string]string{"specversion": ""}, "not 1.0"},
		"another version":         {map[string]string{"specversion": "0.3"}, "not 1.0"},
		"a version of a release":  {map[string]string{"specversion": "1.0.2"}, "not 1.0"},
		"no type":                 {map[string]string{"type": "-"}, "no type"},
		"an empty type":           {map[string]string{"type": ""}, "type is empty"},
		"an empty time":           {map[string]string{"time": ""}, "RFC 3339"},
		"a day":                   {map[string]string{"time": "2026-02-03"}, "RFC 3339"},
		"a time without zone":     {map[string]string{"time": "2026-02-03T04:05:06"}, "RFC 3339"},
		"a number":                {map[string]string{"time": "1767225600"}, "RFC 3339"},
		"hour 24":                 {map[string]string{"time": "2026-02-03T24:00:00Z"}, "RFC 3339"},
		"an offset of 24 hours":   {map[string]string{"time": "2026-02-03T04:05:06+24:00"}, "RFC 3339"},
		"an offset of 60 minutes": {map[string]string{"time": "2026-02-03T04:05:06-01:60"}, "RFC 3339"},
		"the largest offset":      {map[string]string{"time": "2026-02-03T04:05:06-23:59"}, ""},
		"an hour of one digit":    {map[string]string{"time": "2026-02-03T4:05:06Z"}, "RFC 3339"},
		"a comma":                 {map[string]string{"time": "2026-02-03T04:05:06,7Z"}, "RFC 3339"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Fault(func(name string) (string, bool) {
				text, set := c.change[name]
				if !set {
					text, set = good[name], good[name] != ""
				}
				return text, set && text != "-"
			})
			if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
				t.Errorf("it says %q", got)
			}
		})
	}
	if at, ok := Time("2016-12-31T23:59:60Z"); !ok || !at.Equal(time.Date(2016, 12, 31, 23, 59, 59, 0, time.UTC)) {
		t.Errorf("a leap second is %v", at)
	}
}
