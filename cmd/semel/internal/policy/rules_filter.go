package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filter reports on_filtered without a filter: nothing is filtered then.
func (r rules) filter() {
	if r.ok("filter", "on_filtered") && r.set("on_filtered") && !r.set("filter") {
		r.refuse("on_filtered", "nothing says which messages are others", `add filter: {type: [TYPE]}, or remove it`)
	}
	if v := r.consumer.Version; v != nil && r.set("type") && r.ok("type", "version") && r.consumer.Type != "type" && v.by().UsesType() {
		r.refuse("type", "version names the selector type, which would change with it", fmt.Sprintf("name %q in version, too", r.consumer.Type))
	}
	if !r.ok("filter") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.consumer.Filter.Headers)) {
		if len(strings.Fields(name)) > 1 || strings.TrimSpace(name) != name {
			r.warn("filter."+headerCondition+name, fmt.Sprintf("the name %q has a blank, which few producers give to a header; a message without it is somebody else's", name),
				"see that the producer writes it so")
		}
	}
	if r.ok("handler") {
		r.filterTypes()
	}
}

// filterTypes compares the types of filter with those of the handlers. A handler whose type the
// filter excludes never runs, which is a fault. A type without a handler may be intended: its
// messages are parked as unknown_type.
func (r rules) filterTypes() {
	in, handlers := r.consumer.Filter.Types, r.consumer.Handler.Types
	if len(in) == 0 || len(handlers) == 0 {
		return
	}
	handled := map[string]bool{}
	for _, h := range handlers {
		kind, _, _ := strings.Cut(h.Type, "@")
		handled[kind], handled[h.Type] = true, true
		if !slices.Contains(in, kind) && !slices.Contains(in, h.Type) {
			r.refuse("handler.types"+typePath(h.Type), fmt.Sprintf("this handler never runs: filter lets in no message of type %q", kind),
				fmt.Sprintf("add %q to filter, or remove the handler", kind))
		}
	}
	for i, kind := range in {
		if !handled[kind] {
			r.warn("filter.type", fmt.Sprintf("type %q is let in and has no handler: its messages end as unknown_type", in[i]),
				"add a handler for it, or remove it here")
		}
	}
}
