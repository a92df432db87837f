package consumer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/machine"
)

// String returns the name in a policy file.
func (o OnFiltered) String() string {
	return enum.Name([]string{OnFilteredSkip: "skip", OnFilteredPark: "park", OnFilteredDeadLetter: "dead_letter"}, o, "OnFiltered")
}

// Filter selects the messages of a shared topic that are for the consumer. A message is selected if it meets every
// condition of the Filter. The zero Filter selects all messages. The filter is applied before the identity of a message
// is determined. Config.OnFiltered says what happens to messages that are not selected.
type Filter struct {
	// Types lists the types that the filter selects (see Config.Type). A message without a type is not selected.
	Types []string
	// Headers contains, for each name of a header, the allowed values. A message is selected if the header has one of
	// the allowed values, byte for byte. Names are compared without regard to case. If a header is repeated, one
	// matching value is sufficient.
	Headers map[string][]string
}

// OnFiltered says how a message ends that Config.Filter excludes.
type OnFiltered uint8

const (
	// OnFilteredSkip, the default, acks the message and counts the message as skipped. A skipped message is not written
	// to the store.
	OnFilteredSkip OnFiltered = iota
	// OnFilteredPark parks the message with the reason "not for this consumer".
	OnFilteredPark
	// OnFilteredDeadLetter copies the message to the source's dead-letter topic and records the message in
	// the store, with the reason "not for this consumer".
	OnFilteredDeadLetter
)

// ending converts o to the machine's type.
func (o OnFiltered) ending() machine.Ending {
	switch o {
	case OnFilteredPark:
		return machine.EndPark
	case OnFilteredDeadLetter:
		return machine.EndDeadLetter
	}
	return machine.EndSkip
}

// takesAll reports whether the filter has no conditions.
func (o *Filter) takesAll() bool { return len(o.Types) == 0 && len(o.Headers) == 0 }

// Validate returns one error that lists all conditions that no message can meet, or nil if there are none.
func (o Filter) Validate() error {
	var faults []error
	if slices.Contains(o.Types, "") {
		faults = append(faults, errors.New("an empty type matches nothing, because a message without a type has none; leave it out"))
	}
	names := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		folded := strings.ToLower(name)
		switch before, twice := names[folded]; {
		case name == "":
			faults = append(faults, errors.New("a header has no name; write the name of one"))
		case twice:
			faults = append(faults, fmt.Errorf("the headers %q and %q are one, as case does not count; write their values under one name", before, name))
		case len(o.Headers[name]) == 0:
			faults = append(faults, fmt.Errorf("header %q has no values, so that no message could match; write one, or leave it out", name))
		}
		names[folded] = name
	}
	return errors.Join(faults...)
}
