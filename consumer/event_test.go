package consumer_test

import (
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
)

// inHeaders returns an event in binary mode. The parameter attributes contains names and values in turn.
func inHeaders(attributes ...string) *semel.Message {
	m := &semel.Message{Body: []byte("{}"), Origin: semel.Origin{Partition: -1, Offset: -1}}
	for i := 0; i < len(attributes); i += 2 {
		m.Headers = append(m.Headers, semel.Header{Name: "ce-" + attributes[i], Value: []byte(attributes[i+1])})
	}
	return m
}

func TestEventsInHeadersAreHeldToTheirSpecification(t *testing.T) {
	attribute, header := identity.CloudEvents(), identity.By("header:ce-id").From("header:ce-source")
	for name, c := range map[string]struct {
		by      identity.Identity
		message *semel.Message
		reason  semel.Reason
		says    string
	}{
		"an event":                {attribute, inHeaders("specversion", "1.0", "id", "1", "source", "s", "type", "t", "time", "2026-01-02T03:04:05Z"), "", ""},
		"without specversion":     {attribute, inHeaders("id", "1", "source", "s", "type", "t"), semel.ReasonMalformed, "no specversion"},
		"without type":            {attribute, inHeaders("specversion", "1.0", "id", "1", "source", "s"), semel.ReasonMalformed, "no type"},
		"another version":         {attribute, inHeaders("specversion", "0.3", "id", "1", "source", "s", "type", "t"), semel.ReasonMalformed, "not 1.0"},
		"a malformed time":        {attribute, inHeaders("specversion", "1.0", "id", "1", "source", "s", "type", "t", "time", "today"), semel.ReasonMalformed, "RFC 3339"},
		"an empty id":             {attribute, inHeaders("specversion", "1.0", "id", "", "source", "s", "type", "t"), semel.ReasonNoIdentity, "id is empty"},
		"an empty source":         {attribute, inHeaders("specversion", "1.0", "id", "1", "source", "", "type", "t"), semel.ReasonNoIdentity, "source is empty"},
		"no id":                   {attribute, inHeaders("specversion", "1.0", "source", "s", "type", "t"), semel.ReasonNoIdentity, "id is missing"},
		"no event":                {attribute, inHeaders(), semel.ReasonNoIdentity, "source is missing"},
		"headers of one's own":    {header, inHeaders("id", "1", "source", "s"), "", ""},
		"headers, another claim":  {header, inHeaders("specversion", "2.0", "id", "1", "source", "s", "type", "t"), semel.ReasonMalformed, "not 1.0"},
		"headers and a bad time":  {header, inHeaders("specversion", "1.0", "id", "1", "source", "s", "type", "t", "time", "1"), semel.ReasonMalformed, "RFC 3339"},
		"attributes of transport": {attribute, &semel.Message{Attributes: semel.Attributes{ID: "1", Source: "s"}}, "", ""},
	} {
		bubble(t, "A4_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			store := memstore.New()
			config := config(newListSource(c.message))
			config.Identity = c.by
			counts := runs(t, store, add, config)
			if c.reason == reasonname.None {
				if counts.Applied != 1 {
					t.Errorf("%+v: %+v", counts, rows(t, store))
				}
				return
			}
			all := rows(t, store)
			if len(all) != 1 || all[0].Reason != c.reason || !strings.Contains(all[0].LastError, c.says) {
				t.Errorf("%+v, rows %+v", counts, all)
			}
		})
	}
}

func TestSharedValuesAreRejectedAsIdentity(t *testing.T) {
	t.Run("A3_a_type_or_source_alone_or_a_time_is_refused_at_the_start", func(t *testing.T) {
		for _, by := range []*identity.Selected{
			identity.By("type"), identity.By("source"), identity.By("source", "type"), identity.By("type", "const:x"), identity.By("header:CE-Type"),
			identity.By("header:ce_source"), identity.By("type").From("source"),
		} {
			if err := by.Validate(); err == nil || !strings.Contains(err.Error(), "many messages share it") || !strings.Contains(err.Error(), "; use ") {
				t.Errorf("it says: %v", err)
			}
		}
		for _, text := range []string{"header:ce-time", "header:CE_Time"} {
			if err := identity.By(text).Validate(); err == nil || !strings.Contains(err.Error(), "two messages can have one time") {
				t.Errorf("%s: %v", text, err)
			}
		}
		for _, by := range []*identity.Selected{identity.By("type", "id"), identity.By("source", "body:/order"), identity.By("subject", "type"), identity.By("header:ce-timestamp")} {
			if err := by.Validate(); err != nil {
				t.Errorf("it is refused: %v", err)
			}
		}
	})
}
