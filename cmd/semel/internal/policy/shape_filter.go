package policy

import (
	"strings"

	"github.com/semel-go/semel/consumer"
	"go.yaml.in/yaml/v4"
)

// filterShape is a mapping of conditions: type, or header:NAME, to the values of
// which a message must have one.
type filterShape struct{ leaf }

// headerCondition begins the key of a condition on a header.
const headerCondition = "header:"

func (s filterShape) read(d *decoder, p place) (consumer.Filter, bool) {
	var filter consumer.Filter
	before := len(d.faults)
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, s.words())
		return filter, false
	}
	for name, at := range d.entries(p) {
		header, isHeader := strings.CutPrefix(name, headerCondition)
		if name != "type" && (!isHeader || header == "") {
			d.unknownKey(p, at, name, []string{"type"}, []string{"type", "header:NAME"}, nil)
			continue
		}
		d.note(at.place)
		values, _ := s.values().read(d, at.place)
		if !isHeader {
			filter.Types = values
			continue
		}
		if filter.Headers == nil {
			filter.Headers = map[string][]string{}
		}
		filter.Headers[header] = values
	}
	if len(d.faults) > before {
		return filter, false
	}
	reason, remedy := split(filter.Validate(), "write each header once")
	if reason == "" && len(filter.Types) == 0 && len(filter.Headers) == 0 {
		reason, remedy = "it has no condition", "write type: [TYPE], or header:NAME: [VALUE], or leave it out"
	}
	if reason != "" {
		d.fault(p, reason, remedy)
	}
	return filter, reason == ""
}

func (filterShape) values() list[string] {
	return list[string]{item: word{what: "a text"}, single: true}
}

func (filterShape) words() string { return "a mapping of type and header:NAME to lists of values" }

func (s filterShape) schema() schema {
	return schema{"type": "object", "minProperties": 1, "additionalProperties": s.values().schema(),
		"propertyNames": schema{"pattern": `^(type|header:.+)$`}}
}

func onFilteredWord() choice[consumer.OnFiltered] {
	return choice[consumer.OnFiltered]{options: []option[consumer.OnFiltered]{
		{word: "skip", value: consumer.OnFilteredSkip},
		{word: "park", value: consumer.OnFilteredPark},
		{word: "dead_letter", value: consumer.OnFilteredDeadLetter},
	}}
}
