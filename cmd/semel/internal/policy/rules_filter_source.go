package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filterCanMatch: a condition that no message of the source can meet leaves out
// all of them, and nothing is said of a message that is left out.
func (r rules) filterCanMatch(s *Source) {
	if s == nil || s.File == nil || !r.ok("filter", "type") || !r.sound("sources."+s.Name+".file.format") {
		return
	}
	filter := r.consumer.Filter
	switch s.File.Format {
	case "json":
		nowhere := r.consumer.Type == "" || strings.HasPrefix(r.consumer.Type, headerCondition)
		if len(filter.Types) > 0 && nowhere || len(filter.Headers) > 0 {
			r.refuse("filter", fmt.Sprintf("source %s has the format json, whose lines are bodies and have neither a type nor headers, so that every message would be left out", s.Name),
				"write format: cloudevents or format: envelope at the source, or type: body:/POINTER if the body says the type, or remove filter")
		}
	case "cloudevents":
		for _, name := range slices.Sorted(maps.Keys(filter.Headers)) {
			if attribute := strings.ToLower(name); !strings.HasPrefix(attribute, "ce-") {
				r.warn("filter."+headerCondition+name, fmt.Sprintf("source %s has the format cloudevents, whose headers all begin with ce-, so that every message is left out", s.Name),
					"write header:ce- and the name of the attribute, as header:ce-"+strings.TrimPrefix(attribute, "ce_"))
			}
		}
	}
}
