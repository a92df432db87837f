package file

import (
	"bytes"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/reasonname"
)

func decodeText(f Format, text string) (*semel.Message, semel.Reason) {
	d := (&decoder{format: f, topic: "topic"}).begin(line{text: []byte(text), start: 7, end: 8 + int64(len(text)), length: int64(len(text))})
	reason, _ := d.Decode(new(reading.Room), &d.message)
	return &d.message, reason
}

func headersOf(m *semel.Message) string {
	var s strings.Builder
	for _, h := range m.Headers {
		s.WriteString(h.Name + "=" + string(h.Value) + ";")
	}
	return s.String()
}

func TestGoodLinesBecomeMessages(t *testing.T) {
	for name, c := range map[string]struct {
		format             Format
		line               string
		key, headers, body string
	}{
		"an event": {
			CloudEvents, ` {"specversion":"1.0","id":"a\u0041","source":"/s","type":"t","time":"2026-01-02T03:04:05Z","data": {"x": 1.0 } }`,
			"", "ce-specversion=1.0;ce-id=aA;ce-source=/s;ce-type=t;ce-time=2026-01-02T03:04:05Z;", `{"x": 1.0 }`,
		},
		"an event with extensions": {
			CloudEvents, `{"specversion":"1.0","type":"t","id":"1","source":"s","flag":true,"count":-12,"traceParent":"00","none":null}`,
			"", "ce-specversion=1.0;ce-type=t;ce-id=1;ce-source=s;ce-flag=true;ce-count=-12;ce-traceParent=00;", "",
		},
		"an event whose data is a string":  {CloudEvents, `{"specversion":"1.0","type":"t","id":"1","data":"x"}`, "", "ce-specversion=1.0;ce-type=t;ce-id=1;", `"x"`},
		"an event whose data is binary":    {CloudEvents, `{"specversion":"1.0","type":"t","id":"1","data_base64":"AP8="}`, "", "ce-specversion=1.0;ce-type=t;ce-id=1;", "\x00\xff"},
		"an event whose attribute is null": {CloudEvents, `{"specversion":"1.0","type":"t","id":null,"data":null}`, "", "ce-specversion=1.0;ce-type=t;", "null"},
		"an envelope":                      {Envelope, `{"key":"k","headers":{"a":"1","b":"ä"},"body":{"x":[1, 2]}}`, "k", "a=1;b=ä;", `{"x":[1, 2]}`},
		"an envelope with a string body":   {Envelope, `{"body":"x\n"}`, "", "", `"x\n"`},
		"an envelope with nulls":           {Envelope, `{"key":null,"headers":null,"body":null}`, "", "", "null"},
		"an empty envelope":                {Envelope, `{}`, "", "", ""},
		"plain JSON":                       {JSON, `{"a": 1.0, "b": 9007199254740993}`, "", "", `{"a": 1.0, "b": 9007199254740993}`},
		"plain JSON that is no object":     {JSON, `"x"`, "", "", `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			m, reason := decodeText(c.format, c.line)
			if reason != reasonname.None {
				t.Fatalf("refused, %s: %s", reason, headersOf(m))
			}
			if string(m.Key) != c.key || string(m.Body) != c.body || headersOf(m) != c.headers {
				t.Errorf("key %q, body %q, headers %q", m.Key, m.Body, headersOf(m))
			}
			if m.Topic != "topic" || m.Origin != (semel.Origin{Partition: -1, Offset: 7}) {
				t.Errorf("topic %q, origin %v", m.Topic, m.Origin)
			}
		})
	}
}

func TestAnEventWithoutIdentityIsNotMalformed(t *testing.T) {
	t.Run("A4_the_engine_judges_what_the_event_lacks", func(t *testing.T) {
		m, reason := decodeText(CloudEvents, `{"specversion":"1.0","type":"t","data":1}`)
		if reason != reasonname.None || m.ID() != "" || m.Source() != "" || m.Type() != "t" {
			t.Errorf("reason %q, id %q, source %q, type %q", reason, m.ID(), m.Source(), m.Type())
		}
	})
}

func TestBadLinesAreRefusedWithTheirRawBytesAndAReason(t *testing.T) {
	for name, c := range map[string]struct {
		format       Format
		line, detail string
	}{
		"a repeated member name deep inside":         {CloudEvents, `{"id":"1","data":{"x":[{"a":1,"\u0061":2}]}}`, "repeated member name"},
		"text after the value":                       {JSON, `{} {}`, "text after"},
		"an event that is no object":                 {CloudEvents, `[{"id":"1"}]`, "batch"},
		"an event whose time is a number":            {CloudEvents, `{"id":"1","time":1}`, "time must be a string"},
		"an event without specversion":               {CloudEvents, `{"id":"1","source":"s","type":"t"}`, "no specversion"},
		"an event of another specversion":            {CloudEvents, `{"specversion":"0.3","id":"1","source":"s","type":"t"}`, "not 1.0"},
		"an event without type":                      {CloudEvents, `{"specversion":"1.0","id":"1","source":"s"}`, "no type"},
		"an event whose type is null":                {CloudEvents, `{"specversion":"1.0","id":"1","type":null}`, "no type"},
		"an event whose time is a day":               {CloudEvents, `{"specversion":"1.0","id":"1","type":"t","time":"2026-01-02"}`, "RFC 3339"},
		"an event with data twice":                   {CloudEvents, `{"id":"1","data":1,"data_base64":"AA=="}`, "both"},
		"an event with data that is not base64":      {CloudEvents, `{"id":"1","data_base64":"A"}`, "base64"},
		"an event with base64 that is no string":     {CloudEvents, `{"id":"1","data_base64":1}`, "string"},
		"an event with an object as attribute":       {CloudEvents, `{"id":"1","x":{}}`, `"x"`},
		"an event with a fraction as attribute":      {CloudEvents, `{"id":"1","x":1.5}`, "32 bits"},
		"an event with an attribute without name":    {CloudEvents, `{"id":"1","":"x"}`, "no name"},
		"an event with ID beside id":                 {CloudEvents, `{"id":"1","ID":"2"}`, "lower-case"},
		"an event with a letter that folds to one":   {CloudEvents, `{"id":"1","ſource":"2"}`, "lower-case"},
		"an event with names that differ by case":    {CloudEvents, `{"id":"1","aB":"2","Ab":"3"}`, "differ only in case"},
		"an envelope that is no object":              {Envelope, `1`, "object"},
		"an envelope with another member":            {Envelope, `{"boddy":1}`, `"boddy"`},
		"an envelope with a key and another member":  {Envelope, `{"key":"k","other":1}`, `"other"`},
		"an envelope whose key is a number":          {Envelope, `{"key":1}`, "key"},
		"an envelope whose headers are a list":       {Envelope, `{"headers":[]}`, "headers"},
		"an envelope with a header that is a number": {Envelope, `{"headers":{"n":1}}`, `"n"`},
		"an envelope with headers differing by case": {Envelope, `{"headers":{"Id":"1","id":"2"}}`, "differ only in case"},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefused(t, c.format, c.line, c.detail)
		})
	}
	t.Run("trap_17_an_undecodable_line_is_kept_raw", func(t *testing.T) {
		expectRefused(t, JSON, `{"a":`, "ends")
	})
	t.Run("trap_80_a_raw_NUL_is_malformed", func(t *testing.T) {
		expectRefused(t, JSON, "{\"a\":\"\x00\"}", "control character")
	})
	t.Run("trap_81_a_lone_surrogate_is_malformed", func(t *testing.T) {
		expectRefused(t, JSON, `{"a":"\ud800"}`, "lone surrogate")
	})
	t.Run("trap_81_invalid_UTF-8_is_malformed", func(t *testing.T) {
		expectRefused(t, JSON, "{\"a\":\"\xff\"}", "UTF-8")
	})
	t.Run("A4_an_event_whose_id_is_a_number_is_malformed", func(t *testing.T) {
		expectRefused(t, CloudEvents, `{"id":1}`, "id must be a string")
	})
	t.Run("trap_80_an_escaped_NUL_in_an_identity_is_a_character_like_others", func(t *testing.T) {
		m, reason := decodeText(CloudEvents, `{"specversion":"1.0","type":"t","id":"a\u0000b"}`)
		if reason != reasonname.None || m.ID() != "a\x00b" {
			t.Errorf("id %q, reason %q", m.ID(), reason)
		}
	})
}

func expectRefused(t *testing.T, f Format, text, why string) {
	t.Helper()
	m, reason := decodeText(f, text)
	if reason != semel.ReasonMalformed || string(m.Body) != text || m.Key != nil {
		t.Errorf("reason %q, body %q, key %q", reason, m.Body, m.Key)
	}
	if detail, _ := m.Headers.Get(HeaderDetail); !strings.Contains(string(detail), why) || len(m.Headers) != 1 {
		t.Errorf("the detail is %q, with %d headers", detail, len(m.Headers))
	}
}

func TestADetailCarriesNoValueOfTheLine(t *testing.T) {
	t.Run("law_15_no_payload_in_what_is_logged", func(t *testing.T) {
		for _, text := range []string{`{"id":"1","data_base64":"secret"}`, `{"id":"secret",}`, `{"id":["secret"]}`, `{"x":"secret\ud800"}`} {
			m, reason := decodeText(CloudEvents, text)
			detail, _ := m.Headers.Get(HeaderDetail)
			if reason == reasonname.None || bytes.Contains(detail, []byte("secret")) {
				t.Errorf("%s: reason %q, detail %q", text, reason, detail)
			}
		}
	})
}

func TestAMessageOwnsItsBytes(t *testing.T) {
	c := &decoder{format: Envelope}
	text := []byte(`{"key":"\u006b","headers":{"h":"v"},"body":"b"}`)
	d, room := c.begin(line{text: text, length: int64(len(text))}), new(reading.Room)
	_, _ = d.Decode(room, &d.message)
	for i := range text {
		text[i] = '!'
	}
	other := []byte(`{"key":"\u0021"}`)
	o := c.begin(line{text: other, length: int64(len(other))})
	_, _ = o.Decode(room, &o.message)
	m := &d.message
	if string(m.Key) != "k" || string(m.Headers[0].Value) != "v" || string(m.Body) != `"b"` {
		t.Errorf("the message changed with the buffer: %q %q %q", m.Key, m.Headers[0].Value, m.Body)
	}
}
